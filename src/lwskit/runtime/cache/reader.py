"""Cached reads with a client's manners: NotFound, selectors, copies that the caller may change."""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.cache.informer import Informer
from lwskit.runtime.cache.store import IndexFunction
from lwskit.runtime.errors import ConfigurationError, InvalidRequest, NotFound
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Key, Obj, Selector, labels_of


def copy_of(obj: Obj) -> Obj:
    """A copy of an object that shares nothing with it."""
    return orjson.loads(orjson.dumps(obj))


class Reader:
    """Reads from a running cache as a client reads from the server.

    A kind that is read for the first time gets an informer and the caller waits for its first list, unless
    `fail_on_missing`. Results are copies unless `copy` is False; then they are shared and must not be changed.
    Specification: 70 §2.9, §2.12.
    """

    def __init__(self, cache: Cache, *, fail_on_missing: bool = False) -> None:
        self._cache = cache
        self._fail_on_missing = fail_on_missing

    def add_field_index(self, kind: Kind, field: str, function: IndexFunction) -> None:
        """Make a field usable in field selectors. Raises ConfigurationError for one that is indexed already."""
        self._cache.informer(kind).add_index(_index(field), function)

    async def get(self, kind: Kind, name: str, namespace: str | None = None, *, copy: bool = True) -> Obj:
        """One object. Raises NotFound, and ConfigurationError before the cache runs.

        Cancelling it while it waits for a first list ends only the wait.
        """
        informer = await self._informer(kind)
        found = informer.store.get(Key(namespace or "", name))
        if found is None:
            raise NotFound(f'{kind.qualified} "{name}" not found', details={"name": name, "kind": kind.kind})
        return copy_of(found) if copy else found

    async def list(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        limit: int | None = None,
        copy: bool = True,
    ) -> list[Obj]:
        """Objects in no order, at most `limit`. A field selector needs an index for each of its exact matches.

        Raises InvalidRequest for selectors that cannot be used, and ConfigurationError before the cache runs.
        Cancelling it while it waits for a first list ends only the wait.
        """
        informer = await self._informer(kind)
        selector = Selector.parse(label_selector)
        found: Iterable[Obj]
        if field_selector:
            found = self._by_fields(informer, field_selector, namespace)
            found = (obj for obj in found if selector.matches(labels_of(obj)))
        else:
            found = informer.store.list(namespace, selector)
        chosen = [*found][:limit]
        return [copy_of(obj) for obj in chosen] if copy else chosen

    async def _informer(self, kind: Kind) -> Informer:
        if not self._cache.running:
            raise ConfigurationError(f"the cache is not started, can not read objects of kind {kind.qualified}")
        found = self._cache.find(kind)
        if found is None:
            if self._fail_on_missing:
                raise ConfigurationError(f"{kind.qualified} is not cached")
            found = self._cache.informer(kind)
        await found.wait_synced()
        return found

    @staticmethod
    def _by_fields(informer: Informer, text: str, namespace: str | None) -> Iterable[Obj]:
        matches: list[dict[int, Obj]] = []
        for part in text.split(","):
            field, equals, value = part.replace("==", "=").partition("=")
            if not equals or field.endswith("!"):
                raise InvalidRequest(f"non-exact field matches are not supported by the cache: {part!r}")
            if not informer.store.has_index(_index(field.strip())):
                raise InvalidRequest(f"field {field.strip()!r} of {informer.kind.qualified} has no index; add one")
            found = informer.store.by_index(_index(field.strip()), value.strip(), namespace)
            matches.append({id(obj): obj for obj in found})
        first, *others = matches
        return [obj for place, obj in first.items() if all(place in other for other in others)]


def _index(field: str) -> str:
    return f"field:{field}"
