"""From an event about an object to requests for a work queue (specification: 70 §3.1, §3.4). Pure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

import structlog

from lwskit.runtime.controller.defects import Defect, checked_requests, name_of
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Obj, group_of, uid_of, version_of
from lwskit.runtime.request import Request

log = structlog.get_logger(__name__)

LOW_PRIORITY = -100
"""The priority of requests that no change stands behind: the initial list, relists, resyncs."""
_KNOWN_VERSIONS = 1000


# Events are never changed. They are not frozen, because making a frozen one costs three times as much.


@dataclass(slots=True)
class Create:
    """An object appeared; `initial` while the first list is told."""

    obj: Obj
    initial: bool = False


@dataclass(slots=True)
class Update:
    """An object changed."""

    old: Obj
    new: Obj


@dataclass(slots=True)
class Delete:
    """An object is gone; `unknown` when its last state was not seen and `obj` may be stale."""

    obj: Obj
    unknown: bool = False


@dataclass(slots=True)
class Generic:
    """Something outside the cluster concerns an object."""

    obj: Obj


Event = Create | Update | Delete | Generic
Handler = Callable[[Event], Iterable[Request]]
"""Turns one event into requests. Must not change the event's objects."""


def objects_of(event: Event) -> tuple[Obj, ...]:
    """The objects of an event: of an update the old one, then the new one."""
    return (event.old, event.new) if isinstance(event, Update) else (event.obj,)


def priority_of(event: Event) -> int:
    """The priority of an event's requests: low in the initial list and where the version did not change, else 0."""
    if isinstance(event, Create) and event.initial:
        return LOW_PRIORITY
    if isinstance(event, Update) and version_of(event.old) == version_of(event.new):
        return LOW_PRIORITY
    return 0


def for_object(kind: Kind, *, typed_deletions: bool = False) -> Handler:
    """A handler that asks for the object itself; `kind` is put into the requests.

    With `typed_deletions` a deletion becomes a request of its own: `deleted`, with the object's UID, and the last
    object as its payload, so that it is never folded into a request for a new object of that name.
    """

    def handle(event: Event) -> Iterable[Request]:
        obj = event.new if isinstance(event, Update) else event.obj
        meta = obj["metadata"]
        namespace = meta.get("namespace", "")
        if typed_deletions and isinstance(event, Delete):
            return (Request(namespace, meta["name"], kind.kind, uid_of(obj), deleted=True, payload=obj),)
        return (Request(namespace, meta["name"], kind.kind),)

    return handle


def for_owner(owner_kind: Kind, only_controller: bool = True) -> Handler:
    """A handler that asks for the owners of `owner_kind`, any version of its group; of an update both sides' owners.

    With `only_controller` only the reference with `controller: true` counts.
    """

    # Whether references of an apiVersion may match; None where it cannot be read.
    matching: dict[str, bool | None] = {}

    def read(api_version: str) -> bool | None:
        if len(matching) >= _KNOWN_VERSIONS:
            matching.clear()
        readable = api_version.count("/") <= 1
        found = matching[api_version] = group_of(api_version) == owner_kind.group if readable else None
        return found

    def owners(obj: Obj) -> list[Request]:
        meta = obj["metadata"]
        namespace = meta.get("namespace", "") if owner_kind.namespaced else ""
        found = []
        for ref in meta.get("ownerReferences") or ():
            api_version = ref.get("apiVersion", "")
            matches = matching[api_version] if api_version in matching else read(api_version)
            if matches is None:
                log.error("owner reference has an unreadable apiVersion", object=meta.get("name"), value=api_version)
                break
            if matches and ref.get("kind") == owner_kind.kind and (ref.get("controller") or not only_controller):
                found.append(Request(namespace, ref["name"], owner_kind.kind))
        return found

    def handle(event: Event) -> Iterable[Request]:
        if not isinstance(event, Update):
            return owners(event.obj)
        now = owners(event.new)
        if event.old["metadata"].get("ownerReferences") == event.new["metadata"].get("ownerReferences"):
            return now
        return dict.fromkeys((*owners(event.old), *now))

    return handle


def from_map(function: Callable[[Obj], Iterable[Request]]) -> Handler:
    """A handler that asks for whatever `function` returns for an object; of an update first for the old one's."""

    def handle(event: Event) -> Iterable[Request]:
        if isinstance(event, Update):
            return dict.fromkeys((*asked(event.old), *asked(event.new)))
        return dict.fromkeys(asked(event.obj))

    def asked(obj: Obj) -> Iterable[Request]:
        return checked_requests(function(obj), function)

    return handle


class AsyncMap:
    """A handler whose function waits, for example because it lists; made by `from_async_map`.

    Its events wait in a buffer of their own and are handled one after the other, in their order.
    """

    def __init__(self, function: Callable[[Obj], Awaitable[Iterable[Request]]]) -> None:
        self._function = function

    async def requests(self, event: Event) -> Iterable[Request]:
        """The requests for one event, each once; of an update first those for the old object.

        When cancelled, there are none.
        """
        found: dict[Request, None] = {}
        for obj in objects_of(event):
            asked: object = self._function(obj)
            if not isinstance(asked, Awaitable):
                raise Defect(f"{name_of(self._function)} is not a coroutine function; make its handler with from_map")
            found |= dict.fromkeys(checked_requests(await asked, self._function))
        return found


def from_async_map(function: Callable[[Obj], Awaitable[Iterable[Request]]]) -> AsyncMap:
    """Like `from_map`, for a coroutine function. What it raises is logged, and the event has no request."""
    return AsyncMap(function)
