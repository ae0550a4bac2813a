"""The checklist of leader election (specification: 70 §17, Election), on virtual time."""

from __future__ import annotations

import asyncio
import copy
import random
from pathlib import Path
from typing import Any

import pytest

from lwskit.runtime.client.client import Client
from lwskit.runtime.client.transport import HttpRequest, HttpResponse
from lwskit.runtime.client.wrapping import WrappedClient
from lwskit.runtime.clock import Clock
from lwskit.runtime.election import Elector, LeaderElectionLost, election_namespace, make_identity
from lwskit.runtime.errors import AlreadyExists, ConfigurationError, Conflict, ConnectionFailed, NotFound
from lwskit.runtime.fence import fenced
from lwskit.runtime.kinds import POD, Kind
from lwskit.runtime.objects import Obj, ObjectRef
from lwskit.runtime.plan import Event


class LeaseServer:
    """Serves one Lease as an API server does; `down` makes every request fail, `slow` take that many seconds."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.lease: Obj | None = None
        self.version = 0
        self.down = False
        self.slow = 0.0
        self.calls: list[str] = []

    async def _arrive(self, verb: str) -> None:
        self.calls.append(verb)
        await self.clock.sleep(self.slow)
        if self.down:
            raise ConnectionFailed("no answer")

    def _store(self, obj: Obj) -> Obj:
        self.version += 1
        meta = {**obj["metadata"], "resourceVersion": str(self.version), "uid": "lease-uid"}
        self.lease = {**copy.deepcopy(obj), "metadata": meta}
        return copy.deepcopy(self.lease)

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Obj:
        await self._arrive("get")
        if self.lease is None:
            raise NotFound("no lease")
        return copy.deepcopy(self.lease)

    async def create(self, kind: Kind, obj: Obj) -> Obj:
        await self._arrive("create")
        if self.lease is not None:
            raise AlreadyExists("there")
        return self._store(obj)

    async def update(self, kind: Kind, obj: Obj) -> Obj:
        await self._arrive("update")
        if self.lease is None:
            raise NotFound("no lease")
        if obj["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise Conflict("stale")
        return self._store(obj)

    def edit(self, **spec: Any) -> None:
        assert self.lease is not None
        self._store({**self.lease, "spec": {**self.lease["spec"], **spec}})

    @property
    def spec(self) -> Obj:
        assert self.lease is not None
        return self.lease["spec"]


class Told:
    def __init__(self) -> None:
        self.notes: list[str] = []

    def event(self, event: Event, related: ObjectRef | None = None) -> None:
        assert event.regarding.kind == "Lease"
        self.notes.append(event.note)


def elector(server: LeaseServer, identity: str = "me", **options: Any) -> Elector:
    client: Any = server
    return Elector(client, server.clock, random.Random(identity), "ns", "lock", identity, **options)


def held_by(
    server: LeaseServer, holder: str, renew_time: str = "2001-01-01T00:00:00.000000Z", seconds: int = 15
) -> None:
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": seconds,
        "renewTime": renew_time,
        "acquireTime": renew_time,
        "leaseTransitions": 4,
    }
    server._store({"metadata": {"namespace": "ns", "name": "lock"}, "spec": spec})


async def test_without_a_lease_one_is_created_and_an_expired_one_is_taken(clock: Clock) -> None:
    """70 §17 Election 1: a new Lease begins with no transitions, a taken one has one more."""
    server = LeaseServer(clock)
    told = Told()
    candidate = elector(server, recorder=told)
    await candidate.acquire()
    assert candidate.is_leader
    assert server.spec == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-01T00:00:00.000000Z",
        "renewTime": "2026-01-01T00:00:00.000000Z",
        "leaseTransitions": 0,
    }
    assert told.notes == ["me became leader"]
    expired = LeaseServer(clock)
    held_by(expired, "other")
    await elector(expired).acquire()
    assert 15 <= clock.monotonic() <= 15 + 4.4
    assert (expired.spec["holderIdentity"], expired.spec["leaseTransitions"]) == ("me", 5)


async def test_the_records_own_duration_counts(clock: Clock) -> None:
    server = LeaseServer(clock)
    held_by(server, "other", seconds=60)
    await elector(server).acquire()
    assert 60 <= clock.monotonic() <= 64.4


@pytest.mark.parametrize("its_clock", ["1999-01-01T00:00:00.000000Z", "2099-01-01T00:00:00.000000Z"])
async def test_a_holder_that_renews_keeps_the_lease_whatever_its_clock_says(clock: Clock, its_clock: str) -> None:
    """70 §17 Election 2: a record that keeps changing is alive, whatever dates it carries."""
    server = LeaseServer(clock)
    held_by(server, "other", its_clock)
    task = asyncio.create_task(elector(server).acquire())
    for second in range(20):
        await clock.sleep(10)
        server.edit(renewTime=f"{its_clock[:-8]}{second:06}Z")
    assert not task.done()
    task.cancel()


async def test_a_released_lease_is_taken_at_the_next_try(clock: Clock) -> None:
    """70 §17 Election 3: after a release the other one waits for one try only."""
    server = LeaseServer(clock)
    first, second = elector(server, "first"), elector(server, "second")
    await first.acquire()
    waiting = asyncio.create_task(second.acquire())
    await clock.sleep(1)
    await first.release()
    assert server.spec["holderIdentity"] == ""
    assert server.spec["leaseDurationSeconds"] == 1
    assert server.spec["leaseTransitions"] == 0
    await waiting
    assert clock.monotonic() <= 1 + 4.4
    assert server.spec["leaseTransitions"] == 1
    before = server.version
    await first.release()
    assert server.version == before


async def test_renewing_every_retry_period_keeps_acquire_time_and_transitions(clock: Clock) -> None:
    server = LeaseServer(clock)
    candidate = elector(server)
    await candidate.acquire()
    task = asyncio.create_task(candidate.hold())
    await clock.sleep(60.5)
    assert server.spec["renewTime"] == "2026-01-01T00:01:00.000000Z"
    assert server.spec["acquireTime"] == "2026-01-01T00:00:00.000000Z"
    assert server.spec["leaseTransitions"] == 0
    assert server.calls.count("get") == 1
    assert server.calls.count("update") == 30
    task.cancel()


async def test_failing_to_renew_for_eight_seconds_keeps_and_for_the_deadline_loses_leadership(clock: Clock) -> None:
    """70 §17 Election 4: renewing may fail for less than the deadline, and not for longer."""
    server = LeaseServer(clock)
    told = Told()
    candidate = elector(server, recorder=told)
    await candidate.acquire()
    task = asyncio.create_task(candidate.hold())
    await clock.sleep(3.9)
    server.down = True
    await clock.sleep(8)
    server.down = False
    await clock.sleep(30)
    assert not task.done()
    assert candidate.is_leader
    await clock.sleep(0.1)
    began = clock.monotonic()
    server.down = True
    with pytest.raises(LeaderElectionLost, match="leader election lost"):
        await task
    assert 10 <= clock.monotonic() - began <= 12
    assert not candidate.is_leader
    assert told.notes == ["me became leader", "me stopped leading"]


async def test_a_server_that_does_not_answer_loses_leadership_too(clock: Clock) -> None:
    server = LeaseServer(clock)
    candidate = elector(server)
    await candidate.acquire()
    server.slow = 1000
    with pytest.raises(LeaderElectionLost):
        await candidate.hold()
    assert clock.monotonic() == pytest.approx(12)


async def test_a_lease_changed_by_another_is_decided_on_after_reading_it(clock: Clock) -> None:
    """70 §17 Election 6: when the blind update conflicts, the Lease is read and decides."""
    server = LeaseServer(clock)
    candidate = elector(server)
    await candidate.acquire()
    task = asyncio.create_task(candidate.hold())
    await clock.sleep(3)
    server.edit(note="touched")
    server.calls.clear()
    await clock.sleep(2)
    assert server.calls == ["update", "get", "update"]
    assert server.spec["note"] == "touched"
    server.edit(holderIdentity="thief")
    with pytest.raises(LeaderElectionLost):
        await task
    assert server.spec["holderIdentity"] == "thief"


async def test_a_blocked_event_loop_counts_as_lost(clock: Clock) -> None:
    server = LeaseServer(clock)

    class Oversleeping:
        now = staticmethod(clock.now)
        monotonic = staticmethod(clock.monotonic)

        async def sleep(self, seconds: float) -> None:
            await clock.sleep(seconds + 11)

    client: Any = server
    candidate = Elector(client, Oversleeping(), random.Random(1), "ns", "lock", "me")
    await candidate.acquire()
    with pytest.raises(LeaderElectionLost, match=r"blocked for 11\.0 s"):
        await candidate.hold()


async def test_a_loop_that_was_blocked_during_a_renewal_has_lost_although_the_answer_says_yes(clock: Clock) -> None:
    server = LeaseServer(clock)
    offset = 0.0

    class Jumping:
        now, sleep = clock.now, clock.sleep

        def monotonic(self) -> float:
            return clock.monotonic() + offset

    class Blocking:
        get, create = server.get, server.create

        async def update(self, kind: Kind, obj: Obj) -> Obj:
            nonlocal offset
            offset += 12
            return await server.update(kind, obj)

    client: Any = Blocking()
    candidate = Elector(client, Jumping(), random.Random(1), "ns", "lock", "me")
    await candidate.acquire()
    with pytest.raises(LeaderElectionLost, match=r"blocked for 12\.0 s while renewing"):
        await candidate.hold()


async def test_what_would_be_written_after_the_lease_may_have_run_out_is_not_sent(clock: Clock) -> None:
    server = LeaseServer(clock)
    candidate = elector(server)
    sent: list[str] = []

    class Inner:
        async def send(self, request: HttpRequest, *, timeout: float | None = None) -> HttpResponse:
            sent.append(request.method)
            return HttpResponse(200, b'{"kind":"Pod","metadata":{"name":"p","namespace":"n"}}')

    inner: Any = Inner()
    plain = Client(inner, clock=clock)
    client = fenced(WrappedClient(plain), candidate)
    pod: Obj = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}}
    with pytest.raises(LeaderElectionLost, match="POST /api/v1/namespaces/n/pods was not sent"):
        await client.create(POD, pod)
    await candidate.acquire()
    await client.create(POD, pod)
    await clock.sleep(14)
    await client.patch(POD, "p", {}, "n")
    await clock.sleep(2)
    # The elector has had no turn: it would still say that it leads.
    assert candidate.is_leader
    with pytest.raises(LeaderElectionLost):
        await client.delete(POD, "p", "n")
    await client.get(POD, "p", "n")
    await plain.create(POD, pod)
    assert sent == ["POST", "PATCH", "GET", "POST"]


def test_the_namespace_is_the_one_configured_or_that_of_the_pod(tmp_path: Path) -> None:
    file = tmp_path / "namespace"
    assert election_namespace("mine", file) == "mine"
    text = "^unable to find leader election namespace: not running in-cluster; say in which .* lies, with `namespace=`$"
    with pytest.raises(ConfigurationError, match=text):
        election_namespace(file=file)
    file.write_text("lws-system\n")
    assert election_namespace(file=file) == "lws-system"


async def test_a_lease_that_cannot_be_released_expires(clock: Clock) -> None:
    server = LeaseServer(clock)
    candidate = elector(server)
    await candidate.acquire()
    server.down = True
    await candidate.release()
    assert clock.monotonic() == pytest.approx(10)
    assert server.spec["holderIdentity"] == "me"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"lease": 10, "renew": 10}, "must be longer than the renew deadline"),
        ({"renew": 2.4, "retry": 2}, "must exceed 1.2 times the retry period"),
        ({"retry": 0}, "must be positive"),
        ({"retry": float("nan")}, "the retry period is nan$"),
        ({"renew": float("inf"), "lease": float("inf")}, "the lease duration is inf$"),
        ({"renew": float("nan")}, "the renew deadline is nan$"),
        ({"lease": -1}, "the lease duration is -1$"),
        (
            {"lease": 1.9, "renew": 1.8, "retry": 0.3},
            r"^the lease duration \(1.9 s\) must be whole seconds, at least 1: ",
        ),
        (
            {"lease": 0.5, "renew": 0.3, "retry": 0.1},
            r"^the lease duration \(0.5 s\) must be whole seconds, at least 1: ",
        ),
        ({"identity": ""}, "none may be empty"),
    ],
)
async def test_invalid_settings_are_refused_at_construction(clock: Clock, options: Any, text: str) -> None:
    """70 §17 Election 5: times that do not fit together are refused before anything runs."""
    with pytest.raises(ConfigurationError, match=text):
        elector(LeaseServer(clock), **options)


def test_identities_are_host_and_uuid() -> None:
    host, _, number = make_identity("host", random.Random(1)).partition("_")
    assert host == "host"
    assert len(number) == 36


async def test_a_lease_that_was_taken_away_is_lost_with_the_name_of_its_new_holder(clock: Clock) -> None:
    server = LeaseServer(clock)
    leader = elector(server)
    await leader.acquire()
    holding = asyncio.create_task(leader.hold())
    await clock.sleep(1)
    held_by(server, "thief")
    while not holding.done():
        await clock.sleep(2)
        held_by(server, "thief", str(clock.monotonic()))
    with pytest.raises(LeaderElectionLost, match=r"could not be renewed for 10 s: it is held by thief$"):
        await holding


async def test_who_held_the_lease_before_is_not_why_it_was_lost(clock: Clock) -> None:
    server = LeaseServer(clock)
    held_by(server, "before", seconds=4)
    leader = elector(server)
    await leader.acquire()
    holding = asyncio.create_task(leader.hold())
    server.slow = 1000
    with pytest.raises(LeaderElectionLost, match=r"could not be renewed for 10 s$"):
        await holding
