"""The database: objects by table and key, one growing resourceVersion, a bounded history that watches follow.

Objects handed to it belong to it and never change again; what it hands out is shared. Everything is synchronous.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import orjson

from lwskit.runtime.objects import Obj

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"


class OutrunError(Exception):
    """The history no longer reaches back to the version asked for; `oldest` is the oldest one that can be had."""

    def __init__(self, asked: int, oldest: int) -> None:
        super().__init__(f"version {asked} is older than {oldest}, where the history begins")
        self.asked = asked
        self.oldest = oldest


class StaleError(Exception):
    """The object changed (or appeared, or went) since the caller read it."""


class Entry:
    """One version of one object. `views` caches its other forms (JSON bytes, converted versions) by name."""

    __slots__ = ("_json", "obj", "version", "views")

    def __init__(self, obj: Obj, version: int) -> None:
        self.obj = obj
        self.version = version
        self.views: dict[Any, Any] = {}
        self._json: bytes | None = None

    @property
    def json(self) -> bytes:
        """The object encoded, once."""
        if self._json is None:
            self._json = orjson.dumps(self.obj)
        return self._json


class Change(NamedTuple):
    """One step of a table: `entry` is the state after it (the last one, for a deletion), `old` the one before."""

    type: str
    entry: Entry
    old: Entry | None


Filter = Callable[[Obj], bool]
"""Whether a list or a watch wants to see an object."""


def key(namespace: str | None, name: str) -> str:
    """The key of an object inside its table; sorts as a real server's listing does."""
    return f"{namespace}/{name}" if namespace else name


class Watch:
    """What one watcher has not read yet. Closed by its reader, or by the store when it falls too far behind."""

    def __init__(self, table: _Table, prefix: str, wanted: Filter | None, limit: int) -> None:
        self._table = table
        self._prefix = prefix
        self._wanted = wanted
        self._limit = limit
        self._pending: deque[tuple[str, Entry]] = deque()
        self._wake = asyncio.Event()
        self.since = 0
        """Changes up to this version are known to the reader; it may lie in the future."""
        self.version = 0
        """The version that the reader has seen everything of, once it has taken what is pending."""
        self.closed = False

    def offer(self, place: str, change: Change) -> None:
        """Take in a change if the filter wants its old or new state (specification: 70 §2.6 for the reader's side)."""
        self.version = change.entry.version
        if self.version <= self.since or not place.startswith(self._prefix):
            return
        kind, entry = change.type, change.entry
        if self._wanted is not None:
            before = change.old is not None and self._wanted(change.old.obj)
            now = kind != DELETED and self._wanted(entry.obj)
            if now:
                kind = MODIFIED if before else ADDED
            elif before:
                kind, entry = DELETED, _left(change)
            else:
                return
        self._pending.append((kind, entry))
        if len(self._pending) > self._limit:
            self.close()
        self._wake.set()

    def start_with(self, entries: list[Entry]) -> None:
        """Begin with these objects as if they had just been added."""
        self._pending.extend((ADDED, e) for e in entries)
        self._wake.set()

    def take(self) -> list[tuple[str, Entry]]:
        """Everything pending, at once."""
        found = list(self._pending)
        self._pending.clear()
        self._wake.clear()
        return found

    @property
    def pending(self) -> bool:
        """Whether something waits to be taken."""
        return bool(self._pending)

    async def wait(self, seconds: float) -> None:
        """Return when something is pending, the watch is closed, or the time is over. Cancelling changes nothing."""
        if self._pending or self.closed:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return

    def close(self) -> None:
        """Stop following. Idempotent."""
        if not self.closed:
            self.closed = True
            self._table.watches.pop(self, None)
            self._wake.set()


def _left(change: Change) -> Entry:
    """What a watcher sees of an object that left its selection: the state it knew, at the version of the change."""
    if change.type == DELETED or change.old is None:
        return change.entry
    cached = change.entry.views.get("left")
    if cached is None:
        old = change.old.obj
        meta = {**old["metadata"], "resourceVersion": str(change.entry.version)}
        cached = change.entry.views["left"] = Entry({**old, "metadata": meta}, change.entry.version)
    return cached


class _Table:
    """The objects of one resource."""

    __slots__ = ("entries", "forgotten", "history", "keys", "watches")

    def __init__(self, history: int, forgotten: int) -> None:
        self.entries: dict[str, Entry] = {}
        self.keys: list[str] = []
        self.history: deque[tuple[str, Change]] = deque(maxlen=history)
        self.forgotten = forgotten
        # In the order in which they were opened, so that a run repeats itself.
        self.watches: dict[Watch, None] = {}


