"""The group index is a function of the objects it was told of (architecture, part 4)."""

from __future__ import annotations

import dataclasses
import random
import timeit
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lwskit.api import names
from lwskit.groups.index import GroupIndex
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.model import OVERFLOW, READY, UPDATED, GroupState, SetState
from lwskit.runtime.kinds import POD, STATEFUL_SET, Kind
from lwskit.runtime.objects import Obj, controller_reference
from tests.unit.groups.small_cluster import LEADERS, WORKERS, make_lws, ready_pod, ready_workers

REVISIONS = ("r1", "r2")
Object = tuple[Kind, Obj]


def leaders_of(set_uid: str = "set-uid", uid: str = "sts") -> Obj:
    lws = make_lws()
    lws["metadata"]["uid"] = set_uid
    owner = controller_reference(lws, LEADER_WORKER_SET)
    return {"metadata": {"name": "x", "namespace": "ns", "uid": uid, "ownerReferences": [owner]}, "spec": {}}


def leader(i: int, *, uid: str = "", of: str = "sts", revision: str = "r1", ready: bool = True, **labels: str) -> Obj:
    owner = controller_reference(leaders_of(uid=of), STATEFUL_SET)
    pod = {
        "metadata": {
            "name": f"x-{i}",
            "namespace": "ns",
            "uid": uid or f"leader-{i}",
            "ownerReferences": [owner],
            "labels": {
                names.NAME_LABEL: "x",
                names.WORKER_INDEX_LABEL: "0",
                names.GROUP_INDEX_LABEL: str(i),
                names.REVISION_LABEL: revision,
                **labels,
            },
        },
        "spec": {"hostname": f"x-{i}"},
    }
    return ready_pod(pod, ready)


def workers(i: int, *, uid: str = "", of: str = "", revision: str = "r1", ready: bool = True) -> Obj:
    owner = controller_reference(leader(i, uid=of or f"leader-{i}"), POD)
    obj = {
        "metadata": {
            "name": f"x-{i}",
            "namespace": "ns",
            "uid": uid or f"workers-{i}",
            "ownerReferences": [owner],
            "labels": {names.NAME_LABEL: "x", names.GROUP_INDEX_LABEL: str(i), names.REVISION_LABEL: revision},
        },
        "spec": {"replicas": 2},
    }
    return ready_workers(obj, ready)


def worker(i: int, index: int, *, of: str = "") -> Obj:
    owner = controller_reference(workers(i, uid=of or f"workers-{i}"), STATEFUL_SET)
    labels = {names.NAME_LABEL: "x", names.WORKER_INDEX_LABEL: str(index), names.GROUP_INDEX_LABEL: str(i)}
    meta = {"name": f"x-{i}-{index}", "namespace": "ns", "uid": f"worker-{i}-{index}", "labels": labels}
    return {"metadata": {**meta, "ownerReferences": [owner]}, "spec": {}, "status": {}}


def built(objects: Iterable[Object]) -> GroupIndex:
    index = GroupIndex(LEADERS, WORKERS)
    for kind, obj in objects:
        index.apply(kind, None, obj)
    return index


def seen(index: GroupIndex) -> dict[str, Any]:
    """All that an index tells, without the numbers that it interns revisions with."""
    state = index.state_of("set-uid")
    told: dict[str, Any] = {"flags": state.flags, "strays": state.strays}
    for revision in (*REVISIONS, "none"):
        for alone in (True, False):
            told[f"{revision} {alone}"] = state.groups(revision, alone)
    uids = [f"{what}-{i}{k}" for what in ("leader", "worker") for i in range(4) for k in ("", "'", "-1")]
    told["sets"] = {uid: index.set_of(uid) for uid in uids}
    told["groups"] = {uid: index.group_of(uid) for uid in uids}
    return told


