"""Kubeconfig, sockets, TLS, client and cache together, on an embedded API server."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
import yaml

from lwskit.embedded.apiserver import ApiServer
from lwskit.embedded.http import serve
from lwskit.embedded.store import Store
from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.client.config import connect, server_url
from lwskit.runtime.clock import RealClock
from lwskit.runtime.errors import AlreadyExists, ConfigurationError
from lwskit.runtime.kinds import CONFIG_MAP
from lwskit.runtime.objects import Key, Obj


class Deletions:
    def __init__(self) -> None:
        self.seen = asyncio.Event()

    def on_add(self, obj: Obj, initial: bool) -> None: ...

    def on_update(self, old: Obj, new: Obj) -> None: ...

    def on_delete(self, obj: Obj, unknown: bool) -> None:
        self.seen.set()


def config_map(name: str) -> Obj:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"large": "x" * 500_000}}


async def test_a_cache_follows_a_server_over_tls(tmp_path: Path) -> None:
    clock, rng = RealClock(), random.Random(3)
    server = ApiServer(Store(), clock, rng)
    async with serve(server, clock=clock, rng=rng) as served:
        with served.kubeconfig(tmp_path / "config") as path:
            client = await connect(str(path), user_agent="lwskit/test", field_manager="me", clock=clock)
            broken = yaml.safe_load(path.read_text())
            broken["users"][0]["user"]["token"] = "wrong"
            path.write_text(yaml.safe_dump(broken))
            with pytest.raises(ConfigurationError, match="refuses the credentials"):
                await connect(str(path), user_agent="lwskit/test", clock=clock)
        assert server_url(client) == served.url
        await client.create(CONFIG_MAP, config_map("a"))
        with pytest.raises(AlreadyExists):
            await client.create(CONFIG_MAP, config_map("a"))
        cache, deletions = Cache(client, clock, rng), Deletions()
        informer = cache.informer(CONFIG_MAP)
        informer.add_handler(deletions)
        running = asyncio.create_task(cache.run())
        await cache.wait_synced()
        assert informer.healthy
        assert informer.store.get(Key("default", "a")) is not None
        assert informer.ingest(await client.create(CONFIG_MAP, config_map("b")))
        await client.delete(CONFIG_MAP, "b", "default")
        await asyncio.wait_for(deletions.seen.wait(), 30)
        assert [obj["metadata"]["name"] for obj in informer.store] == ["a"]
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await client.close()
