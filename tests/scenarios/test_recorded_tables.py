"""What the embedded API server has recorded from a real one is still what a real one does (real clusters only)."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from lwskit.embedded.apiserver import ApiServer
from lwskit.runtime.client.transport import HttpRequest
from lwskit.runtime.objects import Obj
from lwskit.testing.cluster import Runnable, TestCluster
from tools import record_resources
from tools.record_defaults import differences, path_of, without_identity

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "src/lwskit/embedded/builtin-resources.json"
PROBES: list[dict[str, Any]] = list(yaml.safe_load_all((ROOT / "tools/default_probes.yaml").read_text()))
CHANCE = frozenset({"clusterIP", "clusterIPs", "nodePort", "lastTransitionTime", "lastPhaseTransitionTime"})


@pytest.fixture
def cluster_crds() -> Sequence[Obj]:
    """None: only built-in kinds are looked at."""
    return ()


@pytest.fixture
def cluster_runnables() -> Sequence[Runnable]:
    """None: no manager, so no webhooks."""
    return ()


@pytest.fixture
def real(cluster: TestCluster) -> TestCluster:
    """A cluster that is not the embedded one: comparing that with itself says nothing."""
    if cluster.embedded:
        pytest.skip("compares with a real API server")
    return cluster


def comparable(value: Any) -> Any:
    """Without what chance and the cluster's own networks decide."""
    if isinstance(value, dict):
        return {k: "*" if k in CHANCE and v != "None" and v != ["None"] else comparable(v) for k, v in value.items()}
    return [comparable(v) for v in value] if isinstance(value, list) else value


async def test_defaults_are_those_of_a_real_server(real: TestCluster):
    embedded = ApiServer(rng=random.Random(1))
    found: list[str] = []
    for probe in PROBES:
        group, _, version = probe["apiVersion"].rpartition("/")
        resource = embedded.backend.registry.by_kind(group, version, probe["kind"])
        assert resource is not None
        query = (("dryRun", "All"), ("fieldValidation", "Strict"))
        headers = {"content-type": "application/json", "accept": "application/json", "user-agent": "probe/1"}
        request = HttpRequest("POST", path_of(resource), query, headers, orjson.dumps(probe))
        ours = await embedded.handle(request)
        theirs = await real.client.transport.send(request)
        assert (ours.status, theirs.status) == (201, 201), (ours.body, theirs.body)
        one, two = (without_identity(comparable(orjson.loads(answer.body))) for answer in (ours, theirs))
        found += [f"{probe['kind']} {probe['metadata']['name']}{line}" for line in differences(one, two)]
    assert not found


async def test_resources_are_those_of_a_real_server(real: TestCluster):
    documents = []
    for path in ("/api", "/apis"):
        request = HttpRequest("GET", path, (), {"accept": record_resources.AGGREGATED})
        documents.append(orjson.loads((await real.client.transport.send(request)).body))
    served = {json.dumps(row, sort_keys=True) for row in record_resources.rows(documents)}
    recorded = {json.dumps(row, sort_keys=True) for row in json.loads(RECORDED.read_text())["resources"]}
    assert recorded <= served
