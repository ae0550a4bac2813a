"""Watches, tokens and election against a real API server that is killed, stopped, restarted and compacted.

Each test brings a Secret or a ConfigMap in a namespace of its own. Of Secrets the API server keeps no cache, so that
their watches see what etcd has forgotten.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from itertools import groupby
from typing import Any

import pytest

from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.cache.informer import Informer
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import RealClock, real_random
from lwskit.runtime.election import Elector, LeaderElectionLost
from lwskit.runtime.errors import LwskitError
from lwskit.runtime.kinds import CONFIG_MAP, LEASE, NAMESPACE, SECRET, SERVICE_ACCOUNT, Kind
from lwskit.runtime.objects import Obj
from lwskit.testing.interceptors import Interceptor
from lwskit.testing.polling import consistently, eventually
from tests.real.servers import SOON, Server
from tools.controlplane import plane

NEXT = iter(range(1000))


@contextlib.contextmanager
def running(arguments: str) -> Iterator[Server]:
    # No controller is to put anything into the namespaces of the tests.
    try:
        with plane.running(arguments={"APISERVER": arguments}, controllers=False) as control:
            yield Server(control)
    except plane.Unavailable as e:
        pytest.skip(str(e))


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running("--watch-cache-sizes=secrets#0") as found:
        yield found


@pytest.fixture(scope="module")
def plain_server() -> Iterator[Server]:
    """An API server without streaming lists."""
    with running("--feature-gates=WatchList=false") as found:
        yield found


class Watching:
    """An informer of one namespace, what its handler was told, and the connection in between."""

    def __init__(self, client: Client, wire: Interceptor, cache: Cache, kind: Kind, namespace: str) -> None:
        self.client, self.wire, self.kind, self.namespace = client, wire, kind, namespace
        self.informer: Informer = cache.informer(kind, namespace)
        self.informer.add_handler(self)
        self.told: list[tuple[str, str]] = []

    def on_add(self, obj: Obj, initial: bool) -> None:
        self.told.append(("add", obj["metadata"]["name"]))

    def on_update(self, old: Obj, new: Obj) -> None:
        self.told.append(("update", new["metadata"]["name"]))

    def on_delete(self, obj: Obj, unknown: bool) -> None:
        self.told.append(("delete (unknown)" if unknown else "delete", obj["metadata"]["name"]))

    def told_of(self, name: str) -> str:
        """How the deletion of an object was told: by the watch, or found out by a list."""
        (found,) = [what for what, of in self.told if of == name and what.startswith("delete")]
        return found

    async def write(self, name: str, **fields: Any) -> Obj:
        return await self.client.create(self.kind, self._object(name, **fields))

    async def change(self, name: str, value: str) -> Obj:
        return await self.client.patch(self.kind, name, {"metadata": {"annotations": {"value": value}}}, self.namespace)

    async def delete(self, name: str) -> None:
        await self.client.delete(self.kind, name, self.namespace)

    def _object(self, name: str, **fields: Any) -> Obj:
        meta = {"name": name, "namespace": self.namespace, **fields.pop("metadata", {})}
        return {"apiVersion": "v1", "kind": self.kind.kind, "metadata": meta, **fields}

    async def same_as_live(self) -> bool:
        """Whether the store has exactly what a consistent list has."""
        listed = (await self.client.list(self.kind, self.namespace))["items"]
        live = {o["metadata"]["name"]: o["metadata"]["resourceVersion"] for o in listed}
        stored = {o["metadata"]["name"]: o["metadata"]["resourceVersion"] for o in self.informer.store}
        assert stored == live
        return True

    def queries(self, *, watch: bool) -> list[dict[str, str]]:
        """The queries of this informer's lists or watches, oldest first."""
        found = [dict(r.request.query) for r in self.wire.requests if r.request.path.endswith(self.kind.plural)]
        return [q for q in found if (q.get("watch") == "true") is watch]


Watch = Callable[..., Awaitable[Watching]]


@pytest.fixture
async def watch() -> AsyncIterator[Watch]:
    """Watch a kind in a fresh namespace of a server."""
    async with contextlib.AsyncExitStack() as stack:

        async def start(server: Server, kind: Kind = CONFIG_MAP, *, timeout: float = 2.0, **options: Any) -> Watching:
            await server.wait_ready()
            clock, rng = RealClock(), real_random()
            admin = Client(server.transport(), clock=clock)
            stack.push_async_callback(admin.close)
            namespace = f"watched-{next(NEXT)}"
            meta = {"name": namespace}
            await admin.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
            wire = Interceptor(server.transport(timeout=timeout))
            stack.push_async_callback(wire.close)
            cache = Cache(Client(wire, clock=clock), clock, rng, **options)
            watching = Watching(admin, wire, cache, kind, namespace)
            task = asyncio.create_task(cache.run())

            async def stop() -> None:
                task.cancel()
                await asyncio.wait({task})

            stack.push_async_callback(stop)
            await cache.wait_synced()
            return watching

        yield start


