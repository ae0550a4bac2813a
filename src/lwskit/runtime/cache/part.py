"""One scope of an informer: what is known of it, and how a new list of it differs. Synchronous, and tells nobody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lwskit.runtime.cache import fields
from lwskit.runtime.cache.settings import Scope
from lwskit.runtime.cache.store import Store
from lwskit.runtime.cache.watcher import Watcher
from lwskit.runtime.objects import Key, Obj, Selector, key_of, labels_of, newer, uid_of, version_of


@dataclass(frozen=True, slots=True)
class Differences:
    """How a new list differs from what is stored: what went, what came or changed, and what did neither."""

    gone: list[Obj]
    changes: list[tuple[Obj | None, Obj]]
    unchanged: list[Obj]

    @property
    def replaced(self) -> list[Obj]:
        """What went although its name is still there: it belongs to another object now."""
        return [old for old, new in self.changes if old is not None and uid_of(old) != uid_of(new)]


class Part:
    """What is known of one scope: how far its watch has told, and where answers to own writes are ahead of it."""

    def __init__(self, scope: Scope, watcher: Watcher) -> None:
        self.scope = scope
        self.watcher = watcher
        self.labels = Selector.parse(scope.label_selector)
        self.fields = fields.parse(scope.field_selector)
        self.filled = False
        """Whether the store has its first list; `synced` is set once that was handed out too."""
        self.synced = False
        self.seen = ""
        self.removed: set[str] = set()
        """UIDs of what we deleted ourselves and the watch has not told to be gone."""
        self.ahead: set[Key] = set()
        """What an answer brought and the watch has not told yet."""

    def progress(self, version: str) -> None:
        """The watch has told everything up to a version."""
        if not self.seen or newer(version, self.seen) or not version.isdecimal():
            self.seen = version

    def selects(self, obj: Obj, known: bool) -> bool:
        """Whether an answer belongs here; what only the server can tell counts as unchanged."""
        if not self.labels.matches(labels_of(obj)):
            return False
        match = fields.matches(self.fields, obj)
        return known if match is None else match

    def compare(self, store: Store, objects: Sequence[Obj], version: str) -> Differences:
        """How the store differs from a new list; own writes that the list does not know yet count as in it."""
        listed = {key_of(obj): obj for obj in objects}
        # A list older than what the watch told means that the server was restored: then only the list counts.
        if newer(self.seen, version):
            self.removed.clear()
            self.ahead.clear()
        if self.removed:
            # A list from before our deletion still has the object; one without it leaves nothing to be told.
            self.removed &= {uid_of(obj) for obj in objects}
            listed = {key: obj for key, obj in listed.items() if uid_of(obj) not in self.removed}
        for key in [*self.ahead]:
            # Answers to our own writes may be ahead of the list.
            known, rival = store.get(key), listed.get(key)
            if known is not None and newer(version_of(known), version_of(rival) if rival is not None else version):
                listed[key] = known
            else:
                self.ahead.discard(key)
        gone = [o for o in store if (key := key_of(o)) not in listed and self.scope.has(key.namespace)]
        changes: list[tuple[Obj | None, Obj]] = []
        unchanged: list[Obj] = []
        for key, new in listed.items():
            old = store.get(key)
            if old is not None and version_of(old) == version_of(new) and uid_of(old) == uid_of(new):
                unchanged.append(old)
            else:
                changes.append((old, new))
        return Differences(gone, changes, unchanged)
