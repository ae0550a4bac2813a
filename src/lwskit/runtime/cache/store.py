"""The objects of one informer with their indexes. Plain and synchronous: every change is one step without an await."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import structlog

from lwskit.runtime.cache.release import release
from lwskit.runtime.cache.soundness import name_of
from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.objects import Key, Obj, Selector, labels_of

log = structlog.get_logger(__name__)

IndexFunction: TypeAlias = Callable[[Obj], Iterable[str]]
"""Tells under which values an object is to be found."""


def field_index(field: str) -> str:
    """The name of the index that field selectors on that field use."""
    return f"field:{field}"


_Keys: TypeAlias = dict[Key, None]
"""A set of keys in the order in which they came, so that runs repeat themselves."""


class _Index:
    """Keys by value; `values` is what each object is found under."""

    def __init__(self, name: str, function: IndexFunction) -> None:
        self.name = name
        self.function = function
        self.keys: dict[str, _Keys] = {}
        self.values: dict[Key, tuple[str, ...]] = {}

    def put(self, key: Key, obj: Obj) -> None:
        before = self.values.get(key, ())
        try:
            found = self.function(obj)
            after = tuple(found)
            if before == after:
                return
            if isinstance(found, str):
                raise TypeError(f"it returned {found!r:.80} and not a list of values")
            hash(after)
        except Exception as e:
            # A function that cannot read one object must not keep the others from the store.
            log.error(
                "index function failed; the object is not found under this index",
                index=self.name,
                function=name_of(self.function),
                object=str(key),
                error=f"{type(e).__name__}: {e}",
            )
            after = ()
        for value in before:
            if value not in after:
                _drop(self.keys, value, key)
        for value in after:
            _add(self.keys, value, key)
        if after:
            self.values[key] = after
        else:
            self.values.pop(key, None)

    def remove(self, key: Key) -> None:
        for value in self.values.pop(key, ()):
            _drop(self.keys, value, key)


def _add(entries: dict[str, _Keys], entry: str, key: Key) -> None:
    found = entries.get(entry)
    if found is None:
        entries[entry] = {key: None}
    else:
        found[key] = None


def _drop(entries: dict[str, _Keys], entry: str, key: Key) -> None:
    found = entries.get(entry)
    if found is not None:
        found.pop(key, None)
        if not found:
            del entries[entry]


class Content:
    """Objects with their indexes, made aside to become the content of a store in one step."""

    def __init__(self, indexes: Iterable[tuple[str, IndexFunction]] = ()) -> None:
        self.objects: dict[Key, Obj] = {}
        self.namespaces: dict[str, _Keys] = {}
        self.indexes = {name: _Index(name, function) for name, function in indexes}

    def put(self, key: Key, obj: Obj) -> None:
        """Take an object in, or replace the one of its key."""
        if key not in self.objects:
            _add(self.namespaces, key[0], key)
        self.objects[key] = obj
        for index in self.indexes.values():
            index.put(key, obj)

    def remove(self, key: Key) -> Obj | None:
        """Take an object out; returns it, or None when there was none."""
        old = self.objects.pop(key, None)
        if old is not None:
            _drop(self.namespaces, key[0], key)
            for index in self.indexes.values():
                index.remove(key)
        return old

    def release(self) -> Iterator[None]:
        """Let go of everything; others may run after each step."""
        indexes = [entries for index in self.indexes.values() for entries in (index.keys, index.values)]
        return release(self.objects, *self.namespaces.values(), *indexes)


class Store:
    """The objects of one informer, by key, namespace and index.

    What it hands out is shared: never change it. Reading needs no lock and is never half-way through a change.
    Specification: 70 §2.1, §2.12.
    """

    def __init__(self, namespaced: bool = True) -> None:
        self._namespaced = namespaced
        self._content = Content()

    def get(self, key: Key) -> Obj | None:
        """The object with that key, or None. For a cluster-scoped kind the key's namespace is ignored."""
        return self._content.objects.get(key if self._namespaced else Key("", key.name))

    def list(self, namespace: str | None = None, selector: Selector | None = None) -> list[Obj]:
        """All objects, or those of one namespace, that match the label selector; in no order."""
        objects = self._content.objects
        found: Iterable[Obj] = objects.values()
        if namespace and self._namespaced:
            found = [objects[key] for key in self._content.namespaces.get(namespace, ())]
        if selector is None or not selector.requirements:
            return [*found]
        return [obj for obj in found if selector.matches(labels_of(obj))]

    def by_index(self, name: str, value: str, namespace: str | None = None) -> list[Obj]:
        """The objects that an index has under a value, everywhere or in one namespace.

        Raises ConfigurationError for an index that was never added.
        """
        index = self._content.indexes.get(name)
        if index is None:
            known = ", ".join(sorted(self._content.indexes)) or "none"
            raise ConfigurationError(f"index {name!r} does not exist; add it to the informer first (known: {known})")
        objects, found = self._content.objects, index.keys.get(value, {})
        if not namespace or not self._namespaced:
            return [objects[key] for key in found]
        inside = self._content.namespaces.get(namespace, {})
        if len(inside) < len(found):
            return [objects[key] for key in inside if key in found]
        return [objects[key] for key in found if key[0] == namespace]

    def all_keys(self) -> Sequence[Key]:
        """The keys of all objects."""
        return [*self._content.objects]

    def has_index(self, name: str) -> bool:
        """Whether an index of that name was added."""
        return name in self._content.indexes

    def __len__(self) -> int:
        return len(self._content.objects)

    def __iter__(self) -> Iterator[Obj]:
        return iter([*self._content.objects.values()])

    def __contains__(self, key: Key) -> bool:
        return self.get(key) is not None

    # What follows changes the store and belongs to its informer.

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Index all objects, present and future, by the values a function returns.

        Raises ConfigurationError for a name that is taken.
        """
        if name in self._content.indexes:
            raise ConfigurationError(f"index {name!r} exists already; use another name")
        index = _Index(name, function)
        for key, obj in self._content.objects.items():
            index.put(key, obj)
        self._content.indexes[name] = index

    def put(self, key: Key, obj: Obj) -> None:
        """Store an object in place of the one that has its key."""
        self._content.put(key, obj)

    def remove(self, key: Key) -> Obj | None:
        """Take an object out; returns it, or None when there was none."""
        return self._content.remove(key)

    def aside(self) -> Content:
        """An empty content with this store's indexes, to be filled and then given to `adopt`."""
        return Content((name, index.function) for name, index in self._content.indexes.items())

    def adopt(self, content: Content) -> Content:
        """Make this the content, in one step; returns what was it before.

        Indexes that were added since `aside` are built now.
        """
        for name, index in self._content.indexes.items():
            if name not in content.indexes:
                built = content.indexes[name] = _Index(name, index.function)
                for key, obj in content.objects.items():
                    built.put(key, obj)
        before, self._content = self._content, content
        return before