async def settled(watching: Watching) -> None:
    """Wait until the watch works and the store is what a live list has."""

    async def so() -> bool:
        return watching.informer.healthy and await watching.same_as_live()

    await eventually(so, SOON, 0.1)


async def test_an_object_of_more_than_a_megabyte_arrives_whole(server: Server, watch: Watch) -> None:
    watching = await watch(server)
    large = "x" * 1_000_000 + "é" * 10_000
    created = await watching.write("large", data={"a": large}, metadata={"annotations": {"b": "y" * 250_000}})
    await settled(watching)
    (stored,) = watching.informer.store.list()
    assert len(stored["data"]["a"].encode()) == 1_020_000
    assert hash(stored["data"]["a"]) == hash(large)
    assert stored["metadata"]["uid"] == created["metadata"]["uid"]
    assert watching.told == [("add", "large")]


async def test_a_killed_server_costs_no_event(server: Server, watch: Watch) -> None:
    """What happens between the crash and the next watch is told afterwards, deletions too."""
    watching = await watch(server)
    for name in ("stays", "changes", "goes"):
        await watching.write(name)
    await settled(watching)
    watching.told.clear()
    await server.kill()
    await eventually(lambda: not watching.informer.healthy, SOON, 0.05)
    server.start()
    await server.wait_ready()
    with watching.wire.watches_down():
        await watching.change("changes", "new")
        await watching.delete("goes")
        await watching.write("comes")
    await settled(watching)
    assert sorted(watching.told) == [("add", "comes"), (watching.told_of("goes"), "goes"), ("update", "changes")]


async def test_a_server_that_falls_silent_is_noticed_by_the_idle_limit(server: Server, watch: Watch) -> None:
    """Its connections stay, so that nothing else would tell; without that limit nobody would notice for minutes."""
    watching = await watch(server, idle=1.5, timeout=1.0)
    await watching.write("before")
    await settled(watching)
    server.pause()
    try:
        # What the server had answered before it fell silent may look like health for a moment.
        await eventually(lambda: consistently(lambda: not watching.informer.healthy, 3.0), SOON, 0.05)
        assert watching.informer.last_error is not None
    finally:
        server.resume()
    await watching.write("after")
    await settled(watching)
    assert ("add", "after") in watching.told


async def test_history_that_etcd_has_forgotten_leads_to_a_list_that_tells_what_went(
    server: Server, watch: Watch
) -> None:
    watching = await watch(server, SECRET, streaming=False)
    for name in ("stays", "goes"):
        await watching.write(name)
    await settled(watching)
    watching.told.clear()
    with watching.wire.watches_down():
        await watching.delete("goes")
        await watching.write("comes")
        await server.compact()
    await settled(watching)
    assert sorted(watching.told) == [("add", "comes"), ("delete (unknown)", "goes")]
    # The watch that was opened again was told that its version is forgotten.
    verbs = [verb for verb, _ in groupby(r.verb for r in watching.wire.requests if r.status != -1)]
    assert verbs == ["list", "watch", "list", "watch"]
    first, *_, again = watching.queries(watch=False)
    assert (first["resourceVersion"], "limit" in again) == ("0", False)
    # A list not older than what was seen, which the server can give though that version itself is forgotten.
    assert int(again["resourceVersion"]) > 0


async def test_a_restarted_server_that_knows_no_old_version_is_streamed_anew(server: Server, watch: Watch) -> None:
    watching = await watch(server)
    for name in ("stays", "goes"):
        await watching.write(name)
    await settled(watching)
    watching.told.clear()
    with watching.wire.watches_down():
        await watching.delete("goes")
        await watching.write("comes")
        await server.compact()
        await server.kill()
        server.start()
        await server.wait_ready()
    await settled(watching)
    assert sorted(watching.told) == [("add", "comes"), ("delete (unknown)", "goes")]
    assert watching.queries(watch=False) == []
    streams = [q for q in watching.queries(watch=True) if "sendInitialEvents" in q]
    assert len(streams) >= 2
    assert int(streams[-1]["resourceVersion"]) > 0


