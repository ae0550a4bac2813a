"""The pages about the controller library: what they show works, in their order, each page in a program of its own."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lwskit.runtime.client import config
from lwskit.runtime.clock import Clock
from lwskit.runtime.kinds import Kind
from lwskit.testing import fake

DOCS = Path(__file__).parents[3] / "docs"
PAGES = {
    "runtime.md": 1,
    "manager.md": 4,
    "controllers.md": 6,
    "plans.md": 4,
    "webhooks.md": 4,
    "election.md": 3,
    "events.md": 3,
    "health-and-metrics.md": 3,
}
"""The pages whose blocks run, and how many there are at least."""
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WIDGET = Kind("example.com", "v1", "Widget", "widgets")


@pytest.mark.parametrize("page", PAGES)
async def test_the_examples_of_the_page_run(
    page: str, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = BLOCK.findall((DOCS / page).read_text())
    assert len(blocks) >= PAGES[page]
    client = fake.client(kinds=[WIDGET], namespaces=["shop"], clock=clock)

    async def connect(**_: Any) -> fake.FakeClient:
        return client

    monkeypatch.setattr(config, "connect", connect)
    scope: dict[str, Any] = {"client": client, "clock": clock, "rng": Random(1), "folder": tmp_path}
    for block in blocks:
        result = eval(compile(block, page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), scope)
        if inspect.isawaitable(result):
            await result
    if "main" in scope:
        program = asyncio.create_task(scope["main"](), name=page)
        await clock.sleep(1)
        assert not program.done()
        program.cancel()
        await asyncio.wait({program})


def test_every_page_of_the_library_runs() -> None:
    """What the start page names is run: here, by a test of its own, or because it quotes files that are run."""
    table = (DOCS / "runtime.md").read_text()
    named = set(re.findall(r"^\| \[[^\]]+\]\(([\w-]+\.md)\)", table, re.MULTILINE))
    with_code = {name for name in named if BLOCK.search((DOCS / name).read_text())}
    assert with_code - PAGES.keys() == {"cache.md", "client.md", "testing.md", "tutorial.md"}
