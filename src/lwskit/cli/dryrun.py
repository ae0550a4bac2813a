"""What a cluster's API server and webhooks would store of a manifest, asked without storing it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from lwskit.runtime.client.client import Client
from lwskit.runtime.errors import AlreadyExists, ApiError, Conflict, Forbidden, NotFound
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Obj
from lwskit.simulate.edit import applied

T = TypeVar("T")

_UNDECODED = re.compile(r'\s*"" is invalid: patch: Invalid value: ".*\}": (.*)', re.DOTALL)
_BY_WEBHOOK = "admission webhook"
_ATTEMPTS = 5
"""How often a set is looked at again because somebody else has written it meanwhile."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """What the server says of a manifest, and what was there when it was asked.

    `stored` is None with a `refusal`, and where who asks may not write.
    """

    seen: T
    stored: Obj | None = None
    refusal: str = ""


async def stored(
    client: Client, kind: Kind, manifest: Obj, look: Callable[[], Awaitable[T]], live_of: Callable[[T], Obj | None]
) -> Answer[T]:
    """Ask by a dry run. `look` sees what is there, of which `live_of` is the object itself.

    One that somebody else writes at the same time is looked at again. Raises ApiError and ConnectionFailed; when
    cancelled, it asks no more.
    """
    attempts = 0
    while True:
        attempts += 1
        seen = await look()
        live = live_of(seen)
        try:
            return Answer(seen, await _dry_run(client, kind, live, manifest))
        except Forbidden as error:
            if _BY_WEBHOOK in error.message:
                return Answer(seen, refusal=error.message)
            return Answer(seen)
        except ApiError as error:
            overtaken = _overtaken(error, live)
            if overtaken and attempts < _ATTEMPTS:
                continue
            if overtaken or not 400 <= error.code < 500:
                raise
            return Answer(seen, refusal=_said(error))


async def refusal(client: Client, kind: Kind, obj: Obj) -> str | None:
    """Why the server would not create an object, empty if it would; None if who asks may not create any.

    Raises ApiError for what says nothing of the object, and ConnectionFailed; when cancelled, nothing is asked.
    """
    try:
        await client.create(kind, obj, dry_run=True)
    except Forbidden as error:
        return error.message if _BY_WEBHOOK in error.message else None
    except ApiError as error:
        if not 400 <= error.code < 500:
            raise
        return _said(error)
    return ""


async def _dry_run(client: Client, kind: Kind, live: Obj | None, manifest: Obj) -> Obj:
    """What would be stored. A patch, as `kubectl apply` sends it, does not mind a status that is written meanwhile."""
    body = applied(live, manifest)
    if live is None:
        return await client.create(kind, body, dry_run=True, field_validation="Strict")
    return await client.patch_from(kind, live, body, dry_run=True, field_validation="Strict")


def _said(error: ApiError) -> str:
    """The words of a refusal, without the whole object that a server puts before what it could not decode."""
    found = _UNDECODED.fullmatch(error.message)
    return found[1] if found else error.message


def _overtaken(error: ApiError, live: Obj | None) -> bool:
    """Whether a refusal says nothing of the edit: the set was written, made or deleted since it was looked at."""
    return isinstance(error, Conflict | AlreadyExists) or (isinstance(error, NotFound) and live is not None)
