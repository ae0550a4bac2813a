"""`lwskit doctor` on a cluster: what is well is not told of, what is not is, and what passes is looked at again."""

from __future__ import annotations

import pytest

from lwskit.api import disaggregated_names, names
from lwskit.cli import doctoring
from lwskit.doctor.check import Report
from lwskit.doctor.findings import Finding
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.client.client import Client
from lwskit.runtime.errors import ConfigurationError, Forbidden, NotFound
from lwskit.runtime.kinds import SERVICE, STATEFUL_SET
from lwskit.runtime.objects import Obj
from lwskit.testing.cluster import TestCluster
from lwskit.testing.interceptors import matching
from tests.scenarios.behind import acted_on
from tests.scenarios.support import ALL_KINDS, Sets


async def examined(cluster: TestCluster, *wanted: tuple[str, str], again: float = 0.0) -> Report:
    """The report on the test's namespace once nothing moves any more and it has these findings, by code and name."""
    await cluster.settled(*ALL_KINDS)

    async def check() -> Report:
        report = await doctoring.on_cluster(cluster.client, cluster.namespace, again)
        assert [(f.code, f.name) for f in report.findings if f.kind != "ControllerRevision"] == [*wanted]
        return report

    return await cluster.eventually(check)


def headless(name: str, **labels: str) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "labels": labels},
        "spec": {"clusterIP": "None", "selector": {"app": "none"}},
    }


async def test_what_is_well_is_not_told_of(cluster: TestCluster, sets: Sets) -> None:
    await sets.running(replicas=2, size=2)
    await sets.running("other", replicas=1, size=1, networkConfig={"subdomainPolicy": "UniquePerReplica"})
    found = await examined(cluster)
    assert (found.findings, found.sets, found.unread) == ((), 2, ())


async def test_services_without_an_owner(cluster: TestCluster, sets: Sets) -> None:
    await sets.running(replicas=1, size=1)
    await cluster.create(SERVICE, headless("gone", **{names.NAME_LABEL: "gone"}))
    labels = {disaggregated_names.NAME_LABEL: "chat", disaggregated_names.ROLE_LABEL: "decode"}
    await cluster.create(SERVICE, headless("chat-0-abc-decode-prv", **labels))
    await cluster.create(SERVICE, headless("mine", **{names.NAME_LABEL: "llm"}))
    found = await examined(cluster, ("no-owner", "gone"), ("private-service", "chat-0-abc-decode-prv"))
    assert len(found.findings) == 2


async def test_what_a_set_leaves_behind(cluster: TestCluster, sets: Sets) -> None:
    """The set is deleted and its dependents are kept: nobody looks after them."""
    await sets.running(replicas=1, size=2)
    await cluster.delete(LEADER_WORKER_SET, "llm", "Orphan")

    async def gone() -> None:
        assert await cluster.gone(LEADER_WORKER_SET, "llm")
        assert "ownerReferences" not in (await cluster.get(STATEFUL_SET, "llm"))["metadata"]
        assert "ownerReferences" not in (await cluster.get(SERVICE, "llm"))["metadata"]

    await cluster.eventually(gone)
    found = await examined(cluster, ("no-owner", "llm"), ("no-owner", "llm"))
    assert {f.kind for f in found.findings if f.kind != "ControllerRevision"} == {"Service", "StatefulSet"}


async def test_a_set_that_starts_is_looked_at_again(cluster: TestCluster, sets: Sets) -> None:
    await sets.create(replicas=1, size=1)
    await sets.has_pods("llm-0")
    await acted_on(cluster, LEADER_WORKER_SET, "llm")
    lasts = await examined(cluster, ("set-not-ready", "llm"), again=2.0)
    (finding,) = lasts.findings
    assert (finding.code, finding.name, finding.passes) == ("set-not-ready", "llm", True)
    assert "has no ready group, and should have 1: The set waits for group 0" in finding.message
    await sets.ready()
    assert (await examined(cluster)).findings == ()


@pytest.mark.usefixtures("sets")
async def test_what_is_gone_at_the_second_look_is_not_told(
    cluster: TestCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the two looks a set comes that is not ready, and a Service without an owner."""
    looks: list[Report] = []
    passing = Finding("set-not-ready", "LeaderWorkerSet", "ns", "first", "m", "h", passes=True)
    late = Finding("set-not-ready", "LeaderWorkerSet", "ns", "second", "m", "h", passes=True)
    lasting = Finding("no-owner", "Service", "ns", "s", "m", "h")

    async def look(*_: object) -> Report:
        looks.append(Report((late, lasting) if looks else (passing,), 0, 1))
        return looks[-1]

    monkeypatch.setattr(doctoring, "_look", look)
    before = cluster.clock.monotonic()
    found = await doctoring.on_cluster(cluster.client, None, 1.0)
    assert found.findings == (lasting,)
    # Sums of instants are rounded, and a loop may wake a timer up a tick of its clock early.
    assert round(cluster.clock.monotonic() - before, 3) >= 1.0
    assert len(looks) == 2


async def test_what_may_not_be_read_is_said_and_not_judged(cluster: TestCluster, sets: Sets) -> None:
    await sets.create(replicas=1, size=1)
    await sets.has_pods("llm-0")
    await cluster.settled(*ALL_KINDS)
    transport = await cluster.connect("doctor")
    client = Client(transport, clock=cluster.clock)
    for plural in ("statefulsets", "events", "nodes", "disaggregatedsets"):
        transport.fail(matching("GET", f"/{plural}$"), Forbidden(f"{plural} is forbidden"))
    found = await doctoring.on_cluster(client, cluster.namespace, 0.0)
    assert [(f.code, f.message) for f in found.findings] == [("set-not-ready", "has no ready group, and should have 1")]
    assert found.unread == (
        "events could not be read (events is forbidden)",
        "statefulsets could not be read (statefulsets is forbidden)",
        "disaggregatedsets could not be read (disaggregatedsets is forbidden)",
    )


async def test_without_leaderworkersets_there_is_nothing_to_look_at(cluster: TestCluster) -> None:
    transport = await cluster.connect("doctor")
    client = Client(transport, clock=cluster.clock)
    transport.fail(matching("GET", "/leaderworkersets$"), NotFound("the server could not find the requested resource"))
    with pytest.raises(ConfigurationError, match="is its CustomResourceDefinition installed"):
        await doctoring.on_cluster(client, cluster.namespace, 0.0)
    refused = await cluster.connect("doctor")
    refused.fail(matching("GET", "/leaderworkersets$"), Forbidden("may not"))
    with pytest.raises(Forbidden):
        await doctoring.on_cluster(Client(refused, clock=cluster.clock), cluster.namespace, 0.0)
