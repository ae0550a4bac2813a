"""One kind's objects kept current, and everybody told of changes: store, then views, then handlers, in one step."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import structlog

from lwskit.runtime.cache.handlers import AsyncHandler, Audience, BufferedRegistration, Registration
from lwskit.runtime.cache.listwatch import Applied, Bookmark, Deleted, Replace, WatchEvent
from lwskit.runtime.cache.mutation import MutationDetector
from lwskit.runtime.cache.part import Part
from lwskit.runtime.cache.relist import Relist, is_same
from lwskit.runtime.cache.resync import Resync
from lwskit.runtime.cache.settings import Scope
from lwskit.runtime.cache.soundness import is_sound, name_of, object_fault
from lwskit.runtime.cache.store import IndexFunction, Store
from lwskit.runtime.cache.transform import StripManagedFields, Transform, of_own, strip_managed_fields
from lwskit.runtime.cache.view import Handler, View, Views
from lwskit.runtime.cache.watcher import Watcher
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import ConfigurationError, LwskitError
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Key, Obj, key_of, newer, uid_of, version_of
from lwskit.runtime.tasks import TaskOwner

log = structlog.get_logger(__name__)


class Informer:
    """The objects of one kind, namespace and selector, or of several such `scopes` in one store.

    `store` is read by everybody; views and handlers are told of each change in the same step that makes it, so none of
    them ever sees a store older than what it is told. `synced` is set once the first list was handed out. `transform`
    is applied to every object before it is stored (default: without managedFields). `resync` is the period in seconds
    after which handlers that ask for it get every object again. `idle` is the silence in seconds after which a watch is
    opened anew. `on_watch_error` is told of each round of list and watch that failed. `detect_mutations`, for tests,
    ends the run when somebody has changed a stored object. Specification: 70 §2.8–2.11.
    """

    def __init__(
        self,
        kind: Kind,
        client: Client,
        clock: Clock,
        rng: random.Random,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        transform: Transform | None = None,
        *,
        resync: float | None = None,
        streaming: bool = True,
        bookmarks: bool = True,
        idle: float | None = None,
        on_watch_error: Callable[[Scope, LwskitError], None] | None = None,
        detect_mutations: bool = False,
        scopes: Sequence[Scope] = (),
    ) -> None:
        self.kind = kind
        self.scopes = tuple(scopes) or (
            Scope(
                namespace or "",
                label_selector or "",
                field_selector or "",
                transform,
                bookmarks=bookmarks,
                resync=resync or 0.0,
            ),
        )
        self.store = Store(kind.namespaced)
        self.synced = asyncio.Event()
        self._transform = transform or strip_managed_fields()
        self._clock = clock
        self._views = Views(kind.qualified, self.store)
        self._audience = Audience()
        self._health_handlers: list[Callable[[bool], None]] = []
        self._healthy = False
        self._detector = MutationDetector(kind.qualified, self.store) if detect_mutations else None
        self._owner: TaskOwner | None = None
        self._resync = Resync(self.store, self._audience, clock, rng, self.scopes)

        def failed(scope: Scope, error: LwskitError) -> None:
            if on_watch_error is not None:
                on_watch_error(scope, error)

        self._parts = [
            Part(
                scope,
                Watcher(
                    kind,
                    client,
                    clock,
                    rng,
                    namespace=scope.path_namespace or None,
                    label_selector=scope.label_selector,
                    field_selector=scope.field_selector,
                    streaming=streaming and scope.bookmarks,
                    bookmarks=scope.bookmarks,
                    idle=idle,
                    prepare=partial(self._prepared, of_own(scope.transform or self._transform)),
                    prepare_listed=partial(self._listed, of_own(scope.transform or self._transform)),
                    on_health=self._health_changed,
                    on_error=partial(failed, scope),
                ),
            )
            for scope in self.scopes
        ]

    @property
    def namespace(self) -> str | None:
        """The only namespace whose objects it has, or None."""
        return (self.scopes[0].namespace or None) if len(self.scopes) == 1 else None

    @property
    def label_selector(self) -> str | None:
        """The label selector, None without one; of several scopes that of the first."""
        return self.scopes[0].label_selector or None

    @property
    def field_selector(self) -> str | None:
        """The field selector, None without one; of several scopes that of the first."""
        return self.scopes[0].field_selector or None

    @property
    def healthy(self) -> bool:
        """False while a watch is known to be broken or has not brought its first list: the store may be behind."""
        return all(part.watcher.healthy for part in self._parts)

    def add_health_handler(self, handler: Callable[[bool], None]) -> None:
        """Call a function whenever `healthy` changes, with its new value.

        Whoever holds back while the watch is broken learns here that it may go on: no event has to come.
        """
        self._health_handlers.append(handler)

    def _health_changed(self, _: bool) -> None:
        healthy = self.healthy
        if healthy == self._healthy:
            return
        self._healthy = healthy
        for handler in [*self._health_handlers]:
            try:
                handler(healthy)
            except Exception:
                log.exception("health handler failed", kind=self.kind.qualified, handler=repr(handler))

    @property
    def last_error(self) -> LwskitError | None:
        """Why the last request of a watch failed; None while all work."""
        return next((part.watcher.last_error for part in self._parts if part.watcher.last_error), None)

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Index objects by the values a function returns. Raises ConfigurationError for a name that is taken."""
        self.store.add_index(name, function)

    def add_view(self, view: View) -> None:
        """Keep a view current from now on; it starts with everything that is stored."""
        self._views.add(view, any(part.filled for part in self._parts))

    def add_handler(self, handler: Handler, *, resync: bool | float = False) -> Registration:
        """Tell a handler of all changes from now on, after everything that is stored was told as initial adds.

        `resync` is the period in seconds after which it gets every object again, True for the informer's own.
        """
        return self._register(Registration(handler, self.kind.qualified, _period(resync)))

    def add_async_handler(self, handler: AsyncHandler, *, resync: bool | float = False) -> Registration:
        """Tell a handler that may wait: it has a buffer without limit and, while the informer runs, a task of its own.

        A call that raises is logged, and the next one comes a second later. `resync` as for `add_handler`.
        """
        return self._register(BufferedRegistration(handler, self.kind.qualified, _period(resync), self._clock))

    def _register(self, registration: Registration) -> Registration:
        self._audience.add(registration)
        for obj in self.store.list():
            registration.tell("on_add", obj, True)
        if self.synced.is_set():
            registration.caught_up()
        if self._owner is not None:
            self._start(self._owner, registration)
        return registration

    def _start(self, owner: TaskOwner, registration: Registration) -> None:
        if isinstance(registration, BufferedRegistration):
            registration.consumer = owner.start(registration.run(), f"handler {registration.handler!r}")
        self._resync.add(registration, owner)

    def remove_handler(self, handler: Handler | AsyncHandler) -> None:
        """Tell a handler no more; what waits in its buffer is forgotten."""
        for registration in [r for r in self._audience.registrations if r.handler is handler]:
            self._audience.remove(registration)
            self._resync.remove(registration)
            if isinstance(registration, BufferedRegistration) and registration.consumer is not None:
                registration.consumer.cancel()

    async def wait_synced(self) -> None:
        """Wait until the first list was stored and handed out. Cancelling it only ends the wait."""
        await self.synced.wait()

    def check_mutations(self) -> None:
        """Raise CachedObjectChanged if somebody has changed a stored object; needs `detect_mutations`."""
        if self._detector is not None:
            self._detector.check()

    async def run(self) -> None:
        """List and watch until cancelled; failures of the server are retried for ever.

        Raises CachedObjectChanged where mutations are detected, ConfigurationError when it runs already.
        """
        if self._owner is not None:
            raise ConfigurationError(f"the informer of {self.kind.qualified} runs already")
        try:
            async with TaskOwner(f"informer {self.kind.qualified}") as owner:
                self._owner = owner
                for part in self._parts:
                    where = f" in {part.scope.namespace}" if part.scope.namespace else ""
                    owner.start(self._follow(part), f"watch{where}")
                for registration in self._audience.registrations:
                    self._start(owner, registration)
                if self._detector is not None:
                    owner.start(self._detector.run(self._clock), "mutation detector")
        finally:
            self._owner = None
            self._resync.stopped()

    # Changes.

    def handle(self, event: WatchEvent, scope: int = 0) -> None:
        """Take in one event of the watch of a scope: store, views, handlers, in this one step."""
        for _ in self._parts[scope].unfinished:
            pass
        self._handle(self._parts[scope], event)

    def replacing(self, event: Replace, scope: int = 0) -> Iterator[None]:
        """Take in a list as `handle` does, but in steps; others may run after each, and no event of that scope come."""
        return self._replacing(self._parts[scope], event)

    def _handle(self, part: Part, event: WatchEvent) -> None:
        if type(event) is Applied:
            obj = event.obj
            version = obj["metadata"].get("resourceVersion", "")
            if not part.told(version) or self.store.get(key_of(obj)) is not None:
                self._applied(part, obj, version)
                part.progress(version)
            # Else it is an old state of something that is gone: a watch may repeat itself, behind a proxy above all.
            return
        match event:
            case Deleted(obj):
                self._deleted(part, obj)
                part.progress(version_of(obj))
            case Bookmark(version):
                part.progress(version)
            case Replace():
                for _ in self._replacing(part, event):
                    pass

    def ingest(self, obj: Obj) -> bool:
        """Take in the server's answer to a write of our own; returns whether it was newer than what is known.

        Only what the watch has not told yet is taken: what it told, and then told to be gone, does not come back. An
        answer without the object (a Status), of another namespace or that the selectors do not match is left to the
        watch, and everything is before the first list. Specification: architecture, rule 5.
        """
        if obj.get("kind", self.kind.kind) != self.kind.kind or object_fault(obj):
            return False
        key = key_of(obj)
        part = self._part(key)
        if part is None or not part.synced or uid_of(obj) in part.removed:
            return False
        old = self.store.get(key)
        if not part.selects(obj, known=old is not None and uid_of(old) == uid_of(obj)):
            return False
        version = version_of(obj)
        if not newer(version, part.seen) or (old is not None and not newer(version, version_of(old))):
            return False
        if old is not None and uid_of(old) != uid_of(obj):
            # The watch has yet to tell how this one ended, whatever becomes of its successor.
            part.removed[uid_of(old)] = old
        self._applied(part, self._prepared(part.scope.transform or self._transform, obj), version)
        part.ahead[key] = None
        return True

    def forget(self, key: Key, uid: str) -> bool:
        """Take in that a deletion of our own has removed an object; returns whether it was known.

        Views and handlers are told now, and not once more by the watch; what the watch still tells of the object from
        before is passed over. Specification: architecture, rule 5.
        """
        part, old = self._part(key), self.store.get(key)
        if part is None or not part.synced or old is None or uid_of(old) != uid:
            return False
        part.removed[uid] = old
        part.ahead.pop(key, None)
        self.store.remove(key)
        self._views.apply((old, None))
        self._audience.tell("on_delete", old, False)
        return True

    def _part(self, key: Key) -> Part | None:
        return next((part for part in self._parts if part.scope.has(key.namespace)), None)

    def _prepared(self, transform: Transform, obj: Obj) -> Obj:
        try:
            result = transform(obj)
            if isinstance(getattr(transform, "__self__", transform), StripManagedFields):
                return result
            if not is_sound(result) and (fault := object_fault(result)):
                raise TypeError(f"it returned {result!r:.80}, which has {fault}; it has to return an object")
            if key_of(result) != key_of(obj):
                raise ValueError(f"it returned {key_of(result)}; it has to leave name and namespace as they are")
            return result
        except Exception as e:
            log.error(
                "transform failed; the object is stored as it came",
                kind=self.kind.qualified,
                function=name_of(transform),
                object=str(key_of(obj)),
                error=f"{type(e).__name__}: {e}",
            )
            return obj

    def _listed(self, transform: Transform, obj: Obj) -> Obj:
        # Of what is stored as it is listed no second copy is kept until the list is whole.
        known = self.store.get(key_of(obj))
        return known if known is not None and is_same(known, obj) else self._prepared(transform, obj)

    def _applied(self, part: Part, obj: Obj, version: str) -> None:
        if part.removed and uid_of(obj) in part.removed:
            return
        key = key_of(obj)
        old = self.store.get(key)
        if old is not None:
            known = version_of(old)
            if version == known or newer(known, version):
                # An answer to a write of our own brought this version or a later one before the watch did.
                if version == known:
                    part.ahead.pop(key, None)
                return
        if part.ahead:
            part.ahead.pop(key, None)
        self.store.put(key, obj)
        if self._detector is not None:
            self._detector.stored(obj)
        if self._views.any:
            self._views.apply((old, obj))
        if old is None:
            self._audience.tell("on_add", obj, False)
        elif old["metadata"].get("uid", "") == obj["metadata"].get("uid", ""):
            self._audience.tell("on_update", old, obj)
        else:
            self._audience.tell("on_delete", old, True)
            self._audience.tell("on_add", obj, False)

    def _deleted(self, part: Part, obj: Obj) -> None:
        if uid_of(obj) in part.removed:
            del part.removed[uid_of(obj)]
            return
        key = key_of(obj)
        old = self.store.get(key)
        if newer(version_of(old), version_of(obj)) if old is not None else part.told(version_of(obj)):
            # A successor of that name is known already, or nobody is; the deletion was told when it came.
            return
        part.ahead.pop(key, None)
        self.store.remove(key)
        if old is not None:
            self._views.apply((old, None))
        if old is not None and uid_of(old) != uid_of(obj):
            self._audience.tell("on_delete", old, True)
        self._audience.tell("on_delete", obj, False)

    async def _follow(self, part: Part) -> None:
        # A list that the last run was cancelled in is not asked for again.
        await self._finish(part)
        await part.watcher.run(partial(self._handle, part), partial(self._replace, part))

    async def _replace(self, part: Part, event: Replace) -> None:
        part.unfinished = self._replacing(part, event)
        await self._finish(part)

    async def _finish(self, part: Part) -> None:
        for _ in part.unfinished:
            await asyncio.sleep(0)

    def _replacing(self, part: Part, event: Replace) -> Iterator[None]:
        """Take in a list in steps. Of the store and the views all of it is one step, that of `swap`."""
        first = not part.filled
        relist = Relist(part, self.store, event, alone=len(self._parts) == 1)
        yield from relist.compare()
        relist.swap()
        part.seen, part.filled = event.version, True
        if self._detector is not None:
            for _, obj in relist.changed.values():
                self._detector.stored(obj)
        if relist.many:
            self._views.replace()
        else:
            self._views.apply(*((old, None) for old in relist.gone.values()), *relist.changed.values())
        told = self._audience.registrations
        due = [] if first else [r for r in told if r.is_due(self._parts.index(part))]
        unchanged = relist.unchanged() if due else iter(())
        # Whoever is added from now on is given everything that is stored.
        self._audience.put(told, relist.calls(first=first))
        self._audience.put(due, unchanged)
        yield from self._audience.drain()
        yield from relist.release()
        part.synced = True
        if not self.synced.is_set() and all(part.synced for part in self._parts):
            self.synced.set()
            for registration in self._audience.registrations:
                registration.caught_up()


def _period(resync: bool | float) -> float | None:
    """What a handler asks for, as a Registration has it."""
    return None if resync is True else float(resync)
