"""`lwskit doctor` on DisaggregatedSets: children of no spec, roles that do not serve, scalers of others."""

from __future__ import annotations

from lwskit.api import disaggregated_names as names
from lwskit.cli import doctoring
from lwskit.disaggregated import children
from lwskit.disaggregated.kinds import ROLE_SCALER
from lwskit.doctor import findings
from lwskit.doctor.check import Report
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import is_true
from lwskit.testing.cluster import TestCluster
from tests.scenarios import support
from tests.scenarios.behind import acted_on
from tests.scenarios.disaggregated.support import DisaggregatedSets, role, rolling, two_roles


async def examined(sets: DisaggregatedSets, *wanted: tuple[str, str]) -> Report:
    """The report once nothing moves any more and it has these findings, by code and name."""
    await sets.settled()

    async def check() -> Report:
        report = await doctoring.on_cluster(sets.cluster.client, sets.cluster.namespace, 0.0)
        assert [(f.code, f.name) for f in report.findings] == [*wanted]
        return report

    return await sets.cluster.eventually(check)


async def test_what_is_well_is_not_told_of(sets: DisaggregatedSets) -> None:
    await sets.running(slices=2)
    found = await examined(sets)
    assert (found.findings, found.disaggregated, found.sets, found.unread) == ((), 1, 4, ())


async def test_a_rollout_on_its_way_is_not_told_of(sets: DisaggregatedSets) -> None:
    """The new groups do not become ready, and the old ones serve."""
    await sets.running(*two_roles(2, 2, spec=rolling(1, 0)))
    await sets.set_image("img:v2")
    await sets.has_children("0/prefill=2", "0/decode=2", "0/prefill=1", "0/decode=1")
    await examined(sets)


async def test_a_rollout_that_is_stuck_is_told_of(cluster: TestCluster, sets: DisaggregatedSets) -> None:
    """A pod of the new revision finds no node."""
    await sets.running(*two_roles(2, 2, spec=rolling(1, 0)))
    await sets.set_image("img:v2")
    await sets.has_children("0/prefill=2", "0/decode=2", "0/prefill=1", "0/decode=1")

    async def made() -> str:
        unready = [p["metadata"]["name"] for p in await sets.pods() if not is_true(p, "Ready")]
        found = [name for name in unready if "decode" in name]
        assert len(found) == 1
        return found[0]

    pod = await cluster.eventually(made)
    await acted_on(cluster, LEADER_WORKER_SET, pod.rpartition("-")[0])
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
    status = {"phase": "Pending", "conditions": [condition]}
    await cluster.patch(POD, pod, {"status": status}, subresource="status")
    (finding,) = (await examined(sets, (findings.BLOCKED, pod.rpartition("-")[0]))).findings
    assert "is blocked (unschedulable)" in finding.message


async def test_a_role_whose_groups_do_not_start(sets: DisaggregatedSets) -> None:
    await sets.create()
    await sets.has_children("0/prefill=1", "0/decode=2")

    async def made() -> None:
        assert len(await sets.pods()) == 3

    await sets.cluster.eventually(made)
    found = await examined(sets, *[(findings.ROLE_NOT_READY, "chat")] * 2)
    assert [f.about for f in found.findings] == ["0/decode", "0/prefill"]
    child = (await sets.child("decode"))["metadata"]["name"]
    assert found.findings[0].message.startswith(
        f"has no ready group of role decode, which should have 2: {LEADER_WORKER_SET.kind} {child}: The set waits for "
    )


async def test_children_that_no_spec_asks_for(cluster: TestCluster, sets: DisaggregatedSets) -> None:
    """A copy of a child under an old revision's name whose labels nobody knows, and one that nobody owns."""
    ds = await sets.running()
    stray = support.set_object(replicas=0, size=1, template=support.pod_template("img"))
    labels = children.labels_of("chat", 0, "0ldrev00", "encode")
    labels[names.NAME_LABEL] = "another"
    meta = {"name": "stray", "labels": labels, "ownerReferences": [children.owner_reference(ds)]}
    await cluster.create(LEADER_WORKER_SET, {**stray, "metadata": meta})
    loose = {"name": "loose", "labels": children.labels_of("chat", 0, "0ldrev00", "encode")}
    await cluster.create(LEADER_WORKER_SET, {**stray, "metadata": loose})
    await examined(sets, (findings.CHILD_MISLABELLED, "stray"), (findings.NO_OWNER, "loose"))


async def test_somebody_else_s_scaler(cluster: TestCluster, sets: DisaggregatedSets) -> None:
    scaler = {"apiVersion": names.API_VERSION, "kind": names.SCALER_KIND, "metadata": {"name": "chat-decode"}}
    await cluster.create(ROLE_SCALER, {**scaler, "spec": {"replicas": 3}})
    await sets.create(role("prefill"), role("decode", None, mode=names.SCALING_EXTERNAL))
    await sets.has_event(
        names.EVENT_SCALER_CONFLICT,
        "Scaler chat-decode exists but is not controlled by this DisaggregatedSet; not adopting",
        "Warning",
    )
    await sets.settled()
    found = await doctoring.on_cluster(cluster.client, cluster.namespace, 0.0)
    conflict = next(f for f in found.findings if f.code == findings.SCALER_CONFLICT)
    assert (conflict.kind, conflict.name) == (names.SCALER_KIND, "chat-decode")
    assert "role decode of DisaggregatedSet chat needs" in conflict.message
