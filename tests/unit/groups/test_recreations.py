"""Crash loops under the policies that recreate groups: what explanations make of the events of a set."""

from __future__ import annotations

import copy
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from lwskit.api import names
from lwskit.groups import counters, recreations, restarts
from lwskit.groups.explain import Explanation, State, explain
from lwskit.groups.scene import Happening, Scene, happening
from lwskit.runtime.objects import Obj
from tests.unit.groups.small_cluster import LEADERS, NOW, WORKERS, SmallCluster
from tests.unit.simulate.scenes import scene_of, small


def at(seconds: float) -> str:
    """A time that long before now."""
    return (NOW - timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def recreated(ago: float, group: int = 1, pod: str = "", **more: Any) -> Happening:
    note = f"Worker pod {pod or f'x-{group}'} failed, deleted leader pod x-{group} to recreate group {group}"
    fields = {"uid": "set-uid", "type": "Normal", "reason": "RecreateGroup", "note": note, "time": at(ago)}
    return Happening(names.KIND, "x", **{**fields, **more})


def updating(ago: float, revision: str, first: float | None = None) -> Happening:
    note = "Updating replica 1"
    begun = at(ago if first is None else first)
    return Happening(names.KIND, "x", "set-uid", "Normal", "GroupsUpdating", note, at(ago), revision, first=begun)


def starting(size: int = 1) -> SmallCluster:
    """Two groups of which the second is not ready."""
    cluster = small(2, size)
    cluster.make_ready(1, ready=False)
    cluster.settle()
    return cluster


def looked(scene: Scene, *happenings: Happening, now: datetime = NOW) -> Explanation:
    found = replace(scene, happenings=tuple(sorted(happenings, key=lambda h: h.time)))
    return explain(found, LEADERS, WORKERS, now)


def with_spec(scene: Scene, **template: Any) -> Scene:
    lws = copy.deepcopy(scene.lws)
    assert lws is not None
    lws["spec"]["leaderWorkerTemplate"] |= template
    return replace(scene, lws=lws)


LOOP = (recreated(50), recreated(30), recreated(10, pod="x-1-1"))


def test_the_note_of_the_event_is_read_as_it_is_written() -> None:
    cluster = starting(size=2)
    pod = copy.deepcopy(cluster.leaders[1])
    event = restarts._recreate(cluster.lws, pod, "x-1-1", "was lost").on_success
    assert event is not None
    assert restarts.told(event.note) == restarts.Recreation(1, "x-1-1")
    assert restarts.told("Worker pod x failed") is None


def test_a_group_that_is_recreated_again_and_again_blocks() -> None:
    found = looked(scene_of(starting()), *LOOP)
    assert (found.state, found.cause, found.group, found.pod) == (State.BLOCKED, "restart-loop", 1, "x-1-1")
    assert "Group 1 has been recreated 3 times within 50 s" in found.paragraph
    assert "last pod x-1-1; at present pod x-1 is on no node yet" in found.paragraph
    assert "`kubectl -n ns logs x-1-1 --all-containers --follow` shows why" in found.advice[0]
    assert found.advice[1] == "if the template is at fault: correct it in the set, and the rollout replaces the group"
    assert "maxGroupRestarts" in found.advice[2]


def test_also_while_its_leader_is_not_there() -> None:
    cluster = small(2)
    cluster.remove(1)
    found = looked(scene_of(cluster), *LOOP)
    assert (found.state, found.cause) == (State.BLOCKED, "restart-loop")
    assert "at present pod x-1 does not exist yet" in found.paragraph


OTHER_UID = tuple(replace(h, uid="another") for h in LOOP)


@pytest.mark.parametrize(
    "happenings",
    [
        LOOP[1:],
        tuple(recreated(ago, group=0) for ago in (30, 20, 10)),
        OTHER_UID,
        tuple(recreated(ago) for ago in (5030, 5020, 5010)),
        (recreated(5000), *LOOP[1:]),
        (recreated(85), recreated(73), recreated(61)),
        (recreated(401), recreated(351), recreated(301)),
    ],
    ids=["two", "another group", "an earlier set of the name", "over long ago", "one long before", "lives", "longer"],
)
def test_what_is_no_loop(happenings: tuple[Happening, ...]) -> None:
    found = looked(scene_of(starting()), *happenings)
    assert (found.state, found.cause) == (State.PROGRESSING, "not-scheduled")


@pytest.mark.parametrize("agos", [(83, 71, 59), (399, 349, 149)])
def test_a_loop_may_be_silent_for_some_of_its_rounds(agos: tuple[int, ...]) -> None:
    assert looked(scene_of(starting()), *(recreated(ago) for ago in agos)).cause == "restart-loop"


def test_a_surge_group_that_is_missing_for_a_moment_is_counted() -> None:
    cluster = small(2, maxSurge=1)
    cluster.change(image="B")
    cluster.settle()
    cluster.remove(2)
    found = looked(scene_of(cluster), *(replace(h, note=h.note.replace("1", "2")) for h in LOOP))
    assert found.group == 2
    assert "1 of 3 groups (2 wanted, 1 surge) is ready" in found.paragraph


def test_a_set_whose_groups_are_ready_is_well_whatever_was() -> None:
    assert looked(scene_of(small(2)), *LOOP).state is State.OK


def test_repetitions_of_one_event_count() -> None:
    found = looked(scene_of(starting()), recreated(10, count=7, first=at(70)))
    assert "recreated 7 times within 70 s" in found.paragraph


def test_of_a_used_up_loop_only_what_its_revision_did_counts() -> None:
    scene = scene_of(starting())
    (revision,) = scene.revisions
    name = revision["metadata"]["name"]
    young = {**revision, "metadata": {**revision["metadata"], "creationTimestamp": at(40)}}
    assert looked(replace(scene, revisions=(young,)), *LOOP).cause == "not-scheduled"
    # A rollback to a revision that was there before: its rollout, or the end of the other's, says since when it runs.
    assert looked(scene, *LOOP, updating(20, name)).cause == "not-scheduled"
    assert looked(scene, *LOOP, updating(20, "another", first=500)).cause == "not-scheduled"
    assert looked(scene, *LOOP, updating(5, name, first=500)).cause == "restart-loop"


def test_a_back_off_widens_what_counts_as_in_a_row() -> None:
    far = tuple(recreated(ago) for ago in (6000, 3500, 1000))
    scene = scene_of(starting())
    assert looked(scene, *far).cause == "not-scheduled"
    assert looked(with_spec(scene, restartBackoff={"capSeconds": 900}), *far).cause == "restart-loop"


def test_another_trouble_of_its_own_is_told_first() -> None:
    cluster = starting()
    pod = copy.deepcopy(cluster.leaders[1])
    pod["spec"]["schedulingGates"] = [{"name": "g"}]
    cluster._put_leader(1, pod)
    found = looked(scene_of(cluster), *LOOP)
    assert (found.state, found.cause) == (State.BLOCKED, "scheduling-gated")
    assert "by gate g; its group has been recreated 3 times within 50 s." in found.paragraph


def test_what_the_container_ended_with_is_told() -> None:
    cluster = starting()
    waiting = {"name": "c", "restartCount": 1, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    status = {"phase": "Running", "containerStatuses": [{**waiting, "lastState": {"terminated": {"exitCode": 3}}}]}
    pod = {**cluster.leaders[1], "status": status}
    cluster._put_leader(1, {**pod, "spec": {**pod["spec"], "nodeName": "n"}})
    found = looked(scene_of(cluster), *LOOP)
    assert (found.state, found.cause) == (State.BLOCKED, "restart-loop")
    assert "exit code 3" in found.paragraph


def test_where_containers_do_not_run_no_logs_are_advised() -> None:
    scene = scene_of(starting())
    node: Obj = {"metadata": {"name": "n"}, "status": {"nodeInfo": {"containerRuntimeVersion": "embedded://1"}}}
    found = looked(replace(scene, nodes={"n": node}), *LOOP)
    assert "`kubectl -n ns get pod x-1-1 -o yaml` shows which annotations" in found.advice[0]
    assert "logs x-1" not in found.paragraph


def test_a_group_that_blocks_is_told_before_one_that_only_starts() -> None:
    cluster = starting()
    cluster.make_ready(0, ready=False)
    cluster.settle()
    assert looked(scene_of(cluster), *LOOP).group == 1


def test_events_of_either_kind_tell_how_often_they_came() -> None:
    series = {"series": {"count": 4, "lastObservedTime": "b"}, "eventTime": "a", "metadata": {}}
    core = {"count": 3, "firstTimestamp": "a", "lastTimestamp": "b", "metadata": {}}
    once = {"eventTime": "a", "metadata": {}}
    assert [(h.count, h.first, h.time) for h in map(happening, (series, core, once))] == [
        (4, "a", "b"),
        (3, "a", "b"),
        (1, "a", "a"),
    ]


def test_the_spread_of_repetitions() -> None:
    known = recreations.known(replace(scene_of(starting()), happenings=(recreated(10, count=3, first=at(30)),)))
    assert [time for time, _ in known[1]] == [NOW - timedelta(seconds=s) for s in (30, 20, 10)]


def counted(count: int, *, age: float = 10, since: float = 600, **template: Any) -> Scene:
    """The second group, made so long ago, was restarted so often by the set's counters, on a revision of that age."""
    cluster = starting()
    leader = copy.deepcopy(cluster.leaders[1])
    leader["metadata"]["creationTimestamp"] = at(age)
    cluster._put_leader(1, leader)
    scene = with_spec(scene_of(cluster), maxGroupRestarts=10, **template)
    assert scene.lws is not None
    (revision,) = scene.revisions
    made = {**revision, "metadata": {**revision["metadata"], "creationTimestamp": at(since)}}
    lws = counters.written(scene.lws, {counters.key_of_group(leader): count})
    return replace(scene, lws=lws, revisions=(made,))


def test_a_loop_is_also_found_by_the_counters_of_restarts() -> None:
    """Without events, which expire and may not be read."""
    found = looked(counted(4))
    assert (found.state, found.cause, found.pod) == (State.BLOCKED, "restart-loop", "x-1")
    why = "Group 1 has been recreated 4 times within 10 min, since pods of it are lost or their containers restart"
    assert f"{why}; at present pod x-1 " in found.paragraph
    # Events that tell of fewer do not make it less, and those that tell of a loop tell more of it.
    assert looked(counted(4), recreated(10)).cause == "restart-loop"
    assert "recreated 3 times within 50 s" in looked(counted(4), *LOOP).paragraph


@pytest.mark.parametrize(
    "scene",
    [counted(2), counted(4, age=1800), counted(3, since=3 * 1800 + 100), counted(0)],
    ids=["few", "lives", "rare", "none"],
)
def test_what_is_no_loop_by_the_counters(scene: Scene) -> None:
    assert looked(scene).cause == "not-scheduled"


def test_counters_that_cannot_be_read_are_no_loop() -> None:
    scene = counted(4)
    assert scene.lws is not None
    notes = {**scene.lws["metadata"]["annotations"], names.GROUP_RESTART_COUNTS_ANNOTATION: "many"}
    lws = {**scene.lws, "metadata": {**scene.lws["metadata"], "annotations": notes}}
    assert recreations.find(replace(scene, lws=lws), {}, 1, None, "", NOW) is None


def test_a_rare_restart_may_be_a_loop_with_a_long_back_off() -> None:
    assert looked(counted(3, since=3 * 1800 + 100, restartBackoff={"capSeconds": 300})).cause == "restart-loop"
