"""What an API server makes of sets: columns, defaults, what its schema refuses (specification: 10 §1–3, §5).

Most sets are only tried, as dry runs: the answer is what would be stored.
"""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from lwskit.api import names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.client.transport import HttpRequest, HttpResponse
from lwskit.runtime.errors import ApiError, Forbidden, Invalid
from lwskit.runtime.kinds import CUSTOM_RESOURCE_DEFINITION
from lwskit.runtime.objects import Obj
from lwskit.testing.cluster import TestCluster
from tests.scenarios.support import Sets, pod_template, set_object

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
FULL = {"type": "RollingUpdate", "rollingUpdateConfiguration": {"partition": 2, "maxUnavailable": "30%", "maxSurge": 3}}
PACE = {"partition": 0, "maxUnavailable": 1, "maxSurge": 0}


async def tried(cluster: TestCluster, group: Obj | None = None, **spec: Any) -> Obj:
    """The spec that would be stored of a set with this; what is None is left out."""
    obj = set_object(group=group)
    obj["metadata"]["namespace"] = cluster.namespace
    obj["spec"] |= spec
    for fields in (obj["spec"], obj["spec"]["leaderWorkerTemplate"]):
        for name in [n for n, value in fields.items() if value is None]:
            del fields[name]
    answer = await cluster.client.create(LEADER_WORKER_SET, obj, dry_run=True)
    return answer["spec"]


async def refused(cluster: TestCluster, group: Obj | None = None, **spec: Any) -> str:
    """Why the schema refuses a set with this."""
    with pytest.raises(Invalid) as caught:
        await tried(cluster, group, **spec)
    return str(caught.value)


async def send(cluster: TestCluster, method: str, name: str, accept: str = "application/json") -> HttpResponse:
    """The bare answer to a request about a set."""
    path = f"/apis/{names.API_VERSION}/namespaces/{cluster.namespace}/{names.PLURAL}/{name}"
    return await cluster.client.transport.send(HttpRequest(method, path, (), {"accept": accept}))


async def test_columns(cluster: TestCluster, sets: Sets):
    """10 §14 line 1: what `kubectl get lws` prints, and of which fields."""
    await sets.running(replicas=2, size=1)
    table = orjson.loads((await send(cluster, "GET", "llm", TABLE)).body)
    assert [column["name"] for column in table["columnDefinitions"]] == [
        "Name",
        "Ready",
        "Desired",
        "Up-to-date",
        "Age",
    ]
    assert [column["type"] for column in table["columnDefinitions"][1:]] == ["integer", "integer", "integer", "date"]
    (row,) = table["rows"]
    live = await sets.live()
    assert row["cells"][:4] == [
        "llm",
        live["status"]["readyReplicas"],
        live["spec"]["replicas"],
        live["status"]["updatedReplicas"],
    ]
    assert (await send(cluster, "GET", "none", TABLE)).status == 404


