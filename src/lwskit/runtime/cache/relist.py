"""A list on its way into the store: what it changes is found while others run, and becomes visible in one step."""

from __future__ import annotations

from collections.abc import Iterator

from lwskit.runtime.cache.listwatch import Replace
from lwskit.runtime.cache.part import Part
from lwskit.runtime.cache.release import emptying, release
from lwskit.runtime.cache.store import Content, Store
from lwskit.runtime.objects import Key, Obj, key_of, newer, uid_of, version_of

BATCH = 500
"""How many objects are worked through in between two turns of the event loop."""
FEW = 4
"""Changes to one of so many objects, or fewer, are made and told one by one; of more the whole content is new."""

Call = tuple[object, ...]
"""A method of a handler and its arguments."""


def is_same(old: Obj, new: Obj) -> bool:
    """Whether two objects are the same one in the same version."""
    return old is new or (version_of(old) == version_of(new) and uid_of(old) == uid_of(new))


class Relist:
    """Takes one list in: `compare`, then `swap`, then what `calls` and `unchanged` say is to be told.

    Between the steps of `compare` answers to own writes may change the part: what they touched, which is what the part
    has as `ahead` and `removed`, is looked at again in `swap`. The list is emptied on the way. With `alone` the part is
    all that the store has. Specification: 70 §2.8.
    """

    def __init__(self, part: Part, store: Store, event: Replace, *, alone: bool) -> None:
        self.gone: dict[Key, Obj] = {}
        self.changed: dict[Key, tuple[Obj | None, Obj]] = {}
        self.many = not part.filled
        """Whether so much has changed that views are better given everything."""
        self._part = part
        self._store = store
        self._objects = event.objects
        self._version = event.version
        self._alone = alone
        self._listed: dict[Key, Obj] = {}
        self._aside: Content | None = None

    def compare(self) -> Iterator[None]:
        """Find what the list changes; others may run after each step."""
        part, store, objects = self._part, self._store, self._objects
        # A list older than what the watch told means that the server was restored: then only the list counts.
        if newer(part.seen, self._version):
            part.removed.clear()
            part.ahead.clear()
        objects.reverse()
        while objects:
            for obj in [objects.pop() for _ in range(min(BATCH, len(objects)))]:
                key = key_of(obj)
                self._note(key, store.get(key), obj)
            if objects:
                yield
        for n, key in enumerate(store.all_keys(), 1):
            if key not in self._listed and part.scope.has(key.namespace):
                self._note(key, store.get(key), None)
            if n % BATCH == 0:
                yield
        self.many = self.many or (len(self.gone) + len(self.changed)) * FEW > len(store)
        if self.many and self._alone:
            self._aside = store.aside()
            for n, (key, obj) in enumerate(self._listed.items(), 1):
                self._aside.put(key, obj)
                if n % BATCH == 0:
                    yield

    def swap(self) -> None:
        """Make the list the content of the store, in this one step; own writes that it does not know yet stay."""
        touched = self._touched()
        for key in touched:
            self.gone.pop(key, None)
            self._note(key, self._store.get(key), self._listed.get(key))
        if self._aside is None:
            for key in self.gone:
                self._store.remove(key)
            for key, (_, new) in self.changed.items():
                self._store.put(key, new)
            return
        for key in touched:
            if (obj := self._listed.get(key)) is not None:
                self._aside.put(key, obj)
            else:
                self._aside.remove(key)
        self._aside = self._store.adopt(self._aside)

    def calls(self, *, first: bool) -> Iterator[Call]:
        """What all handlers are to be told after the swap; `first` of a first list."""
        for old in emptying(self.gone):
            yield "on_delete", old, True
        for old, new in emptying(self.changed):
            if old is not None and uid_of(old) == uid_of(new):
                yield "on_update", old, new
                continue
            if old is not None:
                yield "on_delete", old, True
            yield "on_add", new, first

    def unchanged(self) -> Iterator[Call]:
        """What only those are to be told who want to hear of unchanged objects too."""
        same = [obj for key, obj in self._listed.items() if key not in self.changed]
        return (("on_update", obj, obj) for obj in same)

    def release(self) -> Iterator[None]:
        """Let go of everything, when all was told; others may run after each step."""
        yield from release(self._listed)
        if self._aside is not None:
            yield from self._aside.release()

    def _note(self, key: Key, old: Obj | None, new: Obj | None) -> None:
        """Write down what the list makes of a key; of equal objects the stored one stays."""
        if new is None:
            self.changed.pop(key, None)
            if old is not None:
                self.gone[key] = old
        elif old is not None and is_same(old, new):
            self._listed[key] = old
            self.changed.pop(key, None)
        else:
            self._listed[key] = new
            self.changed[key] = old, new

    def _touched(self) -> list[Key]:
        """The keys at which own writes count as well, after they have been worked into the list."""
        part, listed = self._part, self._listed
        touched = dict.fromkeys([*map(key_of, part.removed.values()), *part.ahead])
        for uid, last in [*part.removed.items()]:
            key = key_of(last)
            rival = listed.get(key)
            if rival is not None and uid_of(rival) == uid:
                # The list is from before our deletion.
                del listed[key]
            elif not newer(version_of(last), self._version):
                # The list would have the object if there still was something to be told of it.
                del part.removed[uid]
        for key in [*part.ahead]:
            # Answers to our own writes may be ahead of the list.
            known, rival = self._store.get(key), listed.get(key)
            if known is not None and newer(version_of(known), version_of(rival) if rival else self._version):
                listed[key] = known
            else:
                del part.ahead[key]
        return [*touched]
