"""The page about the client: what it shows works, in its order."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

from lwskit.runtime.kinds import Kind
from lwskit.testing import fake

PAGE = Path(__file__).parents[4] / "docs" / "client.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def stateful_set() -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"serviceName": "web", "selector": {"matchLabels": {"app": "web"}}, "template": template}
    meta = {"name": "web", "namespace": "shop"}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta, "spec": spec}


async def test_the_examples_of_the_page_run() -> None:
    blocks = BLOCK.findall(PAGE.read_text())
    made, others = [b for b in blocks if "client = " in b], [b for b in blocks if "client = " not in b]
    assert len(made) == 2
    assert len(others) >= 8
    for block in made:
        # These need a cluster; their imports must exist all the same.
        imports = [n for n in ast.parse(block, PAGE.name).body if isinstance(n, ast.Import | ast.ImportFrom)]
        exec(compile(ast.Module(imports, []), PAGE.name, "exec"), {})
    client = fake.client([stateful_set()], kinds=[Kind("example.com", "v1", "Widget", "widgets")])
    scope: dict[str, Any] = {"client": client}
    for block in others:
        result = eval(compile(block, PAGE.name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), scope)
        if inspect.isawaitable(result):
            await result
