"""Rollouts played ahead are the worked tables of the specification (20 §7.1–§7.6), step by step."""

from __future__ import annotations

import re

import pytest

from lwskit.backends.statefulset import StatefulSetLeaders
from lwskit.runtime.objects import Obj
from lwskit.simulate.rollout import Rollout, Step
from lwskit.simulate.start import Start, Templates
from tests.tables import FOLLOWS, TABLES, Table
from tests.unit.groups.small_cluster import NOW, make_lws

NEW_SET = Start(None, None, {}, Templates(), "", "", None, (), None)


def created(lws: Obj) -> Rollout:
    """A set all of whose groups have become ready."""
    played = Rollout(NEW_SET, StatefulSetLeaders(), NOW, detailed=True)
    played.edit(lws)
    played.settle("created")
    while played.pending:
        played.make_ready(*played.pending)
        played.settle("ready")
    return played


def edited(lws: Obj, **fields: object) -> Obj:
    rolling = {**lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]}
    template = {**lws["spec"]["leaderWorkerTemplate"]}
    if "image" in fields:
        template["workerTemplate"] = {"spec": {"containers": [{"name": "c", "image": fields["image"]}]}}
    if "size" in fields:
        template["size"] = fields["size"]
    rolling |= {k: v for k, v in fields.items() if k in ("partition", "maxUnavailable", "maxSurge")}
    strategy = {"type": "RollingUpdate", "rollingUpdateConfiguration": rolling}
    spec = {**lws["spec"], "leaderWorkerTemplate": template, "rolloutStrategy": strategy}
    if "replicas" in fields:
        spec["replicas"] = fields["replicas"]
    return {**lws, "spec": spec}


def happen(played: Rollout, event: str) -> None:
    kind, _, value = event.partition(": ")
    assert played.lws is not None
    if kind == "ready":
        played.make_ready(*map(int, value.split(",")))
    elif kind == "not ready":
        played.make_ready(*map(int, value.split(",")), ready=False)
    elif event == "template changed":
        played.edit(edited(played.lws, image="B"))
    elif match := re.fullmatch(r"userPartition → (\d)", event):
        played.edit(edited(played.lws, partition=int(match[1])))
    else:
        raise AssertionError(event)


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
def test_worked_tables(table: Table) -> None:
    lws = make_lws(replicas=table.replicas, image="A")
    lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"].update(table.rolling)
    played = created(lws)
    letters = {played.key: "A"}
    steps: list[Step] = []
    for row in table.rows:
        if row.event != FOLLOWS:
            assert not steps, (row, steps)
            happen(played, row.event)
            steps = played.settle(row.event)
        step = steps.pop(0)
        letters.setdefault(step.key, "B")
        assert step.event == ("" if row.event == FOLLOWS else row.event)
        assert (step.replicas, step.partition) == row.target, row
        found = " ".join(f"{g.ordinal}{letters[g.key]}{'' if g.ready else '*'}" for g in step.groups)
        assert found == row.groups, row
        assert f"{step.ready}/{step.updated}" == row.counts, row
        assert tuple(n for n in step.notes if n.startswith(("Updating", "deleting"))) == row.notes, row
        alive = {g.ordinal for g in step.groups}
        assert set(step.up) <= alive
        assert not set(step.removed) & alive
        assert step.pods == 3 * len(step.groups)
    assert not steps


def test_start_with_broken_groups() -> None:
    """§7.6: what is down below the partition holds it; where all is down, the update goes on."""
    played = created(make_lws(replicas=4, image="A"))
    assert played.lws is not None
    played.make_ready(1, ready=False)
    played.edit(edited(played.lws, image="B", maxUnavailable=2))
    steps = played.settle("edit")
    assert [(s.replicas, s.partition, s.ready, s.updated) for s in steps][-1] == (4, 3, 2, 1)
    played = created(make_lws(replicas=2, image="A"))
    assert played.lws is not None
    played.make_ready(0, 1, ready=False)
    played.edit(edited(played.lws, image="B"))
    assert played.settle("edit")[-1].partition == 1
    played.make_ready(1)
    assert played.settle("ready")[-1].partition == 0
