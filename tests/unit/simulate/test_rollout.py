"""Rollouts played ahead are the worked tables of the specification (20 §7.1–§7.6), step by step."""

from __future__ import annotations

import re

import pytest

from lwskit.backends.statefulset import StatefulSetLeaders
from lwskit.runtime.objects import Obj
from lwskit.simulate.rollout import Rollout, Step
from lwskit.simulate.start import Start, Templates
from tests.unit.groups.small_cluster import NOW, make_lws
from tests.unit.groups.test_rollout_tables import TABLES, make

NEW_SET = Start(None, None, {}, Templates(), "", "", None, (), None)


def created(lws: Obj) -> Rollout:
    """A set all of whose groups have become ready."""
    played = Rollout(NEW_SET, StatefulSetLeaders(), NOW)
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


@pytest.mark.parametrize("name", TABLES)
def test_worked_tables(name: str) -> None:
    settings, text = TABLES[name]
    played = created(make(settings))
    letters = {played.key: "A"}
    steps: list[Step] = []
    for line in text.strip().splitlines():
        event, target, groups, counts, _, notes = (cell.strip() for cell in line.split("|"))
        if event != "→":
            assert not steps, (event, steps)
            happen(played, event)
            steps = played.settle(event)
        step = steps.pop(0)
        letters.setdefault(step.key, "B")
        assert step.event == ("" if event == "→" else event)
        assert f"{step.replicas} {step.partition}" == target, event
        found = " ".join(f"{g.ordinal}{letters[g.key]}{'' if g.ready else '*'}" for g in step.groups)
        assert found == groups, event
        assert f"{step.ready}/{step.updated}" == counts, event
        told = [n for n in step.notes if n.startswith(("Updating", "deleting"))]
        assert told == ([notes] if notes else []), event
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
