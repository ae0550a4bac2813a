"""What an API server tells of sets, and that it takes every set of the recorded cases (specification: 10 §1–3)."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from lwskit.api import names
from lwskit.api.leaderworkerset import LeaderWorkerSet
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.client.transport import HttpRequest
from lwskit.runtime.objects import Obj
from lwskit.testing.cluster import TestCluster

CASES = sorted((Path(__file__).parents[1] / "conformance" / "cases").glob("*.yaml"))
KUBERNETES_OWN = ("leaderTemplate", "workerTemplate", "volumeClaimTemplates")
SERVER_SIDE = ("apply", "--server-side", "--dry-run=server", "-o", "json", "-f", "-")


def fields_of_models() -> set[str]:
    """The paths of all fields that the models have, by the names that they have in JSON."""
    schema = LeaderWorkerSet.model_json_schema(by_alias=True)

    def walk(part: Any, path: str) -> Iterator[str]:
        if "$ref" in part:
            part = schema["$defs"][part["$ref"].rpartition("/")[2]]
        for option in part.get("anyOf", ()):
            yield from walk(option, path)
        if "items" in part:
            yield from walk(part["items"], path)
        for name, inner in part.get("properties", {}).items():
            yield f"{path}.{name}"
            yield from walk(inner, f"{path}.{name}")

    return {path for path in walk(schema, "") if path.startswith((".spec", ".status"))}


async def document(cluster: TestCluster) -> dict[str, Any]:
    """The OpenAPI v3 document about sets."""
    headers = {"accept": "application/json"}
    path = f"/openapi/v3/apis/{names.API_VERSION}"

    async def read() -> dict[str, Any]:
        # A new kind is described a little after it is served.
        answer = await cluster.client.transport.send(HttpRequest("GET", path, (), headers))
        assert answer.status == 200
        schemas = orjson.loads(answer.body)["components"]["schemas"]
        (found,) = [s for s in schemas.values() if {"kind": names.KIND}.items() <= about(s).items()]
        return found

    return await cluster.eventually(read)


def about(schema: Any) -> Obj:
    """The kind that a schema is of."""
    kinds = schema.get("x-kubernetes-group-version-kind") or [{}]
    return kinds[0]


def described(schema: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every field of ours under a schema, and what is said of it."""
    for name, part in schema.get("properties", {}).items():
        yield f"{path}.{name}", part.get("description", "")
        if name not in KUBERNETES_OWN:
            yield from described(part, f"{path}.{name}")
    if "items" in schema:
        yield from described(schema["items"], path)


async def test_every_field_is_described(cluster: TestCluster):
    """The OpenAPI document has all fields of the models, and each has a description."""
    found = {path: text for path, text in described(await document(cluster)) if path.startswith((".spec", ".status"))}
    assert found.keys() == fields_of_models()
    assert not [path for path, text in found.items() if not text.strip()]


@pytest.mark.real_only("kubectl asks a server of its own process")
async def test_kubectl_explains_every_field(cluster: TestCluster):
    """`kubectl explain` lists all fields of the models."""
    await document(cluster)
    for part in ("spec", "status"):
        text = await kubectl(cluster, "explain", f"{names.SINGULAR}.{part}", "--recursive")
        listed = set(explained(text, f".{part}"))
        wanted = {path for path in fields_of_models() if path.startswith(f".{part}.")}
        assert wanted <= listed, sorted(wanted - listed)


def explained(text: str, root: str) -> Iterator[str]:
    """The paths of the fields that `kubectl explain --recursive` lists by their indentation."""
    above: list[tuple[int, str]] = [(-1, root)]
    for line in text[text.index("FIELDS:") :].splitlines()[1:]:
        found = re.fullmatch(r"(\s*)([A-Za-z0-9]+)\t.*", line)
        if found is None:
            continue
        depth = len(found[1])
        while above[-1][0] >= depth:
            above.pop()
        path = f"{above[-1][1]}.{found[2]}"
        above.append((depth, path))
        yield path


async def kubectl(cluster: TestCluster, *arguments: str, stdin: str = "") -> str:
    """What kubectl prints. The test is skipped where there is none."""
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("there is no kubectl here")
    process = await asyncio.create_subprocess_exec(
        program,
        "--kubeconfig",
        cluster.kubeconfig,
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate(stdin.encode())
    assert process.returncode == 0, err.decode()
    return out.decode()


def recorded(path: Path) -> list[Obj]:
    """The sets that a recorded case creates; what cases about admission change in them is another matter."""
    steps = yaml.safe_load(path.read_text())["steps"]
    texts = [step["apply"] for step in steps if "apply" in step]
    texts += [step[kind]["base"] for step in steps for kind in ("admit", "admit_update") if kind in step]
    objects = [obj for text in texts for obj in yaml.safe_load_all(text) if obj]
    return [obj for obj in objects if obj["kind"] == names.KIND]


SETS = {f"{path.stem} {obj['metadata']['name']}": obj for path in CASES for obj in recorded(path)}


def in_namespace(obj: Obj, cluster: TestCluster) -> Obj:
    return {**obj, "metadata": {**obj["metadata"], "namespace": cluster.namespace}}


async def test_recorded_sets_are_accepted(cluster: TestCluster):
    """Every set of the recorded cases passes a dry run, with all that it says."""
    assert len(SETS) >= 20
    for case, obj in SETS.items():
        made = await cluster.client.apply(
            LEADER_WORKER_SET, in_namespace(obj, cluster), field_manager="test", dry_run=True
        )
        group = made["spec"]["leaderWorkerTemplate"]
        assert obj["spec"]["leaderWorkerTemplate"].keys() <= group.keys(), case
        assert group["workerTemplate"]["spec"]["containers"], case


@pytest.mark.real_only("kubectl asks a server of its own process")
async def test_kubectl_applies_recorded_sets(cluster: TestCluster):
    """`kubectl apply --dry-run=server` takes all of them."""
    manifest = json.dumps(
        {"apiVersion": "v1", "kind": "List", "items": [in_namespace(obj, cluster) for obj in SETS.values()]}
    )
    answer = json.loads(await kubectl(cluster, *SERVER_SIDE, stdin=manifest))
    assert [item["metadata"]["name"] for item in answer["items"]] == [o["metadata"]["name"] for o in SETS.values()]
