"""One kind's objects kept current, and everybody told of changes: store, then views, then handlers, in one step."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import structlog

from lwskit.runtime.cache.listwatch import Applied, Bookmark, Deleted, Replace, WatchEvent
from lwskit.runtime.cache.store import IndexFunction, Store
from lwskit.runtime.cache.transform import Transform, strip_managed_fields
from lwskit.runtime.cache.view import Handler, View
from lwskit.runtime.cache.watcher import Watcher
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import LwskitError
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Key, Obj, Selector, key_of, labels_of, newer, uid_of, version_of
from lwskit.runtime.tasks import TaskOwner

log = structlog.get_logger(__name__)


class Informer:
    """The objects of one kind, namespace and selector.

    `store` is read by everybody; views and handlers are told of each change in the same step that makes it, so none of
    them ever sees a store older than what it is told. `synced` is set once the first list was handed out. `transform`
    is applied to every object before it is stored (default: without managedFields). `resync` is the period in seconds
    after which handlers that asked for it get every object again. Specification: 70 §2.8–2.11.
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
    ) -> None:
        self.kind = kind
        self.namespace = namespace
        self.label_selector = label_selector
        self.field_selector = field_selector
        self.store = Store(kind.namespaced)
        self.synced = asyncio.Event()
        self._selector = Selector.parse(label_selector)
        self._transform = transform or strip_managed_fields()
        self._views: list[View] = []
        self._stale_views: set[int] = set()
        self._handlers: list[tuple[Handler, bool]] = []
        self._health_handlers: list[Callable[[bool], None]] = []
        self._clock = clock
        self._resync = max(resync, 1.0) * (0.9 + 0.2 * rng.random()) if resync else None
        self._seen = ""
        self._removed: set[str] = set()
        """UIDs of what we deleted ourselves and the watch has not told to be gone."""
        self._watcher = Watcher(
            kind,
            client,
            clock,
            rng,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            streaming=streaming,
            on_health=self._health_changed,
        )

    @property
    def healthy(self) -> bool:
        """False while the watch is known to be broken or has not brought the first list: the store may be behind."""
        return self._watcher.healthy

    def add_health_handler(self, handler: Callable[[bool], None]) -> None:
        """Call a function whenever `healthy` changes, with its new value.

        Whoever holds back while the watch is broken learns here that it may go on: no event has to come.
        """
        self._health_handlers.append(handler)

    def _health_changed(self, healthy: bool) -> None:
        for handler in [*self._health_handlers]:
            try:
                handler(healthy)
            except Exception:
                log.exception("health handler failed", kind=self.kind.qualified, handler=repr(handler))

    @property
    def last_error(self) -> LwskitError | None:
        """Why the last request of the watch failed; None while it works."""
        return self._watcher.last_error

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Index objects by the values a function returns. Raises ConfigurationError for a name that is taken."""
        self.store.add_index(name, function)

    def add_view(self, view: View) -> None:
        """Keep a view current from now on; it starts with everything that is stored."""
        self._views.append(view)
        if self.synced.is_set():
            self._guard_view(view, lambda: view.replace(self.store.list()))

    def add_handler(self, handler: Handler, *, resync: bool = False) -> None:
        """Tell a handler of all changes from now on, after everything that is stored was told as initial adds.

        With `resync` it also gets everything again each time the informer's resync period has passed.
        """
        self._handlers.append((handler, resync))
        if self.synced.is_set():
            for obj in self.store.list():
                self._call(handler, "on_add", obj, True)

    def remove_handler(self, handler: Handler) -> None:
        """Tell a handler no more."""
        self._handlers = [(one, resync) for one, resync in self._handlers if one is not handler]

    async def wait_synced(self) -> None:
        """Wait until the first list was stored and handed out. Cancelling it only ends the wait."""
        await self.synced.wait()

    async def run(self) -> None:
        """List and watch until cancelled; failures of the server are retried for ever."""
        if self._resync is None:
            await self._watcher.run(self.handle)
            return
        async with TaskOwner(f"informer {self.kind.qualified}") as owner:
            owner.start(self._watcher.run(self.handle), "watch")
            owner.start(self._resync_for_ever(self._resync), "resync")

    async def _resync_for_ever(self, period: float) -> None:
        await self.wait_synced()
        while True:
            await self._clock.sleep(period)
            for obj in self.store.list():
                for handler, due in [*self._handlers]:
                    if due:
                        self._call(handler, "on_update", obj, obj)

    # Changes.

    def handle(self, event: WatchEvent) -> None:
        """Take in one event of the watch: store, views, handlers, in this one step."""
        match event:
            case Applied(obj):
                self._applied(self._prepared(obj))
                self._progress(version_of(obj))
            case Deleted(obj):
                self._deleted(self._prepared(obj))
                self._progress(version_of(obj))
            case Bookmark(version):
                self._progress(version)
            case Replace(objects, version):
                self._replaced([self._prepared(obj) for obj in objects], version)

    def ingest(self, obj: Obj) -> bool:
        """Take in the server's answer to a write of our own; returns whether it was newer than what is known.

        Only what the watch has not told yet is taken: what it told, and then told to be gone, does not come back. An
        answer without the object (a Status), of another namespace or that the selectors do not match is left to the
        watch, and everything is before the first list. Specification: architecture, rule 5.
        """
        meta = obj.get("metadata") or {}
        if not self.synced.is_set() or obj.get("kind", self.kind.kind) != self.kind.kind or "name" not in meta:
            return False
        if self.namespace and meta.get("namespace") != self.namespace:
            return False
        version = version_of(obj)
        old = self.store.get(key_of(obj))
        if uid_of(obj) in self._removed or not self._selector.matches(labels_of(obj)):
            return False
        if self.field_selector and (old is None or uid_of(old) != uid_of(obj)):
            # Whether it matches is the server's knowledge.
            return False
        if not newer(version, self._seen) or (old is not None and not newer(version, version_of(old))):
            return False
        self._applied(self._prepared(obj))
        return True

    def forget(self, key: Key, uid: str) -> bool:
        """Take in that a deletion of our own has removed an object; returns whether it was known.

        Views and handlers are told now, and not once more by the watch; what the watch still tells of the object from
        before is passed over. Specification: architecture, rule 5.
        """
        old = self.store.get(key)
        if not self.synced.is_set() or old is None or uid_of(old) != uid:
            return False
        self._removed.add(uid)
        self.store.remove(key)
        self._view(old, None)
        self._notify("on_delete", old, False)
        return True

    def _prepared(self, obj: Obj) -> Obj:
        try:
            return self._transform(obj)
        except Exception:
            log.exception("transform failed, storing the object as it came", kind=self.kind.qualified)
            return obj

    def _progress(self, version: str) -> None:
        if not self._seen or newer(version, self._seen) or not version.isdecimal():
            self._seen = version

    def _applied(self, obj: Obj) -> None:
        if uid_of(obj) in self._removed:
            return
        old = self.store.get(key_of(obj))
        if old is not None and _not_newer(version_of(obj), version_of(old)):
            # An answer to a write of our own brought this version or a later one before the watch did.
            return
        self.store.put(obj)
        if old is not None and uid_of(old) != uid_of(obj):
            self._view(old, None)
            self._view(None, obj)
            self._notify("on_delete", old, True)
            self._notify("on_add", obj, False)
        elif old is not None:
            self._view(old, obj)
            self._notify("on_update", old, obj)
        else:
            self._view(None, obj)
            self._notify("on_add", obj, False)

    def _deleted(self, obj: Obj) -> None:
        if uid_of(obj) in self._removed:
            self._removed.remove(uid_of(obj))
            return
        key = key_of(obj)
        old = self.store.get(key)
        if old is not None and newer(version_of(old), version_of(obj)):
            # A successor of that name is known already; the deletion was told when it came.
            return
        self.store.remove(key)
        if old is not None and uid_of(old) != uid_of(obj):
            self._view(old, None)
            self._notify("on_delete", old, True)
        elif old is not None:
            self._view(old, None)
        self._notify("on_delete", obj, False)

    def _replaced(self, objects: list[Obj], version: str) -> None:
        initial = not self.synced.is_set()
        listed = {key_of(obj): obj for obj in objects}
        # A list older than what the watch told means that the server was restored: then only the list counts.
        restored = newer(self._seen, version)
        if restored:
            self._removed.clear()
        # A list from before our deletion still has the object; one without it leaves nothing to be told.
        self._removed &= {uid_of(obj) for obj in objects}
        listed = {key: obj for key, obj in listed.items() if uid_of(obj) not in self._removed}
        if not initial and not restored:
            for obj in self.store:
                key, known = key_of(obj), version_of(obj)
                rival = listed.get(key)
                if newer(known, version_of(rival) if rival is not None else version):
                    # Answers to our own writes may be ahead of the list.
                    listed[key] = obj
        former = self.store.swap(listed.values())
        self._seen = version
        for view in self._views:
            self._guard_view(view, lambda view=view: view.replace(self.store.list()))
        for key, old in former.items():
            new = listed.get(key)
            if new is None or uid_of(new) != uid_of(old):
                self._notify("on_delete", old, True)
        for key, new in listed.items():
            old = former.get(key)
            if old is None or uid_of(old) != uid_of(new):
                self._notify("on_add", new, initial)
            elif version_of(old) != version_of(new):
                self._notify("on_update", old, new)
        self.synced.set()

    # Telling.

    def _view(self, old: Obj | None, new: Obj | None) -> None:
        for view in self._views:
            if id(view) in self._stale_views:
                self._guard_view(view, lambda view=view: view.replace(self.store.list()))
            else:
                self._guard_view(view, lambda view=view: view.apply(old, new))

    def _guard_view(self, view: View, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception:
            log.exception("view failed, giving it everything again", kind=self.kind.qualified, view=repr(view))
            self._rebuild(view)
        else:
            self._stale_views.discard(id(view))

    def _rebuild(self, view: View) -> None:
        try:
            view.replace(self.store.list())
        except Exception:
            log.exception("view failed again, trying at the next change", kind=self.kind.qualified, view=repr(view))
            self._stale_views.add(id(view))

    def _notify(self, what: str, *arguments: Any) -> None:
        for handler, _ in [*self._handlers]:
            self._call(handler, what, *arguments)

    def _call(self, handler: Handler, what: str, *arguments: Any) -> None:
        try:
            getattr(handler, what)(*arguments)
        except Exception:
            log.exception("handler failed", kind=self.kind.qualified, call=what, handler=repr(handler))


def _not_newer(candidate: str, current: str) -> bool:
    """Whether a version is certainly not later than another; opaque versions never are, unless equal."""
    return candidate == current or newer(current, candidate)