def test_a_set_at_a_glance() -> None:
    index = built(
        [
            (STATEFUL_SET, leaders_of()),
            (POD, leader(0)),
            (STATEFUL_SET, workers(0)),
            (POD, leader(1)),
            (STATEFUL_SET, workers(1, ready=False)),
            (POD, leader(2, revision="r2")),
            (POD, leader(3, revision="r2")),
            (STATEFUL_SET, workers(3, revision="r2")),
        ]
    )
    groups = index.state_of("set-uid").groups("r2", alone=False)
    assert list(groups) == [
        GroupState(counted=True, ready=True, updated=False),
        GroupState(counted=True, ready=False, updated=False),
        GroupState(counted=False, ready=False, updated=False),
        GroupState(counted=True, ready=True, updated=True),
    ]
    assert (groups.finished_tail(), groups.count(READY), groups.count(UPDATED)) == (1, 2, 1)
    alone = index.state_of("set-uid").groups("r2", alone=True)
    assert [g.updated for g in alone] == [False, False, True, True]
    assert groups[9] == GroupState(False, False, False)
    assert index.state_of("other") == SetState()


def test_who_belongs_to_whom() -> None:
    index = built([(POD, worker(0, 1)), (STATEFUL_SET, workers(0)), (POD, leader(0)), (STATEFUL_SET, leaders_of())])
    assert index.set_of("worker-0-1") == index.set_of("leader-0") == "set-uid"
    assert index.set_of("nobody") is None
    group = index.group_of("leader-0")
    assert group is not None
    assert (group.id.index, group.leader, group.workers_uid) == ("0", "x-0", "workers-0")
    assert index.group_of("worker-0-1") is None
    index.apply(STATEFUL_SET, leaders_of(), None)
    assert index.set_of("worker-0-1") is None


def test_workers_of_the_leader_before_are_not_those_of_the_next() -> None:
    index = built([(STATEFUL_SET, leaders_of()), (POD, leader(0)), (STATEFUL_SET, workers(0))])
    index.apply(POD, leader(0), leader(0, uid="next"))
    (group,) = index.state_of("set-uid").groups("r1", alone=False)
    assert not group.counted
    index.apply(STATEFUL_SET, workers(0), workers(0, uid="new", of="next"))
    (group,) = index.state_of("set-uid").groups("r1", alone=False)
    assert group == GroupState(counted=True, ready=True, updated=True)


@pytest.mark.parametrize("text", ["", "one", "-1", "7", "99999999999", "²"])
def test_a_leader_whose_label_is_no_group_is_a_stray(text: str) -> None:
    index = built([(STATEFUL_SET, leaders_of()), (POD, leader(3, **{names.GROUP_INDEX_LABEL: text}))])
    state = index.state_of("set-uid")
    assert (state.strays, state.flags) == (("x-3",), b"")
    index.apply(POD, leader(3), leader(3))
    assert index.state_of("set-uid").strays == ()
    assert len(index.state_of("set-uid").flags) == 4


def test_more_revisions_at_once_than_fit_in_a_byte() -> None:
    count = 300
    objects: list[Object] = [(STATEFUL_SET, leaders_of())]
    for i in range(count):
        objects += [(POD, leader(i, revision=f"r{i}")), (STATEFUL_SET, workers(i, revision=f"r{i}"))]
    random.Random(1).shuffle(objects)
    index = built(objects)
    state = index.state_of("set-uid")
    assert state.revisions.count(OVERFLOW) > 0
    for i in (0, 5, 299):
        assert [n for n, g in enumerate(state.groups(f"r{i}", alone=False)) if g.updated] == [i]
    for i in range(count):
        index.apply(POD, leader(i, revision=f"r{i}"), leader(i, revision="new"))
        index.apply(STATEFUL_SET, workers(i, revision=f"r{i}"), workers(i, revision="new"))
    groups = index.state_of("set-uid").groups("new", alone=False)
    assert groups.count(UPDATED) == groups.finished_tail() == count


def test_ten_thousand_groups_are_counted_in_less_time_than_one_would_take_to_list() -> None:
    state = SetState(bytes([15]) * 10_000, bytes([1]) * 10_000, {1: ("r1", "r1")})
    seconds = min(
        timeit.repeat(lambda: state.groups("r1", alone=False).first(9_000).finished_tail(), number=10, repeat=3)
    )
    assert state.groups("r1", alone=False).finished_tail() == 10_000
    assert seconds < 0.05


