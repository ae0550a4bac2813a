"""What users of others' sets met (docs/field-cases.md): odd objects, refused writes, statuses that said too much."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from lwskit.api import names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.errors import Forbidden
from lwskit.runtime.kinds import EVENT, POD, STATEFUL_SET
from lwskit.runtime.objects import labels_of
from lwskit.testing.cluster import Runnable, TestCluster
from lwskit.testing.interceptors import matching
from tests.scenarios.manager import manager
from tests.scenarios.support import Sets

QUOTA = 'statefulsets.apps "{}" is forbidden: exceeded quota: few, requested: count/statefulsets.apps=1, used: 1'
ODD: dict[str, Any] = {
    "no-rollout": {},
    "no-pace": {"rolloutStrategy": {"type": "RollingUpdate"}},
    "no-surge": {"rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxSurge": 0}}},
    "no-part-size": {"group": {"subGroupPolicy": {}}},
    "nothing": {"replicas": None, "size": None},
}
"""Sets that lack what admission fills in or asks for."""


@pytest.fixture
def cluster_runnables() -> Sequence[Runnable]:
    """None: some tests do something before the manager comes."""
    return ()


async def test_sets_that_nobody_admitted(cluster: TestCluster, sets: Sets):
    """F44: optional parts that were missing, because the webhooks had been off, ended the manager."""
    for name, fields in ODD.items():
        await sets.create(name, **{"replicas": 1, "size": 2, **fields})
    stored = (await sets.live("no-rollout"))["spec"]
    assert not {"rolloutStrategy", "networkConfig"} & stored.keys()
    async with manager(cluster):

        async def served() -> None:
            leaders = await cluster.names(STATEFUL_SET, f"{names.ROLE_LABEL}={names.ROLE_LEADER}")
            told = {e["regarding"]["name"] for e in await cluster.list(EVENT) if e["type"] == "Warning"}
            assert set(ODD) - set(leaders) <= told
            assert {"no-rollout", "no-pace", "no-surge", "nothing"} <= set(leaders)

        await cluster.eventually(served)
        await sets.create("later")

        async def goes_on() -> None:
            assert "later" in await cluster.names(STATEFUL_SET)

        await cluster.eventually(goes_on)


async def test_names_that_are_too_long_for_pods(cluster: TestCluster, sets: Sets):
    """F41: a name over 51 characters is taken, and no pods come, as a label has no room; an event says so."""
    name = "a" * 55
    async with manager(cluster):
        await sets.create(name, replicas=1, size=2)

        async def told() -> None:
            events = [e for e in await cluster.list(EVENT) if e["regarding"]["kind"] == "StatefulSet"]
            texts = [e["note"] for e in events if e["reason"] == "FailedCreate" and e["type"] == "Warning"]
            assert any("must be no more than 63" in text for text in texts), texts

        await cluster.eventually(told)
        assert await sets.pods(name) == {}


@pytest.mark.parametrize("workload", ["llm", "llm-0"])
async def test_refused_workloads(cluster: TestCluster, sets: Sets, workload: str):
    """F46: the event said that a creation had failed and not why."""
    async with manager(cluster):
        (program,) = cluster.interceptors
        method, path = ("PATCH", f"/statefulsets/{workload}$") if workload == "llm" else ("POST", "/statefulsets$")
        program.fail(matching(method, path), Forbidden(QUOTA.format(workload)))
        await sets.create(replicas=1, size=2)

        async def told() -> None:
            events = [e for e in await sets.events() if e["reason"] == "FailedCreate" and e["type"] == "Warning"]
            assert any(e["note"].endswith(QUOTA.format(workload)) for e in events), [e["note"] for e in events]

        await cluster.eventually(told)
        await sets.ready()


async def test_a_foreground_deletion_ends(cluster: TestCluster, sets: Sets):
    """F49: what the garbage collector deleted was created again, so that a foreground deletion never ended."""
    async with manager(cluster):
        await sets.running(replicas=1)
        (program,) = cluster.interceptors
        async with cluster.observe(POD) as pods, cluster.observe(STATEFUL_SET) as workloads:
            before = len(program.requests)
            await cluster.delete(LEADER_WORKER_SET, "llm", propagation="Foreground")
            await cluster.eventually(lambda: cluster.gone(LEADER_WORKER_SET, "llm"))
            assert await cluster.names(STATEFUL_SET) == []
            assert not pods.born
            assert not workloads.born
        late = [r for r in program.requests[before:] if r.verb == "create" and "/events" not in r.request.path]
        assert late == []


async def test_running_is_not_available(cluster: TestCluster, sets: Sets):
    """F50: a group counted as ready whose workers existed and were not available."""
    async with manager(cluster):
        await sets.create(replicas=1, size=4)
        await sets.has_pods("llm-0", "llm-0-1", "llm-0-2", "llm-0-3")
        await cluster.kubelet.ready("llm-0", "llm-0-1")

        async def not_yet() -> None:
            workers = (await cluster.get(STATEFUL_SET, "llm-0"))["status"]
            assert (workers["replicas"], workers.get("availableReplicas")) == (3, 1)
            assert not (await sets.live())["status"].get("readyReplicas")
            assert (await sets.conditions()).get(names.CONDITION_AVAILABLE) != "True"

        await cluster.eventually(not_yet)
        await cluster.consistently(not_yet)


async def test_replicas_are_groups_that_exist(cluster: TestCluster, sets: Sets):
    """F52: `status.replicas` are groups that were created, ready or not."""
    async with manager(cluster):
        await sets.create(replicas=3, size=1)
        await sets.has_pods("llm-0", "llm-1", "llm-2")
        await cluster.kubelet.ready("llm-1")

        async def counted() -> None:
            status = (await sets.live())["status"]
            assert (status["replicas"], status.get("readyReplicas")) == (3, 1)

        await cluster.eventually(counted)


async def test_available_is_absent_at_first(cluster: TestCluster, sets: Sets):
    """F53: the condition Available is not False at the start, it is not there until it is true."""
    async with manager(cluster):
        async with cluster.observe(LEADER_WORKER_SET) as observer:
            await sets.running(replicas=1, size=2)

            def seen() -> list[dict[str, str]]:
                return [
                    {c["type"]: c["status"] for c in (change.obj.get("status") or {}).get("conditions") or ()}
                    for change in observer.changes
                ]

            async def told() -> None:
                # The watch may be behind what was read.
                assert any(conditions.get(names.CONDITION_AVAILABLE) == "True" for conditions in seen())

            await cluster.eventually(told)
        first = next(conditions for conditions in seen() if conditions)
        assert first[names.CONDITION_PROGRESSING] == "True"
        values = [c[names.CONDITION_AVAILABLE] for c in seen() if names.CONDITION_AVAILABLE in c]
        assert set(values) == {"True"}


async def test_a_label_that_an_older_manager_did_not_know(cluster: TestCluster, sets: Sets):
    """F13: a new label in pod templates had an upgrade roll everything; the role is on the workloads alone."""
    async with manager(cluster):
        await sets.running(replicas=1)
    before = await sets.pod_uids()
    for name in ("llm", "llm-0"):
        await cluster.patch(STATEFUL_SET, name, {"metadata": {"labels": {names.ROLE_LABEL: None}}})
    async with manager(cluster):
        await sets.settled()

        async def same() -> None:
            assert await sets.pod_uids() == before

        await cluster.consistently(same)
        for workload in await cluster.list(STATEFUL_SET):
            assert names.ROLE_LABEL not in labels_of(workload["spec"]["template"])
