"""A watch ends when its time is over, after one last bookmark."""

from __future__ import annotations

import random

from lwskit.embedded.apiserver import ApiServer
from lwskit.embedded.store import Store
from lwskit.embedded.transport import InProcessTransport
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock
from lwskit.runtime.kinds import CONFIG_MAP


async def test_a_watch_ends_with_its_time_after_one_bookmark(clock: Clock) -> None:
    client = Client(InProcessTransport(ApiServer(Store(), clock, random.Random(1))))
    async with client.watch(CONFIG_MAP, timeoutSeconds=30, allowWatchBookmarks=True) as response:
        lines = [line async for chunk in response.chunks() for line in chunk.splitlines()]
    assert clock.monotonic() == 30
    assert [b'"type":"BOOKMARK"' in line for line in lines] == [True]
