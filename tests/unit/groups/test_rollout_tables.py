"""The worked tables of the specification (20 §7), replayed."""

from __future__ import annotations

import re

import pytest

from lwskit.groups import ownership
from lwskit.runtime.objects import Obj
from tests.tables import FOLLOWS, SEQUENCES, TABLES, Sequence, Step, Table
from tests.unit.groups.small_cluster import SmallCluster, make_lws, settled


def make(replicas: int, rolling: dict[str, int]) -> Obj:
    lws = make_lws(replicas=replicas, image="A")
    lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"].update(rolling)
    return lws


def happen(cluster: SmallCluster, event: str) -> None:
    kind, _, value = event.partition(": ")
    if kind == "ready":
        cluster.make_ready(*map(int, value.split(",")))
    elif kind == "not ready":
        cluster.make_ready(*map(int, value.split(",")), ready=False)
    elif event == "template changed":
        cluster.change(image="B")
    elif match := re.fullmatch(r"userPartition → (\d)", event):
        cluster.change(partition=int(match[1]))
    else:
        assert event == FOLLOWS, event


def groups(cluster: SmallCluster) -> str:
    letters = {}
    for revision in cluster.revisions:
        image = revision["data"]["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]["image"]
        letters[ownership.revision_key(revision)] = image
    shown = []
    for i, leader in sorted(cluster.leaders.items()):
        ready = leader["status"]["phase"] == "Running"
        shown.append(f"{i}{letters[ownership.revision_key(leader)]}{'' if ready else '*'}")
    return " ".join(shown)


def reconcile(cluster: SmallCluster) -> tuple[str, ...]:
    return tuple(n for n in cluster.reconcile() if n.startswith(("Updating", "deleting")))


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
def test_table(table: Table) -> None:
    cluster = settled(make(table.replicas, table.rolling))
    for row in table.rows:
        happen(cluster, row.event)
        told = reconcile(cluster)
        cluster.act()
        assert cluster.target == row.target, row
        final = groups(cluster)
        # The status of what the controller did is written by the reconcile that follows, whose other half is the
        # next row: it is looked at, not carried out.
        ahead = SmallCluster.__new__(SmallCluster)
        ahead.__dict__.update(cluster.__dict__)
        ahead.__dict__["index"] = _frozen(cluster)
        reconcile(ahead)
        assert final == row.groups, row
        assert ahead.counts == row.counts, row
        shown = "".join(ahead.conditions.get(t, "False")[0] for t in ("Available", "Progressing", "UpdateInProgress"))
        assert shown == row.conditions, row
        assert told == row.notes, row


class _frozen:
    """The state of a cluster as it is now, for a decision that must not change it."""

    def __init__(self, cluster: SmallCluster) -> None:
        self._state = cluster.index.state_of("set-uid")

    def state_of(self, uid: str) -> object:
        return self._state

    def apply(self, *change: object) -> None:
        pass


def take(cluster: SmallCluster, step: Step) -> None:
    for letter, numbers in step.what:
        match letter:
            case "T":
                cluster.change(image="B")
            case "U":
                cluster.change(image="C")
            case "N":
                cluster.change(replicas=numbers[0])
            case "p":
                cluster.change(partition=numbers[0])
            case "r":
                cluster.make_ready(*numbers)
            case "u":
                cluster.make_ready(*numbers, ready=False)
            case "c":
                cluster.make_ready(*numbers)
                cluster.make_ready(*numbers, ready=False)
            case "d":
                for n in numbers:
                    cluster.remove(n)
            case _:
                raise AssertionError(f"unexpected {letter}")


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda s: s.name)
def test_27_step_values_of_the_integration_tests(sequence: Sequence) -> None:
    cluster = SmallCluster(make(sequence.replicas, sequence.rolling), passive=True)
    cluster.settle()
    cluster.make_ready(*range(sequence.replicas))
    cluster.settle()
    for step in sequence.steps:
        take(cluster, step)
        cluster.settle()
        assert f"{cluster.target[0]},{cluster.target[1]},{cluster.counts}" == step.expected, step
        if step.available:
            assert cluster.conditions["Available"] == "True", step
        if step.revisions:
            assert len(cluster.revisions) == step.revisions, step
    assert len(cluster.revisions) <= 3