class Store:
    """All tables.

    `history` is how many changes each table remembers for watches that come back; `pending` how many unread changes a
    watch may have before it is closed.
    """

    def __init__(self, *, history: int = 10_000, pending: int = 100_000, first_version: int = 1) -> None:
        self.version = first_version
        self._history = history
        self._pending = pending
        self._start = first_version
        self._tables: dict[str, _Table] = {}

    def _table(self, name: str) -> _Table:
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = _Table(self._history, self._start)
        return table

    def get(self, table: str, place: str) -> Entry | None:
        """The current state of one object, or None."""
        found = self._tables.get(table)
        return found.entries.get(place) if found else None

    def list(self, table: str, prefix: str = "") -> list[Entry]:
        """The current objects whose key has that prefix (`namespace/`), in key order."""
        found = self._table(table)
        if not prefix:
            return [found.entries[k] for k in found.keys]
        return [found.entries[k] for k in _range(found.keys, prefix)]

    def count(self, table: str, prefix: str = "") -> int:
        """How many objects have that prefix."""
        keys = self._table(table).keys
        return len(_range(keys, prefix)) if prefix else len(keys)

    def tables(self) -> Iterator[str]:
        """The names of the tables that were ever used."""
        return iter(list(self._tables))

    def changes(self, table: str) -> Iterator[tuple[str, Obj]]:
        """The type and the object of each remembered change of a table, oldest first."""
        for _, change in self._table(table).history:
            yield change.type, change.entry.obj

    def last_change(self, table: str) -> int:
        """The version of the last remembered change of a table, 0 where there is none."""
        history = self._table(table).history
        return history[-1][1].entry.version if history else 0

    def list_at(self, table: str, prefix: str, version: int) -> list[Entry]:
        """The objects as they were at a version. Raises OutrunError when the history does not reach back to it."""
        if version >= self.version:
            return self.list(table, prefix)
        found = self._table(table)
        if version < found.forgotten:
            raise OutrunError(version, found.forgotten)
        state = {k: found.entries[k] for k in (_range(found.keys, prefix) if prefix else found.keys)}
        for place, change in reversed(found.history):
            if change.entry.version <= version:
                break
            if not place.startswith(prefix):
                continue
            if change.old is None:
                state.pop(place, None)
            else:
                state[place] = change.old
        return [state[k] for k in sorted(state)]

    def create(self, table: str, place: str, obj: Obj) -> Entry:
        """Add an object and give it its version. Raises StaleError when the key is taken."""
        found = self._table(table)
        if place in found.entries:
            raise StaleError
        entry = self._stamp(obj)
        found.entries[place] = entry
        insort(found.keys, place)
        self._record(found, place, Change(ADDED, entry, None))
        return entry

    def update(self, table: str, place: str, obj: Obj, expected: Entry) -> Entry:
        """Replace an object. Raises StaleError when its state is no longer `expected`."""
        found = self._table(table)
        if found.entries.get(place) is not expected:
            raise StaleError
        entry = self._stamp(obj)
        found.entries[place] = entry
        self._record(found, place, Change(MODIFIED, entry, expected))
        return entry

    def delete(self, table: str, place: str, expected: Entry) -> Entry:
        """Remove an object and return its last state, at the version of the removal. Raises StaleError."""
        found = self._table(table)
        if found.entries.get(place) is not expected:
            raise StaleError
        entry = self._stamp({**expected.obj, "metadata": dict(expected.obj["metadata"])})
        del found.entries[place]
        del found.keys[bisect_left(found.keys, place)]
        self._record(found, place, Change(DELETED, entry, expected))
        return entry

    def _stamp(self, obj: Obj) -> Entry:
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        return Entry(obj, self.version)

    def _record(self, table: _Table, place: str, change: Change) -> None:
        if len(table.history) == table.history.maxlen:
            table.forgotten = table.history[0][1].entry.version
        table.history.append((place, change))
        for watch in list(table.watches):
            watch.offer(place, change)

    def watch(self, table: str, prefix: str, since: int | None, wanted: Filter | None = None) -> Watch:
        """Follow a table: the changes after version `since`, or with None the current objects and what comes after.

        Raises OutrunError when the history does not reach back to `since`.
        """
        found = self._table(table)
        watch = Watch(found, prefix, wanted, self._pending)
        if since is None:
            watch.start_with([e for e in self.list(table, prefix) if wanted is None or wanted(e.obj)])
        else:
            if since < found.forgotten:
                raise OutrunError(since, found.forgotten)
            watch.since = since
            for place, change in _after(found.history, since):
                watch.offer(place, change)
        watch.version = self.version
        if not watch.closed:
            found.watches[watch] = None
        return watch

    def compact(self) -> None:
        """Forget all history, so that every watch or list from an older version is answered 410 from now on."""
        self._start = self.version
        for table in self._tables.values():
            table.history.clear()
            table.forgotten = self.version

    def close_watches(self, table: str | None = None) -> None:
        """End all open watches (of one table), as a restart of a real server would."""
        for name, found in self._tables.items():
            if table in (None, name):
                for watch in list(found.watches):
                    watch.close()


def _range(keys: list[str], prefix: str) -> list[str]:
    """The keys that begin with a prefix, by bisection."""
    start = bisect_left(keys, prefix)
    end = bisect_left(keys, prefix[:-1] + chr(ord(prefix[-1]) + 1), start)
    return keys[start:end]


def _after(history: deque[tuple[str, Change]], version: int) -> list[tuple[str, Change]]:
    """The tail of the history behind a version."""
    tail = []
    for item in reversed(history):
        if item[1].entry.version <= version:
            break
        tail.append(item)
    tail.reverse()
    return tail
