"""Lint refuses what the embedded API server with our webhooks refuses, in its words, and nothing else."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lwskit.admission.webhooks import handlers
from lwskit.api.crds import crds
from lwskit.embedded.apiserver import ApiServer
from lwskit.embedded.store import Store
from lwskit.embedded.transport import InProcessTransport
from lwskit.lint.findings import REFUSED_BY_SCHEMA, Severity
from lwskit.lint.server import Answer
from lwskit.manager.inprocess import register
from lwskit.runtime.client.client import Client
from lwskit.runtime.client.transport import HttpRequest
from lwskit.runtime.clock import Clock
from lwskit.runtime.kinds import CUSTOM_RESOURCE_DEFINITION
from lwskit.runtime.objects import Obj
from tests.cases import patched
from tests.unit.lint.support import codes, findings, lws, only, server

CASES = Path(__file__).parents[2] / "conformance" / "cases"
PATH = "/apis/leaderworkerset.x-k8s.io/v1/namespaces/default/leaderworkersets"
DISAGGREGATED_PATH = "/apis/disaggregatedset.x-k8s.io/v1/namespaces/default/disaggregatedsets"
DENIED = {
    "LeaderWorkerSet": 'admission webhook "vleaderworkerset.kb.io" denied the request: ',
    "DisaggregatedSet": 'admission webhook "vdisaggregatedset.kb.io" denied the request: ',
}
INVALID = {
    "LeaderWorkerSet": 'LeaderWorkerSet.leaderworkerset.x-k8s.io "',
    "DisaggregatedSet": 'DisaggregatedSet.disaggregatedset.x-k8s.io "',
}


def played(name: str, step: str) -> list[Any]:
    steps = yaml.safe_load((CASES / f"{name}.yaml").read_text())["steps"][0][step]
    base = yaml.safe_load(steps["base"])
    return [pytest.param(base, operations, id=case) for case, operations in steps["cases"].items()]


ODD: dict[str, Any] = {
    "labels": ("metadata", {"name": "llm", "labels": {"a": 1}}),
    "metadata": ("metadata", []),
    "no-name": ("metadata", {}),
    "generated": ("metadata", {"generateName": "llm-"}),
    "namespace": ("metadata", {"name": "llm", "finalizers": ["a", "b b"]}),
    "no-spec": ("spec", None),
    "spec-text": ("spec", "x"),
    "spec-empty": ("spec", {}),
    "spec-list": ("spec", [1]),
    "unknown": ("spices", {}),
    "status": ("status", {"replicas": 7}),
}


@pytest.fixture
async def api(clock: Clock) -> AsyncIterator[ApiServer]:
    server = ApiServer(Store(), clock, random.Random(1))
    client = Client(InProcessTransport(server), clock=clock)
    for crd in crds():
        await client.create(CUSTOM_RESOURCE_DEFINITION, crd)
    await register(server, client, handlers(random.Random(1)))
    yield server
    await server.close()


async def write(api: ApiServer, method: str, obj: Obj, name: str = "", path: str = PATH) -> str:
    """Write an object as it is; the text of the refusal, empty if there is none."""
    headers = {"content-type": "application/json"}
    request = HttpRequest(method, path + name, headers=headers, body=json.dumps(obj).encode())
    response = await api.handle(request)
    return "" if response.status < 300 else json.loads(response.body)["message"]


def compare(refusal: str, answer: Answer, text: str, old: str = "") -> None:
    """What the server said, what lint says it would say, and what lint finds are the same."""
    told = [f for f in answer.refusals if f.code is REFUSED_BY_SCHEMA] or list(answer.refusals)
    nowhere = ("Checked value", "some validation rules were not checked")
    texts = [f"{'<nil>' if any(text in f.message for text in nowhere) else f.path}: {f.message}" for f in told]
    texts = list(dict.fromkeys(texts))
    whole = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    if not told:
        assert refusal == ""
    elif answer.stored is None:
        assert refusal == told[0].message
    elif told[0].code is REFUSED_BY_SCHEMA:
        name = answer.stored["metadata"].get("name", "")
        assert refusal == f'{INVALID[answer.stored["kind"]]}{name}" is invalid: {whole}'
    else:
        assert refusal == DENIED[answer.stored["kind"]] + whole
    found = [f.fault for f in findings(text, old) if f.severity is Severity.ERROR]
    assert sorted((f.path, f.message) for f in found) == sorted((f.path, f.message) for f in answer.refusals)


@pytest.mark.parametrize(("base", "operations"), played("admission-lws", "admit"))
async def test_creates(api: ApiServer, base: Obj, operations: list[Any]) -> None:
    obj = patched(base, operations)
    compare(await write(api, "POST", obj), server().create(obj, "default"), yaml.safe_dump(obj))


@pytest.mark.parametrize(("base", "operations"), played("admission-ds", "admit"))
async def test_creates_of_disaggregated_sets(api: ApiServer, base: Obj, operations: list[Any]) -> None:
    obj = patched(base, operations)
    refusal = await write(api, "POST", obj, path=DISAGGREGATED_PATH)
    compare(refusal, server().create(obj, "default"), yaml.safe_dump(obj))


@pytest.mark.parametrize(("base", "operations"), played("admission-lws-update", "admit_update"))
async def test_updates(api: ApiServer, base: Obj, operations: list[Any]) -> None:
    assert await write(api, "POST", base) == ""
    new, old = patched(base, operations), yaml.safe_dump(base)
    before = server().create(base, "default").stored
    assert before is not None
    live = json.loads((await api.handle(HttpRequest("GET", PATH + "/llm"))).body)
    version = live["metadata"]["resourceVersion"]
    versioned = new | {"metadata": {**new["metadata"], "resourceVersion": version}}
    answer = server().update(new, before, "default")
    compare(await write(api, "PUT", versioned, "/llm"), answer, yaml.safe_dump(new), old)


@pytest.mark.parametrize("name", ODD)
async def test_odd_objects(api: ApiServer, name: str) -> None:
    base = yaml.safe_load(yaml.safe_load((CASES / "admission-lws.yaml").read_text())["steps"][0]["admit"]["base"])
    field, value = ODD[name]
    obj = base | {field: value}
    compare(await write(api, "POST", obj), server().create(obj, "default"), yaml.safe_dump(obj))


async def test_what_is_stored_is_what_lint_takes_for_stored(api: ApiServer) -> None:
    base = yaml.safe_load(yaml.safe_load((CASES / "admission-lws.yaml").read_text())["steps"][0]["admit"]["base"])
    assert await write(api, "POST", base) == ""
    live = json.loads((await api.handle(HttpRequest("GET", PATH + "/llm"))).body)
    answer = server().create(base, "default")
    assert answer.stored is not None
    assert answer.stored["spec"] == live["spec"]


@pytest.mark.parametrize("name", ["hostname", "subdomain"])
def test_names_that_pods_get_otherwise_are_not_looked_at(name: str) -> None:
    """A StatefulSet gives its pods their host names, so that a real server accepts any in the template."""
    assert "LWS431" not in codes(lws(worker={name: "A_B"}))


def test_what_only_the_statefulset_refuses() -> None:
    amounts = {"resources": {"limits": {"google.com/tpu": "0.5"}}}
    found = only("LWS431", lws(container=amounts)).fault
    assert found.path.endswith("resources.limits[google.com/tpu]")
    assert found.message.endswith('Invalid value: "500m": must be an integer')
