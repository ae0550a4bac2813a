"""The client-side rate limit (specification: 70 §6.3)."""

from __future__ import annotations

import asyncio

import pytest

from lwskit.runtime.client.client import Client
from lwskit.runtime.client.throttle import ThrottledTransport
from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.kinds import POD
from lwskit.testing.scripted import Listing, Script, Stream
from lwskit.testing.virtual import VirtualClock


async def test_requests_go_out_in_turn_at_the_rate_that_is_allowed(clock: VirtualClock) -> None:
    script = Script(*[Listing()] * 9)
    client = Client(ThrottledTransport(script, 2.0, 3, clock), clock=clock)
    await asyncio.gather(*(client.list(POD, f"n{n}") for n in range(5)))
    assert script.times == [0, 0, 0, 0.5, 1]
    assert [request.path.split("/")[4] for _, request in script.seen] == ["n0", "n1", "n2", "n3", "n4"]
    await clock.sleep(60)
    await asyncio.gather(*(client.list(POD) for _ in range(4)))
    assert script.times[5:] == [61, 61, 61, 61.5]
    await client.close()


async def test_a_watch_takes_its_turn_and_a_cancelled_request_is_not_sent(clock: VirtualClock) -> None:
    script = Script(Listing(), Stream(b"x"), Listing())
    client = Client(ThrottledTransport(script, 1.0, 1, clock), clock=clock)
    await client.list(POD)
    async with client.watch(POD) as response:
        assert [chunk async for chunk in response.chunks()] == [b"x"]
    assert script.times == [0, 1]
    late = asyncio.create_task(client.list(POD))
    await asyncio.sleep(0.5)
    late.cancel()
    await asyncio.wait({late})
    await clock.sleep(5)
    assert len(script.seen) == 2


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (-1, 1), (1, 0)])
def test_a_limit_that_lets_nothing_through_is_refused(rate: float, burst: int) -> None:
    with pytest.raises(ConfigurationError, match="lets nothing through"):
        ThrottledTransport(Script(), rate, burst, VirtualClock())
