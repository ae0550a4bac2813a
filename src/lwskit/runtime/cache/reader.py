"""Cached reads with a client's manners: NotFound, selectors, copies that the caller may change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from lwskit.runtime.cache import fields
from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.cache.informer import Informer
from lwskit.runtime.cache.store import IndexFunction, field_index
from lwskit.runtime.errors import ConfigurationError, InvalidRequest, NotFound
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Key, Obj, Selector, labels_of

NO_CONTINUATION = "continue-not-supported"
"""What a cached list has in place of a token to go on with: it is whole, or cut where `limit` says."""


def copy_of(obj: Obj) -> Obj:
    """A copy of an object that shares nothing with it."""
    return orjson.loads(orjson.dumps(obj))


class Reader:
    """Reads from a running cache as a client reads from the server.

    A kind that is read for the first time gets an informer and the caller waits for its first list, for at most
    `timeout` seconds, unless `fail_on_missing`. Results are copies unless the cache's settings or `copy` say otherwise;
    then they are shared and must not be changed. Reads may be behind what was written. Specification: 70 §2.9, §2.12.
    """

    def __init__(self, cache: Cache, *, fail_on_missing: bool = False, timeout: float | None = None) -> None:
        self._cache = cache
        self._fail_on_missing = fail_on_missing
        self._timeout = timeout

    def add_field_index(self, kind: Kind, field: str, function: IndexFunction) -> None:
        """Make a field usable in field selectors. Raises ConfigurationError for one that is indexed already."""
        self._cache.add_field_index(kind, field, function)

    async def get(self, kind: Kind, name: str, namespace: str | None = None, *, copy: bool | None = None) -> Obj:
        """One object. Raises NotFound, SyncTimeout, and ConfigurationError before the cache runs.

        Cancelling it while it waits for a first list ends only the wait.
        """
        informer = await self._informer(kind, namespace)
        found = informer.store.get(Key(namespace or "", name))
        if found is None:
            raise NotFound(f'{kind.qualified} "{name}" not found', details={"name": name, "kind": kind.kind})
        return copy_of(found) if _copies(informer, namespace, copy) else found

    async def list(
        self,
        kind: Kind,
        namespace: str | None = None,
        *,
        label_selector: str | None = None,
        field_selector: str | None = None,
        limit: int | None = None,
        continue_: str | None = None,
        copy: bool | None = None,
    ) -> list[Obj]:
        """Objects in no order, at most `limit`; there is no going on after them.

        A field selector needs an index for each of its conditions, which must be exact. Raises InvalidRequest for what
        a cache cannot do, SyncTimeout, and ConfigurationError before the cache runs. Cancelling it while it waits for a
        first list ends only the wait.
        """
        if continue_:
            raise InvalidRequest("continue list option is not supported by the cache")
        informer = await self._informer(kind, namespace)
        selector = Selector.parse(label_selector)
        found: Iterable[Obj]
        if field_selector:
            found = _by_fields(informer, field_selector, namespace)
            found = (obj for obj in found if selector.matches(labels_of(obj)))
        else:
            found = informer.store.list(namespace, selector)
        chosen = [*found][: limit or None]
        return [copy_of(o) if _copies(informer, o["metadata"].get("namespace"), copy) else o for o in chosen]

    async def list_object(self, kind: Kind, namespace: str | None = None, **options: Any) -> Obj:
        """What `list` gives, as the List object that a server answers with; its `metadata.continue` is no token.

        Raises, and is cancelled, as `list`.
        """
        return {
            "apiVersion": kind.api_version,
            "kind": f"{kind.kind}List",
            "metadata": {"continue": NO_CONTINUATION},
            "items": await self.list(kind, namespace, **options),
        }

    async def _informer(self, kind: Kind, namespace: str | None) -> Informer:
        if not self._cache.running:
            raise ConfigurationError("the cache is not started, can not read objects")
        found = self._cache.find(kind)
        if found is None:
            if self._fail_on_missing:
                raise ConfigurationError(f"{kind.group}/{kind.version}, Kind={kind.kind} is not cached")
            found = await self._cache.synced_informer(kind, timeout=self._timeout)
        else:
            await self._cache.wait_for(found, self._timeout)
        if namespace and kind.namespaced and not any(scope.has(namespace) for scope in found.scopes):
            known = ", ".join(scope.namespace for scope in found.scopes)
            raise ConfigurationError(f"{kind.kind} is not cached for namespace {namespace!r}, only for {known}")
        return found


def _copies(informer: Informer, namespace: str | None, wanted: bool | None) -> bool:
    if wanted is not None:
        return wanted
    return next((scope.copy for scope in informer.scopes if scope.has(namespace or "")), True)


def _by_fields(informer: Informer, text: str, namespace: str | None) -> list[Obj]:
    matches: list[dict[int, Obj]] = []
    for term in fields.parse(text):
        if not term.exact:
            raise InvalidRequest("non-exact field matches are not supported by the cache")
        name = field_index(term.field)
        if not informer.store.has_index(name):
            raise InvalidRequest(f"Index with name {name} does not exist; add one for {informer.kind.qualified} first")
        matches.append({id(obj): obj for obj in informer.store.by_index(name, term.value, namespace)})
    first, *others = matches
    return [obj for place, obj in first.items() if all(place in other for other in others)]