async def test_the_kind_is_served_as_it_is_written(cluster: TestCluster):
    """10 §1: the schema is structural, the names are accepted, and of templates' metadata five fields are kept."""
    crd = await cluster.client.get(CUSTOM_RESOURCE_DEFINITION, names.CRD_NAME)
    conditions = {c["type"]: c["status"] for c in crd["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    kept = {
        "annotations": {"a": "1"},
        "finalizers": ["example.com/f"],
        "labels": {"b": "2"},
        "name": "n",
        "namespace": "m",
    }
    template = pod_template("img:v1") | {"metadata": {**kept, "generateName": "g-", "uid": "u", "newer": 1}}
    claim = {"metadata": {**kept, "ownerReferences": []}, "spec": {"accessModes": ["ReadWriteOnce"], "newer": 1}}
    spec = await tried(cluster, {"leaderTemplate": template, "volumeClaimTemplates": [claim]}, newer={"deep": 1})
    assert spec["leaderWorkerTemplate"]["leaderTemplate"]["metadata"] == kept
    (stored,) = spec["leaderWorkerTemplate"]["volumeClaimTemplates"]
    assert (stored["metadata"], stored["spec"]) == (kept, {"accessModes": ["ReadWriteOnce"]})
    assert "newer" not in spec


async def test_numbers(cluster: TestCluster):
    """10 §14 lines 2, 3, 4: one group of one pod unless something else is said."""
    spec = await tried(cluster, {"size": None}, replicas=None)
    assert (spec["replicas"], spec["leaderWorkerTemplate"]["size"]) == (1, 1)
    spec = await tried(cluster, {"size": 2}, replicas=2)
    assert (spec["replicas"], spec["leaderWorkerTemplate"]["size"]) == (2, 2)


async def test_restart_policies(cluster: TestCluster):
    """10 §14 lines 5, 6, 7: RecreateGroupOnPodRestart unless something else is said, and Default is None."""
    for given, stored in (
        (None, "RecreateGroupOnPodRestart"),
        ("", "RecreateGroupOnPodRestart"),
        ("None", "None"),
        ("Default", "None"),
        ("RecreateGroupAfterStart", "RecreateGroupAfterStart"),
    ):
        spec = await tried(cluster, {"restartPolicy": given})
        assert spec["leaderWorkerTemplate"]["restartPolicy"] == stored, given


async def test_startup_policies(cluster: TestCluster):
    """10 §14 line 8: workers come with their leader unless something else is said."""
    assert (await tried(cluster))["startupPolicy"] == "LeaderCreated"
    assert (await tried(cluster, startupPolicy="LeaderReady"))["startupPolicy"] == "LeaderReady"


async def test_enumerations(cluster: TestCluster, sets: Sets):
    """10 §14 line 9: the schema refuses what is no choice, on creation and on change, with path and choices."""
    await sets.create(replicas=0)
    for path, value, choices in (
        (("startupPolicy",), "Later", names.STARTUP_POLICIES),
        (("startupPolicy",), "", names.STARTUP_POLICIES),
        (("rolloutStrategy", "type"), "Recreate", names.ROLLOUT_STRATEGIES),
        (("leaderWorkerTemplate", "restartPolicy"), "Never", names.RESTART_POLICIES),
    ):
        shown = ", ".join(f'"{choice}"' for choice in choices)
        expected = f'spec.{".".join(path)}: Unsupported value: "{value}": supported values: {shown}'
        changed = set_object("other")
        place = changed["spec"]
        for name in path[:-1]:
            place = place.setdefault(name, {})
        place[path[-1]] = value
        with pytest.raises(Invalid) as caught:
            await cluster.create(LEADER_WORKER_SET, changed)
        assert expected in str(caught.value)
        with pytest.raises(Invalid) as caught:
            await sets.patch({"spec": changed["spec"]})
        assert expected in str(caught.value)


async def test_networks(cluster: TestCluster, sets: Sets):
    """10 §14 lines 10, 17: Shared unless something else is said, also when it is taken away."""
    for given in (None, {}, {"subdomainPolicy": None}):
        assert (await tried(cluster, networkConfig=given))["networkConfig"] == {"subdomainPolicy": "Shared"}
    await sets.create(replicas=0, networkConfig={"subdomainPolicy": "UniquePerReplica"})
    assert (await sets.live())["spec"]["networkConfig"] == {"subdomainPolicy": "UniquePerReplica"}
    await sets.patch({"spec": {"networkConfig": None}})
    assert (await sets.live())["spec"]["networkConfig"] == {"subdomainPolicy": "Shared"}


async def test_rollouts(cluster: TestCluster):
    """10 §14 lines 11, 12, 13: each setting of the pace has its own default."""
    for given in (None, {}, {"type": ""}, {"type": "RollingUpdate"}, {"rollingUpdateConfiguration": {}}):
        spec = await tried(cluster, rolloutStrategy=given)
        assert spec["rolloutStrategy"] == {"type": "RollingUpdate", "rollingUpdateConfiguration": PACE}, given
    assert (await tried(cluster, rolloutStrategy=FULL))["rolloutStrategy"] == FULL
    spec = await tried(cluster, rolloutStrategy={"rollingUpdateConfiguration": {"maxSurge": 2}})
    assert spec["rolloutStrategy"]["rollingUpdateConfiguration"] == {**PACE, "maxSurge": 2}


async def test_a_partition_is_stored(sets: Sets):
    """F65: a partition that is not set and one of 0 were not the same; what is not set is stored as 0."""
    await sets.create(replicas=0, rolloutStrategy={"rollingUpdateConfiguration": {"maxUnavailable": 2}})
    stored = (await sets.live())["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]
    assert stored == {**PACE, "maxUnavailable": 2}
    generation = (await sets.live())["metadata"]["generation"]
    await sets.patch({"spec": {"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": None}}}})
    live = await sets.live()
    assert live["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"] == stored
    assert live["metadata"]["generation"] == generation


async def test_identities(cluster: TestCluster):
    """10 §14 line 14: groups are numbered, replaced when they are gone, and end in their order."""
    fields = ("groupIdentity", "groupReplacementPolicy", "podTerminationPolicy")
    for given in ({}, dict.fromkeys(fields, "")):
        spec = await tried(cluster, **given)
        assert [spec[field] for field in fields] == ["Ordinal", "PostTermination", "Default"]


async def test_restart_back_off(cluster: TestCluster):
    """10 §14 line 15: ten seconds, five minutes at most; no pauses of nothing."""
    spec = await tried(cluster, {"restartBackoff": {}})
    assert spec["leaderWorkerTemplate"]["restartBackoff"] == {"baseSeconds": 10, "capSeconds": 300}
    assert "restartBackoff" not in (await tried(cluster))["leaderWorkerTemplate"]
    said = await refused(cluster, {"restartBackoff": {"baseSeconds": 0}})
    assert "spec.leaderWorkerTemplate.restartBackoff.baseSeconds" in said
    assert "should be greater than or equal to 1" in said


