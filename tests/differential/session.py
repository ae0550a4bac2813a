"""One server's side of a differential run: plays steps, remembers what placeholders need, and watches."""

from __future__ import annotations

import asyncio
import json
import re
import traceback
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from lwskit.runtime.client.transport import HttpRequest, HttpResponse, Transport
from lwskit.runtime.clock import parse_time
from tests.differential.normal import Normal
from tests.differential.steps import NAMESPACE, Memory, Step, change, request

_QUOTED = re.compile(r'299 - "((?:[^"\\]|\\.)*)"')
WATCH_SECONDS = 10.0
SENTINEL = "zz-last"
"""The object whose creation ends the comparison of a watch."""


class SetClock:
    """A clock that stands where it was set."""

    def __init__(self, moment: datetime) -> None:
        self.moment = moment

    def now(self) -> datetime:
        """The time that was set."""
        return self.moment

    def monotonic(self) -> float:
        """The same in seconds."""
        return self.moment.timestamp()

    async def sleep(self, seconds: float) -> None:
        """Nothing here waits for time to pass."""
        await asyncio.sleep(0)


class Session:
    """Plays steps on one server in one namespace."""

    def __init__(self, transport: Transport, namespace: str) -> None:
        self.transport = transport
        self.namespace = namespace
        self.normal = Normal(namespace)
        self.memories: dict[str, Memory] = defaultdict(Memory)
        self.newest: str = ""

    async def start(self, setup: Iterable[dict[str, Any]], watched: Iterable[str]) -> dict[str, str]:
        """Make the namespace and the objects of `setup`; the versions of the lists at `watched` from which to watch."""
        await self.post("/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        for one in setup:
            await self.post(one["path"], one["body"])
        versions = {}
        for path in watched:
            answer = await self.transport.send(HttpRequest("GET", path.replace(NAMESPACE, self.namespace)))
            versions[path] = json.loads(answer.body)["metadata"]["resourceVersion"]
        return versions

    async def post(self, path: str, body: Any) -> HttpResponse:
        """Create an object."""
        raw = json.dumps(body).replace(NAMESPACE, self.namespace).encode()
        path = path.replace(NAMESPACE, self.namespace)
        return await self.transport.send(HttpRequest("POST", path, (), {"content-type": "application/json"}, raw))

    async def play(self, step: Step) -> dict[str, Any]:
        """Play one step: its answer and, after it, the object that the step looks at, in comparable form."""
        look = step.get("look")
        memory = self.memories[look or step["path"]]
        try:
            answer = await self._send(step, memory)
        except Exception as e:
            # A defect to be reported like any other difference; only the server in this process can break so.
            frame = traceback.extract_tb(e.__traceback__)[-1]
            text = f"broke: {e!r} at {frame.filename.rpartition('/')[2]}:{frame.lineno}"
            answer = HttpResponse(500, json.dumps({"message": text}).encode())
        # What a dry run allocates is free again, and may or may not come the next time.
        self.normal.masked = "dryRun" in step.get("query", {})
        result = {"answer": self._answer(answer, memory if look else None)}
        self.normal.masked = False
        if look:
            path = look.replace(NAMESPACE, self.namespace)
            after = await self.transport.send(HttpRequest("GET", path, (), {"accept": "application/json"}))
            result["after"] = self._answer(after, memory)
        return result

    async def _send(self, step: Step, memory: Memory) -> HttpResponse:
        if "changes" not in step:
            return await self.transport.send(request(step, self.namespace, memory))
        path = step["path"].replace(NAMESPACE, self.namespace)
        read = await self.transport.send(HttpRequest("GET", path, (), {"accept": "application/json"}))
        if read.status != 200:
            return read
        obj = json.loads(read.body)
        change(obj, step["changes"], memory)
        return await self.transport.send(request(step, self.namespace, memory, obj))

    def _answer(self, answer: HttpResponse, memory: Memory | None) -> dict[str, Any]:
        try:
            body = json.loads(answer.body)
        except ValueError:
            return {"code": answer.status, "text": answer.body.decode(errors="replace")}
        if isinstance(body, dict) and isinstance(body.get("metadata"), dict):
            whole = str(body.get("kind", ""))
            if memory is not None and whole != "Status" and not whole.endswith("List"):
                memory.learn(body["metadata"])
            for entry in body["metadata"].get("managedFields") or ():
                self.newest = max(self.newest, entry.get("time", ""))
            if whole.endswith("List"):
                body["metadata"] = {}
                # Where generated names stand among others is left to chance.
                body["items"] = [i for i in body["items"] if not i["metadata"]["name"].startswith("gen-")]
        out = {"code": answer.status, "body": self.normal.value(body)}
        if "warning" in answer.headers:
            out["warnings"] = self.normal.value(_QUOTED.findall(answer.headers["warning"]))
        return out

    async def forget(self, path: str | None) -> None:
        """Take an object away, and count symbols anew."""
        self.normal = Normal(self.namespace)
        if path is None:
            return
        path = path.replace(NAMESPACE, self.namespace)
        self.memories.clear()
        headers = {"content-type": "application/merge-patch+json"}
        loose = json.dumps({"metadata": {"finalizers": None}}).encode()
        now = json.dumps({"gracePeriodSeconds": 0, "propagationPolicy": "Background"}).encode()
        await self.transport.send(HttpRequest("PATCH", path, (), headers, loose))
        await self.transport.send(HttpRequest("DELETE", path, (), {"content-type": "application/json"}, now))

    def time(self, earlier: datetime) -> datetime:
        """The time of the newest change that this server told of, or `earlier` if that is later."""
        return max(earlier, parse_time(self.newest)) if self.newest else earlier

    async def events(self, path: str, since: str, selector: str = "") -> list[Any]:
        """The watch events of a collection since a version, up to the sentinel, in comparable form."""
        query = [("watch", "true"), ("resourceVersion", since)]
        if selector:
            query.append(("labelSelector", selector))
        asked = HttpRequest("GET", path.replace(NAMESPACE, self.namespace), tuple(query))
        found: list[Any] = []
        try:
            async with asyncio.timeout(WATCH_SECONDS), self.transport.stream(asked) as stream:
                rest = b""
                async for chunk in stream.chunks():
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        event = json.loads(line)
                        if event["object"].get("metadata", {}).get("name") == SENTINEL:
                            return found
                        found.append(self.normal.value(event))
        except TimeoutError:
            found.append("the sentinel did not come")
        return found


def second(moment: datetime) -> datetime:
    """The moment cut to the second, as objects carry times."""
    return moment.astimezone(UTC).replace(microsecond=0)
