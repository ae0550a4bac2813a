"""One scope of an informer, and what is known of it. Synchronous, and tells nobody."""

from __future__ import annotations

from collections.abc import Iterator

from lwskit.runtime.cache import fields
from lwskit.runtime.cache.settings import Scope
from lwskit.runtime.cache.watcher import Watcher
from lwskit.runtime.objects import Key, Obj, Selector, labels_of, newer


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
        self.removed: dict[str, Obj] = {}
        """By UID what answers showed to be gone and the watch has not told to be, as it was last known."""
        self.ahead: dict[Key, None] = {}
        """What an answer brought and the watch has not told yet, in the order in which it came."""
        self.unfinished: Iterator[None] = iter(())
        """What is left to do of a list."""

    def progress(self, version: str) -> None:
        """The watch has told everything up to a version."""
        if not self.seen or newer(version, self.seen) or not version.isdecimal():
            self.seen = version

    def told(self, version: str) -> bool:
        """Whether the watch has told that version already, so that it repeats itself if it does now."""
        return version == self.seen or newer(self.seen, version)

    def selects(self, obj: Obj, known: bool) -> bool:
        """Whether an answer belongs here; what only the server can tell counts as unchanged."""
        if not self.labels.matches(labels_of(obj)):
            return False
        match = fields.matches(self.fields, obj)
        return known if match is None else match
