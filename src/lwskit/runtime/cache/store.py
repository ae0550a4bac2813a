"""The objects of one informer with their indexes. Plain and synchronous: every change is one step without an await."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import structlog

from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.objects import Key, Obj, Selector, key_of, labels_of

log = structlog.get_logger(__name__)

IndexFunction: TypeAlias = Callable[[Obj], Iterable[str]]
"""Tells under which values an object is to be found."""


class _Index:
    """Objects by value, and by namespace and value."""

    def __init__(self, name: str, function: IndexFunction) -> None:
        self.name = name
        self.function = function
        self.everywhere: dict[str, dict[Key, Obj]] = {}
        self.inside: dict[tuple[str, str], dict[Key, Obj]] = {}

    def change(self, key: Key, old: Obj | None, new: Obj | None) -> None:
        before, after = self._values(old), self._values(new)
        for value in before - after:
            _drop(self.everywhere, value, key)
            _drop(self.inside, (key.namespace, value), key)
        if new is not None:
            for value in after:
                self.everywhere.setdefault(value, {})[key] = new
                self.inside.setdefault((key.namespace, value), {})[key] = new

    def _values(self, obj: Obj | None) -> set[str]:
        if obj is None:
            return set()
        try:
            return set(self.function(obj))
        except Exception:
            # A function that cannot read one object must not keep the others from the store.
            log.exception("index function failed", index=self.name, object=str(key_of(obj)))
            return set()


def _drop(entries: dict[Any, dict[Key, Obj]], entry: str | tuple[str, str], key: Key) -> None:
    found = entries.get(entry)
    if found is not None:
        found.pop(key, None)
        if not found:
            del entries[entry]


class Store:
    """The objects of one informer, by key, namespace and index.

    What it hands out is shared: never change it. Reading needs no lock and is never half-way through a change.
    Specification: 70 §2.1, §2.12.
    """

    def __init__(self, namespaced: bool = True) -> None:
        self._namespaced = namespaced
        self._objects: dict[Key, Obj] = {}
        self._namespaces: dict[str, dict[Key, Obj]] = {}
        self._indexes: dict[str, _Index] = {}

    def get(self, key: Key) -> Obj | None:
        """The object with that key, or None. For a cluster-scoped kind the key's namespace is ignored."""
        return self._objects.get(key if self._namespaced else Key("", key.name))

    def list(self, namespace: str | None = None, selector: Selector | None = None) -> list[Obj]:
        """All objects, or those of one namespace, that match the label selector; in no order."""
        if namespace and self._namespaced:
            found = self._namespaces.get(namespace, {}).values()
        else:
            found = self._objects.values()
        if selector is None or not selector.requirements:
            return [*found]
        return [obj for obj in found if selector.matches(labels_of(obj))]

    def by_index(self, name: str, value: str, namespace: str | None = None) -> list[Obj]:
        """The objects that an index has under a value, everywhere or in one namespace.

        Raises ConfigurationError for an index that was never added.
        """
        index = self._indexes.get(name)
        if index is None:
            known = ", ".join(sorted(self._indexes)) or "none"
            raise ConfigurationError(f"index {name!r} does not exist; add it to the informer first (known: {known})")
        if namespace and self._namespaced:
            return [*index.inside.get((namespace, value), {}).values()]
        return [*index.everywhere.get(value, {}).values()]

    def has_index(self, name: str) -> bool:
        """Whether an index of that name was added."""
        return name in self._indexes

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[Obj]:
        return iter([*self._objects.values()])

    def __contains__(self, key: Key) -> bool:
        return self.get(key) is not None

    # What follows changes the store and belongs to its informer.

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Index all objects, present and future, by the values a function returns.

        Raises ConfigurationError for a name that is taken.
        """
        if name in self._indexes:
            raise ConfigurationError(f"index {name!r} exists already; use another name")
        index = _Index(name, function)
        for key, obj in self._objects.items():
            index.change(key, None, obj)
        self._indexes[name] = index

    def put(self, obj: Obj) -> Obj | None:
        """Store an object; returns the one it replaces."""
        key = key_of(obj)
        old = self._objects.get(key)
        self._objects[key] = obj
        self._namespaces.setdefault(key.namespace, {})[key] = obj
        for index in self._indexes.values():
            index.change(key, old, obj)
        return old

    def remove(self, key: Key) -> Obj | None:
        """Take an object out; returns it, or None when there was none."""
        old = self._objects.pop(key, None)
        if old is not None:
            _drop(self._namespaces, key.namespace, key)
            for index in self._indexes.values():
                index.change(key, old, None)
        return old

    def swap(self, objects: Iterable[Obj]) -> dict[Key, Obj]:
        """Replace the whole content in one step; returns the former content."""
        former = self._objects
        self._objects = {key_of(obj): obj for obj in objects}
        self._namespaces = {}
        for key, obj in self._objects.items():
            self._namespaces.setdefault(key.namespace, {})[key] = obj
        for name, index in [*self._indexes.items()]:
            rebuilt = self._indexes[name] = _Index(name, index.function)
            for key, obj in self._objects.items():
                rebuilt.change(key, None, obj)
        return former
