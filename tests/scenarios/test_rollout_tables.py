"""The worked tables of rolling updates, step by step on a cluster (specification: 20 §7.1–§7.6)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import pytest

from lwskit.api import names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import EVENT
from lwskit.runtime.objects import Obj, is_true
from lwskit.testing.cluster import TestCluster
from tests.scenarios.support import Sets, pod_template, revision_key, seen, target_of
from tests.tables import FOLLOWS, TABLES, Row, Table

NAME = "x"
"""The set, as the notes in the tables call it."""
SIZE = 2
CONDITIONS = (names.CONDITION_AVAILABLE, names.CONDITION_PROGRESSING, names.CONDITION_UPDATE_IN_PROGRESS)


def rolling(table: Table) -> Obj:
    """The rollout strategy of a table's set."""
    return {"type": "RollingUpdate", "rollingUpdateConfiguration": table.rolling}


def letter(obj: Obj) -> str:
    """The letter of a pod's template, which is the tag of its image."""
    return obj["spec"]["containers"][0]["image"].partition(":")[2]


def status_of(live: Obj) -> tuple[str, str]:
    """Counts and conditions of a set as the tables write them."""
    status = live.get("status") or {}
    counts = f"{status.get('readyReplicas', 0)}/{status.get('updatedReplicas', 0)}"
    return counts, "".join("T" if is_true(live, kind) else "F" for kind in CONDITIONS)


async def groups(sets: Sets) -> str:
    """The groups as the tables write them: a group is ready when all its pods are."""
    pods = (await sets.pods(NAME)).values()
    ordinals = sorted({int(p["metadata"]["labels"][names.GROUP_INDEX_LABEL]) for p in pods})
    shown: list[str] = []
    for i in ordinals:
        group = [p for p in pods if p["metadata"]["labels"][names.GROUP_INDEX_LABEL] == str(i)]
        leader = [p for p in group if p["metadata"]["labels"][names.WORKER_INDEX_LABEL] == names.LEADER_INDEX]
        ready = len(group) == SIZE and all(is_true(p, "Ready") for p in group)
        shown.append(f"{i}{letter(leader[0]) if leader else '?'}{'' if ready else '*'}")
    return " ".join(shown)


async def pods_of(sets: Sets, ordinals: Iterable[int], wanted: str) -> list[str]:
    """The names of all pods of groups, once each group is whole and, as `wanted` has it, of one revision."""

    async def whole() -> list[str]:
        pods = await sets.live_pods(NAME)
        found: list[str] = []
        for i in ordinals:
            group = {n: p for n, p in pods.items() if p["metadata"]["labels"][names.GROUP_INDEX_LABEL] == str(i)}
            assert len(group) == SIZE, sorted(group)
            assert len({revision_key(p) for p in group.values()}) == 1
            assert {f"{i}{letter(p)}" for p in group.values()} <= set(re.split(r"[ *]+", wanted))
            found += sorted(group)
        return found

    return await sets.cluster.eventually(whole)


async def happen(sets: Sets, event: str, before: str) -> None:
    """Carry out the event of a row; `before` are the groups when it comes."""
    kind, _, value = event.partition(": ")
    ordinals = [int(n) for n in value.split(",") if n]
    if kind == "ready":
        await sets.cluster.kubelet.ready(*await pods_of(sets, ordinals, before))
    elif kind == "not ready":
        await sets.cluster.kubelet.unready(*(f"{NAME}-{i}" for i in ordinals))
    elif event == "template changed":
        template = {"workerTemplate": pod_template("img:B")}
        await sets.patch({"spec": {"leaderWorkerTemplate": template}}, NAME)
    elif match := re.fullmatch(r"userPartition → (\d)", event):
        update = {"rollingUpdateConfiguration": {"partition": int(match[1])}}
        await sets.patch({"spec": {"rolloutStrategy": update}}, NAME)
    else:
        assert event == FOLLOWS, event


async def rollout_notes(sets: Sets) -> set[str]:
    """What was told of partition and surge so far."""
    return {e["note"] for e in await sets.events(NAME) if e["note"].startswith(("Updating", "deleting"))}


async def arrives(sets: Sets, row: Row, told: set[str]) -> None:
    """Wait until everything is as the row says."""

    async def there() -> None:
        assert target_of(await sets.leader_workload(NAME)) == row.target
        assert await groups(sets) == row.groups
        assert status_of(await sets.live(NAME)) == (row.counts, row.conditions)
        assert await rollout_notes(sets) == told

    await sets.cluster.eventually(there)


def without_repetitions(rows: Sequence[Row]) -> list[tuple[int, int]]:
    """The targets that a leader workload goes through."""
    return [row.target for i, row in enumerate(rows) if i == 0 or rows[i - 1].target != row.target]


@pytest.mark.undisturbed("it waits for an event, which may die with its manager")
@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
async def test_table(cluster: TestCluster, sets: Sets, table: Table):
    """20 §14 lines 27, 28, 33, 35, 36, 43, 44, 45, 47, 48: each row of the worked tables, and nothing in between.

    The rows are what a rollout rests at. What it passes through is read from a watch: the leader workload has been
    asked for just the values of the table, in its order.
    """
    await sets.running(NAME, replicas=table.replicas, size=SIZE, image="img:A", rolloutStrategy=rolling(table))
    start = Row("", table.replicas, table.rolling["partition"], "", f"{table.replicas}/{table.replicas}", "TFF")
    assert target_of(await sets.leader_workload(NAME)) == start.target
    await cluster.settled(sets.workload, LEADER_WORKER_SET, EVENT)
    async with cluster.observe(sets.workload) as workloads, cluster.observe(LEADER_WORKER_SET) as lives:
        # A set with a partition asks for surge while it comes up, too.
        told = await rollout_notes(sets)
        before = ""
        for row, following in zip(table.rows, (*table.rows[1:], None), strict=True):
            await happen(sets, row.event, before)
            told |= set(row.notes)
            if following is None or following.event != FOLLOWS:
                await arrives(sets, row, told)
            before = row.groups
        await sets.settled()
        await arrives(sets, table.rows[-1], told)
    passed = seen(workloads, NAME, target_of)
    assert passed[passed[:1] == [start.target] :] == without_repetitions((start, *table.rows))[1:]
    for row, following in zip(table.rows, table.rows[1:], strict=False):
        # New groups of a passing row may be there before or after its status is written.
        if following.event == FOLLOWS and len(row.groups.split()) == table.replicas:
            assert (row.counts, row.conditions) in seen(lives, NAME, status_of)
