"""Puts a controller together from informers (specification: 70 §5.5)."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from lwskit.runtime.clock import Clock
from lwskit.runtime.controller.controller import Controller, ControllerError, Reconcile
from lwskit.runtime.controller.defects import reconcile_problem
from lwskit.runtime.controller.handler import AsyncMap, Handler, for_object, for_owner
from lwskit.runtime.controller.predicate import Predicate
from lwskit.runtime.controller.source import InformerLike, KindSource, Source
from lwskit.runtime.kinds import Kind


class Builder:
    """Collects what a controller watches.

    `Builder(reconcile, clock=…, rng=…).for_(sets).owns(stateful_sets).build()`; the name is by default the lower-cased
    kind of `for_`. Raises ControllerError for a reconcile that is no coroutine function.
    """

    def __init__(self, reconcile: Reconcile, *, clock: Clock, rng: random.Random, name: str = "") -> None:
        if problem := reconcile_problem(reconcile):
            raise ControllerError(f"controller {name}: {problem}" if name else f"no controller can be built: {problem}")
        self._reconcile = reconcile
        self._clock = clock
        self._rng = rng
        self._name = name
        self._for: InformerLike | None = None
        self._for_source: KindSource | None = None
        self._owned: list[tuple[InformerLike, bool, tuple[Predicate, ...]]] = []
        self._sources: list[Source] = []
        self._predicates: list[Predicate] = []

    def for_(self, informer: InformerLike, *predicates: Predicate, typed_deletions: bool = False) -> Builder:
        """Reconcile the objects of this informer. Raises ControllerError when called twice."""
        if self._for is not None:
            raise ControllerError("for_() may be called only once; use watches() for further kinds")
        _require_informer("for_", informer)
        self._for = informer
        self._for_source = KindSource(informer, for_object(informer.kind, typed_deletions=typed_deletions), predicates)
        return self

    def owns(self, informer: InformerLike, *predicates: Predicate, every_owner: bool = False) -> Builder:
        """Reconcile the controlling owner of these objects, or with `every_owner` each owner of the kind."""
        _require_informer("owns", informer)
        self._owned.append((informer, not every_owner, predicates))
        return self

    def watches(self, informer: InformerLike, handler: Handler | AsyncMap, *predicates: Predicate) -> Builder:
        """Reconcile what the handler makes of these objects' events."""
        _require_informer("watches", informer)
        if not callable(handler) and not isinstance(handler, AsyncMap):
            raise ControllerError(
                f"watches() was given {handler!r} as its handler; make one with for_owner, from_map or from_async_map"
            )
        self._sources.append(KindSource(informer, handler, predicates))
        return self

    def watches_source(self, source: Source) -> Builder:
        """Reconcile what any other source asks for."""
        self._sources.append(source)
        return self

    def with_predicates(self, *predicates: Predicate) -> Builder:
        """Ask these first for every event of every source."""
        self._predicates.extend(predicates)
        return self

    def sources(self) -> Iterable[Source]:
        """The sources collected so far. Raises ControllerError for owns() without for_()."""
        if self._owned and self._for is None:
            raise ControllerError("owns() can only be used together with for_()")
        if self._for is not None and self._for_source is not None:
            yield self._for_source
            for informer, only_controller, predicates in self._owned:
                yield KindSource(informer, for_owner(self._for.kind, only_controller), predicates)
        yield from self._sources

    def build(self, **options: Any) -> Controller:
        """The controller; `options` are Controller's keyword arguments. Raises ControllerError without any source."""
        sources = list(self.sources())
        if not sources:
            raise ControllerError("there is nothing to watch; call for_() or watches() before build()")
        name = self._name or (self._for.kind.kind.lower() if self._for else "")
        if not name:
            raise ControllerError("a controller without for_() needs a name")
        if self._for is not None:
            options.setdefault("kind", self._for.kind)
        return Controller(
            name,
            self._reconcile,
            sources,
            clock=self._clock,
            rng=self._rng,
            predicates=tuple(self._predicates),
            **options,
        )


def _require_informer(method: str, given: Any) -> None:
    if isinstance(given, Kind):
        raise ControllerError(
            f"{method}() was given the kind {given.kind}; give the informer of its cache, cache.informer(…)"
        )
    if not callable(getattr(given, "add_handler", None)):
        raise ControllerError(f"{method}() was given {given!r}; give an informer, as cache.informer(kind) returns it")