async def test_a_server_without_streaming_lists_is_listed(plain_server: Server, watch: Watch) -> None:
    watching = await watch(plain_server)
    await eventually(lambda: len(watching.queries(watch=True)) > 1, SOON, 0.05)
    assert [q.get("sendInitialEvents") for q in watching.queries(watch=True)][:2] == ["true", None]
    assert watching.queries(watch=False)[0].get("resourceVersion") == "0"
    await watching.write("one")
    await settled(watching)
    assert watching.told == [("add", "one")]
    with watching.wire.watches_down():
        await watching.delete("one")
        await watching.write("two")
    await settled(watching)
    assert sorted(watching.told[1:]) == [("add", "two"), (watching.told_of("one"), "one")]


async def test_a_token_whose_account_is_gone_is_renewed_once_for_all(server: Server, watch: Watch) -> None:
    watching = await watch(server)
    admin, namespace = watching.client, watching.namespace
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": namespace}}
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}

    async def new_token() -> str:
        body = {**request, "metadata": {"name": "robot", "namespace": namespace}}
        answer = await admin.create(SERVICE_ACCOUNT, body, subresource="token")
        return answer["status"]["token"]

    await admin.create(SERVICE_ACCOUNT, account)
    # The server believes a token that it has seen for some seconds; so the one that is refused is seen first then.
    tokens, asked = [await new_token(), await new_token()], list[bool]()

    async def provider(renew: bool) -> str:
        asked.append(renew)
        if renew:
            await admin.create(SERVICE_ACCOUNT, account)
            tokens.append(await new_token())
        return tokens[-1]

    wire = Interceptor(server.transport(provider))
    robot = Client(wire)
    good = tokens.pop()
    assert (await robot.raw("GET", "/api"))["kind"] == "APIVersions"
    tokens.append(good)
    await admin.delete(SERVICE_ACCOUNT, "robot", namespace)
    refused = server.transport(lambda renew: good)

    async def is_refused() -> bool:
        return (await refused.send(wire.requests[0].request)).status == 401

    try:
        await eventually(is_refused, SOON, 0.1)
        answers = await asyncio.gather(*[robot.raw("GET", "/api") for _ in range(20)])
    finally:
        await refused.close()
        await robot.close()
    assert {a["kind"] for a in answers} == {"APIVersions"}
    assert asked.count(True) == 1


class Candidate:
    """An elector, and a task that acquires the Lease and holds it."""

    def __init__(self, client: Client, namespace: str, name: str) -> None:
        self.elector = Elector(client, RealClock(), real_random(), namespace, "lease", name, 2.0, 1.4, 0.3)
        self.task = asyncio.create_task(self._lead())
        self.lost: LwskitError | None = None

    async def _lead(self) -> None:
        await self.elector.acquire()
        try:
            await self.elector.hold()
        except LeaderElectionLost as e:
            self.lost = e


async def test_two_electors_never_lead_together_and_a_silent_server_ends_leading(server: Server, watch: Watch) -> None:
    watching = await watch(server)
    clients = [Client(server.transport(timeout=1.0)) for _ in range(2)]
    one, two = (Candidate(c, watching.namespace, n) for c, n in zip(clients, ("one", "two"), strict=True))
    leading: list[tuple[bool, bool]] = []

    def note() -> None:
        leading.append((one.elector.is_leader, two.elector.is_leader))

    async def look() -> None:
        while True:
            note()
            await asyncio.sleep(0.01)

    looking = asyncio.create_task(look())
    try:
        first = await eventually(lambda: _leader(one, two), SOON, 0.05)
        # Here too, since the other task may not have had its turn since it leads.
        note()
        second = two if first is one else one
        first.task.cancel()
        await asyncio.wait({first.task})
        await eventually(lambda: second.elector.is_leader, SOON, 0.05)
        note()
        lease = await watching.client.get(LEASE, "lease", watching.namespace)
        assert lease["spec"]["holderIdentity"] == second.elector.identity
        assert lease["spec"]["leaseTransitions"] == 1
        server.pause()
        try:
            # Without its limit it would try for ever; how long that is, tests in virtual time say.
            await asyncio.wait_for(second.task, SOON)
        finally:
            server.resume()
        assert isinstance(second.lost, LeaderElectionLost)
        assert not second.elector.is_leader
    finally:
        for task in (looking, one.task, two.task):
            task.cancel()
        await asyncio.wait({looking, one.task, two.task})
        for client in clients:
            await client.close()
    assert (True, True) not in leading
    assert {(True, False), (False, True)} <= set(leading)


def _leader(*candidates: Candidate) -> Candidate:
    found = [c for c in candidates if c.elector.is_leader]
    assert found, "nobody leads yet"
    return found[0]
