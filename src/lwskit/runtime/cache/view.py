"""Derived state that must never be older than the store: views, called inside the store's own step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import structlog

from lwskit.runtime.cache.store import Store
from lwskit.runtime.objects import Obj, uid_of

log = structlog.get_logger(__name__)


class View(Protocol):
    """State derived from the objects of one informer.

    Both methods are called synchronously after the store has changed and before any handler is told, so what a handler
    causes to be read is at least as new as its cause. They must neither block nor change the objects. A view that
    raises is given everything again with `replace`. Specification: 70 §2.8.
    """

    def apply(self, old: Obj | None, new: Obj | None) -> None:
        """One object came (`old` is None), changed, or went (`new` is None).

        An object that was replaced by another of the same name comes as two calls: the old one went, the new one came.
        """
        ...

    def replace(self, objects: Iterable[Obj]) -> None:
        """The whole content at once, after a list; what is not in it is gone."""
        ...


class Handler(Protocol):
    """Who is told of changes, after the store and the views have them (specification: 70 §2.8)."""

    def on_add(self, obj: Obj, initial: bool) -> None:
        """An object came; `initial` while the first list, or the replay for a late handler, is handed out."""
        ...

    def on_update(self, old: Obj, new: Obj) -> None:
        """An object changed. Both are the identical object when it is only repeated by a resync."""
        ...

    def on_delete(self, obj: Obj, unknown: bool) -> None:
        """An object went; with `unknown` its deletion itself was not seen and `obj` may be stale."""
        ...


class Views:
    """The views of one informer. One that fails is given everything again, at once or at the next change."""

    def __init__(self, kind: str, store: Store) -> None:
        self._kind = kind
        self._store = store
        self._views: list[View] = []
        self._stale: set[int] = set()
        self.any = False
        """Whether there is a view to tell."""

    def add(self, view: View, filled: bool) -> None:
        """Take in a view; it is given what is stored if the store has been `filled`."""
        self._views.append(view)
        self.any = True
        if filled:
            self._guard(view, lambda: view.replace(self._store.list()))

    def apply(self, *changes: tuple[Obj | None, Obj | None]) -> None:
        """Tell of changes, each as (old, new)."""
        for view in self._views:
            if id(view) in self._stale:
                self._guard(view, lambda view=view: view.replace(self._store.list()))
            else:
                self._guard(view, lambda view=view: _apply(view, changes))

    def replace(self) -> None:
        """Tell of the whole content."""
        for view in self._views:
            self._guard(view, lambda view=view: view.replace(self._store.list()))

    def _guard(self, view: View, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception:
            log.exception("view failed, giving it everything again", kind=self._kind, view=repr(view))
            self._rebuild(view)
        else:
            self._stale.discard(id(view))

    def _rebuild(self, view: View) -> None:
        try:
            view.replace(self._store.list())
        except Exception:
            log.exception("view failed again, trying at the next change", kind=self._kind, view=repr(view))
            self._stale.add(id(view))


def _apply(view: View, changes: Iterable[tuple[Obj | None, Obj | None]]) -> None:
    for old, new in changes:
        if old is not None and new is not None and uid_of(old) != uid_of(new):
            view.apply(old, None)
            view.apply(None, new)
        else:
            view.apply(old, new)
