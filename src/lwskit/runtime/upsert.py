"""Create an object or bring it up to date, in one call (specification: 70 §12)."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import NamedTuple, Protocol

import orjson

from lwskit.runtime.client.client import Client
from lwskit.runtime.errors import LwskitError, NotFound
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Obj, key_of
from lwskit.runtime.patch import merge_patch
from lwskit.runtime.semantic import semantic_equal

Mutate = Callable[[Obj], Obj | Awaitable[Obj | None] | None]
"""Brings an object to the wanted state: changes the one it is given, or returns another. May be asynchronous."""


class Outcome(StrEnum):
    """What create_or_update and create_or_patch did."""

    UNCHANGED = "unchanged"
    CREATED = "created"
    UPDATED = "updated"
    UPDATED_STATUS = "updatedStatus"
    """The object and its status."""
    UPDATED_STATUS_ONLY = "updatedStatusOnly"


class Upserted(NamedTuple):
    """The outcome, and the object as the server has it now."""

    outcome: Outcome
    obj: Obj


class MutateError(LwskitError):
    """The mutate function did what it may not."""


class ReaderLike(Protocol):
    """Where the present state is read: a client, or a cache's Reader."""

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Obj:
        """One object. Raises NotFound. Cancelling it only ends the wait."""
        ...


async def create_or_update(
    client: Client,
    kind: Kind,
    obj: Obj,
    mutate: Mutate,
    *,
    reader: ReaderLike | None = None,
    field_manager: str | None = None,
) -> Upserted:
    """Bring the object that has the name and namespace of `obj` to the state that `mutate` makes of it.

    If it does not exist, `mutate` is given a copy of `obj` and the result is created. Else it is given a copy of the
    object, and the result replaces it unless both mean the same. `reader` is where it is read, the client by default.
    Raises MutateError when `mutate` changes name or namespace; what it and the client raise: Conflict and AlreadyExists
    when another was faster. When cancelled, a write under way may or may not have taken effect. Specification: 70 §12.
    """
    found = await _find(reader or client, kind, obj)
    if found is None:
        created = await client.create(kind, await _mutated(mutate, obj), field_manager=field_manager)
        return Upserted(Outcome.CREATED, created)
    wanted = await _mutated(mutate, found)
    if semantic_equal(found, wanted):
        return Upserted(Outcome.UNCHANGED, found)
    return Upserted(Outcome.UPDATED, await client.update(kind, wanted, field_manager=field_manager))


async def create_or_patch(
    client: Client,
    kind: Kind,
    obj: Obj,
    mutate: Mutate,
    *,
    reader: ReaderLike | None = None,
    field_manager: str | None = None,
) -> Upserted:
    """As create_or_update, but with merge patches of what differs: one of the object, one of its status.

    Fields that others change meanwhile are left alone, and there is no Conflict. The status that `mutate` sets is
    written only to an object that exists. Arguments, errors and cancellation are those of create_or_update; cancelled
    between both patches, the first has taken effect. Specification: 70 §12.
    """
    found = await _find(reader or client, kind, obj)
    if found is None:
        created = await client.create(kind, await _mutated(mutate, obj), field_manager=field_manager)
        return Upserted(Outcome.CREATED, created)
    wanted = await _mutated(mutate, found)
    name, namespace = obj["metadata"]["name"], obj["metadata"].get("namespace")
    before, after = _without_status(found), _without_status(wanted)
    main = not semantic_equal(before, after)
    status = not semantic_equal({"status": found.get("status")}, {"status": wanted.get("status")})
    current = found
    if main:
        patch = merge_patch(before, after)
        current = await client.patch(kind, name, patch, namespace, field_manager=field_manager)
    if status:
        patch = merge_patch(_only_status(found), _only_status(wanted))
        current = await client.patch(kind, name, patch, namespace, subresource="status", field_manager=field_manager)
    match main, status:
        case True, True:
            return Upserted(Outcome.UPDATED_STATUS, current)
        case True, False:
            return Upserted(Outcome.UPDATED, current)
        case False, True:
            return Upserted(Outcome.UPDATED_STATUS_ONLY, current)
    return Upserted(Outcome.UNCHANGED, current)


async def _find(reader: ReaderLike, kind: Kind, obj: Obj) -> Obj | None:
    try:
        return await reader.get(kind, obj["metadata"]["name"], obj["metadata"].get("namespace"))
    except NotFound:
        return None


async def _mutated(mutate: Mutate, obj: Obj) -> Obj:
    """What a mutate function makes of a copy."""
    copy: Obj = orjson.loads(orjson.dumps(obj))
    result = mutate(copy)
    if inspect.isawaitable(result):
        result = await result
    mutated = copy if result is None else result
    if key_of(mutated) != key_of(obj):
        raise MutateError("MutateFn cannot mutate object name and/or object namespace")
    return mutated


def _without_status(obj: Obj) -> Obj:
    return {key: value for key, value in obj.items() if key != "status"}


def _only_status(obj: Obj) -> Obj:
    return {"status": obj["status"]} if "status" in obj else {}