async def test_restart_limits(cluster: TestCluster):
    """10 §14 line 16: no restart at all is a limit, fewer are none."""
    spec = await tried(cluster, {"maxGroupRestarts": 0})
    assert spec["leaderWorkerTemplate"]["maxGroupRestarts"] == 0
    said = await refused(cluster, {"maxGroupRestarts": -1})
    assert "spec.leaderWorkerTemplate.maxGroupRestarts" in said
    assert "should be greater than or equal to 0" in said


async def test_absurd_numbers(cluster: TestCluster, sets: Sets):
    """F43: the schema refuses absurd numbers of groups, on creation and on change; the webhook their product."""
    await sets.create(replicas=0)
    text = "should be less than or equal to 1000000"
    assert text in await refused(cluster, replicas=1000001)
    with pytest.raises(Invalid, match=text):
        await sets.patch({"spec": {"replicas": 1000001}})
    for denied in (
        tried(cluster, {"size": 4000}, replicas=1000000),
        sets.patch({"spec": {"replicas": 1000000, "leaderWorkerTemplate": {"size": 4000}}}),
    ):
        with pytest.raises(Forbidden, match="the product of replicas and worker replicas must not exceed 2147483647"):
            await denied


async def test_the_scale_subresource(cluster: TestCluster, sets: Sets):
    """10 §14 line 41: no webhook is asked; only the bounds of the schema hold."""
    none = {"rollingUpdateConfiguration": {"maxUnavailable": 0, "maxSurge": 0}}
    await sets.create(replicas=0, rolloutStrategy=none)
    for replicas in (-1, 1000001):
        with pytest.raises(Invalid) as caught:
            await sets.scale(replicas)
        assert "spec.replicas" in str(caught.value)
    await sets.scale(2)
    assert (await sets.live())["spec"]["replicas"] == 2
    with pytest.raises(Forbidden, match="must not be 0 when `maxSurge` is 0"):
        await sets.patch({"spec": {"replicas": 3}})
    scale = await cluster.client.get(LEADER_WORKER_SET, "llm", cluster.namespace, subresource="scale")
    assert scale["kind"] == "Scale"
    assert scale["spec"] == {"replicas": 2}

    async def counted() -> None:
        found = await cluster.client.get(LEADER_WORKER_SET, "llm", cluster.namespace, subresource="scale")
        selector = f"{names.NAME_LABEL}=llm,{names.WORKER_INDEX_LABEL}=0"
        assert found["status"] == {"replicas": 2, "selector": selector}

    await cluster.eventually(counted)


async def test_budgets_of_nothing(cluster: TestCluster, sets: Sets):
    """F47: budgets of nothing are fine while there are no groups; an update that adds one is refused."""
    for nothing in (0, "0%"):
        none = {"rollingUpdateConfiguration": {"maxUnavailable": nothing, "maxSurge": nothing}}
        assert (await tried(cluster, replicas=0, rolloutStrategy=none))["replicas"] == 0
    await sets.create(replicas=0, rolloutStrategy={"rollingUpdateConfiguration": {"maxUnavailable": 0, "maxSurge": 0}})
    with pytest.raises(Forbidden, match="must not be 0 when `maxSurge` is 0"):
        await sets.patch({"spec": {"replicas": 1}})


async def test_deletions(cluster: TestCluster, sets: Sets):
    """10 §14 line 43: always allowed, without warnings, even of a set that would be refused."""
    await sets.create(replicas=0, rolloutStrategy={"rollingUpdateConfiguration": {"maxUnavailable": 0, "maxSurge": 0}})
    await sets.scale(1)
    answer = await send(cluster, "DELETE", "llm")
    assert answer.status in (200, 202)
    assert "warning" not in {name.lower() for name in answer.headers}
    await cluster.eventually(lambda: cluster.gone(LEADER_WORKER_SET, "llm"))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("replicas",), "two"),
        (("leaderWorkerTemplate", "size"), 1.5),
        (("leaderWorkerTemplate", "subGroupPolicy"), "parts"),
        (("leaderWorkerTemplate", "workerTemplate", "spec", "containers"), {}),
        (("rolloutStrategy",), []),
        (("scheduling", "replica"), "gang"),
    ],
)
async def test_values_of_a_wrong_type(cluster: TestCluster, path: tuple[str, ...], value: Any):
    """Whoever refuses them, the answer names the field."""
    obj = set_object()
    obj["metadata"]["namespace"] = cluster.namespace
    place = obj["spec"]
    for name in path[:-1]:
        place = place.setdefault(name, {})
    place[path[-1]] = value
    with pytest.raises(ApiError) as caught:
        await cluster.client.create(LEADER_WORKER_SET, obj, dry_run=True)
    assert caught.value.code in (400, 403, 422)
    assert ".".join(("spec", *path)) in str(caught.value)