def test_a_state_seen_before_a_change_still_tells_of_then() -> None:
    index = built([(STATEFUL_SET, leaders_of()), (POD, leader(0)), (STATEFUL_SET, workers(0))])
    before = index.state_of("set-uid")
    then = before.groups("r1", alone=False)
    index.apply(POD, leader(0), leader(0, ready=False))
    assert before.groups("r1", alone=False) == then
    assert index.state_of("set-uid").groups("r1", alone=False).count(READY) == 0


# Every order of every stream ----------------------------------------------------------------------------------------


@st.composite
def worlds(draw: st.DrawFn) -> list[list[Object]]:
    """A few states of a cluster in turn: which objects there are, by name, with changing UIDs, owners and facts."""
    states = []
    for _ in range(draw(st.integers(1, 4))):
        objects: list[Object] = []
        if draw(st.booleans()):
            objects.append((STATEFUL_SET, leaders_of(uid=draw(st.sampled_from(["sts", "sts2"])))))
        for i in range(4):
            flags = draw(st.integers(0, 7))
            mark = draw(st.sampled_from(["", "'"]))
            if flags & 1:
                of = draw(st.sampled_from(["sts", "sts2"]))
                revision = draw(st.sampled_from(REVISIONS))
                pod = leader(i, uid=f"leader-{i}{mark}", of=of, revision=revision, ready=draw(st.booleans()))
                if draw(st.integers(0, 9)) == 0:
                    pod["metadata"]["labels"][names.GROUP_INDEX_LABEL] = "odd"
                objects.append((POD, pod))
            if flags & 2:
                made = draw(st.sampled_from(["", "'"]))
                revision, ready = draw(st.sampled_from(REVISIONS)), draw(st.booleans())
                uid = f"workers-{i}{mark}"
                objects.append(
                    (STATEFUL_SET, workers(i, uid=uid, of=f"leader-{i}{made}", revision=revision, ready=ready))
                )
            if flags & 4:
                objects.append((POD, worker(i, 1, of=f"workers-{i}{draw(st.sampled_from(['', chr(39)]))}")))
        states.append(objects)
    return states


def changes(kind: Kind, before: list[Object], after: list[Object]) -> list[tuple[Kind, Obj | None, Obj | None]]:
    """What the informer of a kind tells between two states: another UID is a deletion and a creation."""
    old = {o["metadata"]["name"]: o for k, o in before if k == kind}
    new = {o["metadata"]["name"]: o for k, o in after if k == kind}
    told: list[tuple[Kind, Obj | None, Obj | None]] = []
    for name in sorted(old.keys() | new.keys()):
        was, now = old.get(name), new.get(name)
        if was and now and was["metadata"]["uid"] != now["metadata"]["uid"]:
            told += [(kind, was, None), (kind, None, now)]
        elif was or now:
            told.append((kind, was, now))
    return told


@given(worlds(), st.randoms(use_true_random=False), st.booleans())
def test_the_order_of_the_streams_does_not_matter(states: list[list[Object]], rng: random.Random, relist: bool) -> None:
    index = GroupIndex(LEADERS, WORKERS)
    streams: dict[Kind, list[tuple[Kind, Obj | None, Obj | None]]] = {POD: [], STATEFUL_SET: []}
    for before, after in zip([[], *states], states, strict=False):
        for kind, stream in streams.items():
            stream += changes(kind, before, after)
    index.state_of("set-uid").groups("r1", alone=False)
    while any(streams.values()):
        kind = rng.choice([k for k, stream in streams.items() if stream])
        index.apply(*streams[kind].pop(0))
        state, asked = index.state_of("set-uid"), (rng.choice(REVISIONS), rng.choice([True, False]))
        assert state.groups(*asked) == dataclasses.replace(state, views=None).groups(*asked)
    last = states[-1]
    if relist:
        kind = rng.choice([POD, STATEFUL_SET])
        index.replace(kind, [o for k, o in last if k == kind])
    assert seen(index) == seen(built(last))


@given(worlds())
def test_a_relist_replaces_everything(states: list[list[Object]]) -> None:
    index = built(states[0])
    for kind in (POD, STATEFUL_SET):
        index.replace(kind, [o for k, o in states[-1] if k == kind])
    assert seen(index) == seen(built(states[-1]))
    for kind in (POD, STATEFUL_SET):
        index.replace(kind, [])
    assert seen(index) == seen(built([]))
