"""A transport that answers from a script, and makers of what a server says: for tests of lists and watches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import orjson

from lwskit.runtime.client.transport import HttpRequest, HttpResponse
from lwskit.runtime.objects import Obj

FOREVER = 1e9


Part: TypeAlias = "Listing | Fail | Stream | Exception"
"""One answer of a script; an exception is raised instead of answering."""


def pod(name: str, version: int | str, *, namespace: str = "t", uid: str = "", **meta: Any) -> Obj:
    """A pod with what an API server always sets; `meta` are further fields of its metadata."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": namespace,
            "name": name,
            "uid": uid or f"uid-{name}",
            "resourceVersion": str(version),
            **meta,
        },
    }


def event(kind: str, obj: Any) -> bytes:
    """A line of a watch."""
    return orjson.dumps({"type": kind, "object": obj}) + b"\n"


def bookmark(version: int | str, *, end: bool = False) -> bytes:
    """A bookmark line; with `end` the one that closes the initial events of a streaming list."""
    annotations = {"annotations": {"k8s.io/initial-events-end": "true"}} if end else {}
    meta = {"resourceVersion": str(version)} | annotations
    return event("BOOKMARK", {"apiVersion": "v1", "kind": "Pod", "metadata": meta})


def status(code: int, reason: str, message: str = "", **details: Any) -> Obj:
    """A Status of failure, as a server sends it."""
    body: Obj = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
    body |= {"reason": reason, "message": message}
    return body | ({"details": details} if details else {})


@dataclass
class Listing:
    """A list answer."""

    items: Iterable[Obj] = ()
    version: int | str = "1"
    token: str = ""

    def body(self) -> bytes:
        """The answer's body; its items carry no type, as those of a server."""
        meta = {"resourceVersion": str(self.version)} | ({"continue": self.token} if self.token else {})
        items = [{k: v for k, v in item.items() if k not in ("kind", "apiVersion")} for item in self.items]
        return orjson.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": meta, "items": items})


@dataclass
class Fail:
    """A refusal of a list or of a watch."""

    code: int
    reason: str
    message: str = "no"
    headers: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)

    def body(self) -> bytes:
        """The Status."""
        return orjson.dumps(status(self.code, self.reason, self.message, **self.details))


class Stream:
    """A watch answer: bytes to send, seconds to let pass, an exception to break with; then it ends.

    A cancelled read loses the part that it waited for.
    """

    def __init__(self, *parts: bytes | float | Exception) -> None:
        self.parts = parts
        self.status = 200
        self.headers: Mapping[str, str] = {}

    async def chunks(self) -> AsyncIterator[bytes]:
        """The parts in turn."""
        for part in self.parts:
            if isinstance(part, bytes):
                yield part
            elif isinstance(part, Exception):
                raise part
            else:
                await asyncio.sleep(part)

    async def read(self) -> bytes:
        """Nothing: a stream that is open is read in chunks."""
        return b""


class _Refusal:
    def __init__(self, fail: Fail) -> None:
        self.status, self.headers, self._body = fail.code, fail.headers, fail.body()

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._body

    async def read(self) -> bytes:
        return self._body


class Script:
    """A Transport that answers requests in turn and remembers them with their time.

    After the last part a request hangs for ever. `open` counts the streams that are open. A cancelled request has used
    its part up.
    """

    def __init__(self, *parts: Part) -> None:
        self.parts = [*parts]
        self.seen: list[tuple[float, HttpRequest]] = []
        self.open = 0

    def _next(self, request: HttpRequest) -> Part | None:
        self.seen.append((asyncio.get_running_loop().time(), request))
        part = self.parts.pop(0) if self.parts else None
        if isinstance(part, Exception):
            raise part
        return part

    async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpResponse:
        """Answer with the next part, a Listing or a Fail; `timeout` is ignored."""
        part = self._next(request)
        if part is None:
            await asyncio.sleep(FOREVER)
        assert isinstance(part, Listing | Fail), f"the script has {part} where a list or call came: {request}"
        if isinstance(part, Fail):
            return HttpResponse(part.code, part.body(), part.headers)
        return HttpResponse(200, part.body())

    @asynccontextmanager
    async def stream(self, request: HttpRequest, *, idle_timeout: float | None = None) -> AsyncIterator[Any]:
        """Answer with the next part, a Stream or a Fail; `idle_timeout` is ignored."""
        part = self._next(request)
        assert not isinstance(part, Listing), f"the script has {part} where a watch came: {request}"
        self.open += 1
        try:
            if isinstance(part, Fail):
                yield _Refusal(part)
            else:
                yield part or Stream(FOREVER)
        finally:
            self.open -= 1

    async def close(self) -> None:
        """Nothing to release."""

    @property
    def times(self) -> list[float]:
        """When the requests came, in seconds of the loop."""
        return [time for time, _ in self.seen]

    @property
    def queries(self) -> list[dict[str, str]]:
        """The queries without the random timeout and what every watch has."""
        drop = ("timeoutSeconds", "allowWatchBookmarks")
        return [{k: v for k, v in request.query if k not in drop} for _, request in self.seen]
