"""Looking whether another manager renews the Lease, with a client that is scripted, on virtual time (70 §7)."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from lwskit.manager import leases
from lwskit.runtime.clock import Clock, rfc3339_micro
from lwskit.runtime.errors import ConfigurationError, ConnectionFailed, Forbidden, NotFound
from lwskit.runtime.kinds import LEASE, Kind
from lwskit.runtime.objects import Obj


class Answers:
    """A client that gives one answer after another to reads of the Lease, the last one for ever."""

    def __init__(self, clock: Clock, *answers: Obj | Exception) -> None:
        self.clock, self.answers, self.asked = clock, list(answers), 0
        self.removed: list[tuple[str, str]] = []
        self.told: list[tuple[str, float]] = []

    def waiting(self, holder: str, seconds: float) -> None:
        self.told.append((holder, seconds))

    async def delete(self, kind: Kind, name: str, namespace: str, *, uid: str, resource_version: str) -> Obj:
        assert (kind, name, namespace) == (LEASE, "lock", "ns")
        self.removed.append((uid, resource_version))
        return {}

    async def get(self, kind: Kind, name: str, namespace: str) -> Obj:
        assert (kind, name, namespace) == (LEASE, "lock", "ns")
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


META = {"uid": "u", "resourceVersion": "7"}


def lease(clock: Clock, holder: str = "them", *, age: float = 1.0, transitions: int = 0, seconds: int = 15) -> Obj:
    return {
        "metadata": META,
        "spec": {
            "holderIdentity": holder,
            "renewTime": rfc3339_micro(clock.now() - timedelta(seconds=age)),
            "leaseDurationSeconds": seconds,
            "leaseTransitions": transitions,
        },
    }


async def look(clock: Clock, *answers: Obj | Exception) -> tuple[Answers, float]:
    """Look at a Lease; the client, and how long it took."""
    client: Any = Answers(clock, *answers)
    await leases.retire(client, "ns", "lock", clock, client.waiting)
    return client, clock.monotonic()


@pytest.mark.parametrize("answer", [NotFound("none"), {"spec": {}}, {}, {"spec": {"holderIdentity": ""}}])
async def test_a_lease_that_nobody_holds_is_free_at_once(clock: Clock, answer: Obj | Exception) -> None:
    client, took = await look(clock, answer)
    assert (client.asked, took) == (1, 0)


async def test_one_that_was_not_renewed_for_long_is_free_at_once(clock: Clock) -> None:
    client, took = await look(clock, lease(clock, age=601))
    assert (client.asked, took, client.removed, client.told) == (1, 0, [("u", "7")], [])


async def test_one_without_a_time_is_free_at_once(clock: Clock) -> None:
    _, took = await look(clock, {"metadata": META, "spec": {"holderIdentity": "them"}})
    assert took == 0


@pytest.mark.parametrize("age", [0.0, 1.0, 100.0, -3600.0])
async def test_one_that_does_not_change_for_its_duration_is_abandoned_whatever_the_clocks(
    clock: Clock, age: float
) -> None:
    client, took = await look(clock, lease(clock, age=age, seconds=20))
    assert took == pytest.approx(20, abs=0.5)
    assert (client.removed, client.told) == ([("u", "7")], [("them", 20.0)])


async def test_one_that_is_renewed_is_told_with_its_holder(clock: Clock) -> None:
    with pytest.raises(ConfigurationError) as caught:
        await look(clock, *[lease(clock)] * 4, lease(clock, age=0))
    assert str(caught.value) == (
        "another manager, them, holds the Lease ns/lock and renews it; stop it first, or run against another cluster"
    )
    assert clock.monotonic() == 2.0


async def test_one_that_changes_hands_is_told_with_its_new_holder(clock: Clock) -> None:
    with pytest.raises(ConfigurationError, match="another manager, others, holds"):
        await look(clock, lease(clock), lease(clock, "others", transitions=1))


@pytest.mark.parametrize("last", [NotFound("gone"), {"spec": {"holderIdentity": ""}}])
async def test_one_that_is_released_while_we_look_is_free(clock: Clock, last: Obj | Exception) -> None:
    _, took = await look(clock, lease(clock), lease(clock), last)
    assert took == 1.0


@pytest.mark.parametrize("error", [Forbidden("no"), ConnectionFailed("no answer")])
async def test_what_the_server_says_is_not_hidden(clock: Clock, error: Exception) -> None:
    with pytest.raises(type(error)):
        await look(clock, error)


async def test_the_look_ends_when_it_is_cancelled(clock: Clock) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(3):
            await look(clock, lease(clock))
    assert clock.monotonic() == 3.0
