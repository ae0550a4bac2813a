"""The page about the cache: what it shows works, in its order."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

from lwskit.runtime.clock import Clock
from lwskit.testing import fake

PAGE = Path(__file__).parents[4] / "docs" / "cache.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def config_map(name: str, **data: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": "shop", "ownerReferences": []}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


async def test_the_examples_of_the_page_run(clock: Clock, capsys: Any) -> None:
    blocks = BLOCK.findall(PAGE.read_text())
    assert len(blocks) >= 7
    client = fake.client([config_map("prices", color="red"), config_map("hours", color="blue")], clock=clock)
    scope: dict[str, Any] = {"client": client}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), scope)
    caches = [asyncio.create_task(scope[name].run()) for name in ("cache", "several")]
    await scope["cache"].wait_synced()
    assert (await scope["prices"]())["data"] == {"color": "red"}
    assert [o["metadata"]["name"] for o in await scope["red"]()] == ["prices"]
    informer = scope["config_maps"]
    assert informer._views._views[0].counts == {"shop": 2}
    assert sorted(capsys.readouterr().out.splitlines()) == ["there is hours", "there is prices"]
    for task in caches:
        task.cancel()
    await asyncio.wait(caches)
