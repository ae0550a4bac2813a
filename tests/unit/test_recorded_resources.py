"""The table of built-in resources holds what a server has of itself, and nothing that a CRD brought."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tools import record_resources

RECORDED = Path(__file__).parents[2] / "src/lwskit/embedded/builtin-resources.json"


def group(name: str, kind: str) -> dict[str, Any]:
    resource = {
        "resource": kind.lower() + "s",
        "singularResource": kind.lower(),
        "responseKind": {"kind": kind},
        "scope": "Namespaced",
        "verbs": ["get"],
    }
    return {"metadata": {"name": name}, "versions": [{"version": "v1", "resources": [resource]}]}


def test_custom_kinds_of_the_recorded_server_are_left_out():
    groups = [group("apps", "Deployment"), group("example.org", "Foo"), group("batch.x-k8s.io", "Bar")]
    assert [r["kind"] for r in record_resources.rows([{"items": groups}])] == ["Deployment"]


def test_the_table_is_what_its_tool_would_leave():
    for row in json.loads(RECORDED.read_text())["resources"]:
        name = row["group"]
        assert name in record_resources.CORE_GROUPS or name.endswith(".k8s.io"), row["kind"]
