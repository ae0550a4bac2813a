"""Loops of recreations in which each group has another key: who takes whose place (30 §10)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from lwskit.api import names
from lwskit.groups import revisions, status, successions
from lwskit.groups.recreations import Run
from lwskit.groups.scene import Happening, Scene
from lwskit.runtime.objects import Obj
from tests.unit.groups.hash_objects import NOW, hash_lws, key, leader
from tests.unit.groups.test_victims import replica_set


def at(seconds: float) -> str:
    """A time so long before now."""
    return status.stamp(NOW - timedelta(seconds=seconds))


def recreation(pod: str, seconds: float, name: str = "x-1-1", *, over: bool = False) -> Happening:
    note = f"Worker pod {name} failed, deleted leader pod {pod} to recreate group {key(1)}"
    if over:
        note = f"Leader pod {pod} failed, deleted it to replace group {key(1)}"
    return Happening(names.KIND, "x", "lws-uid", "Normal", names.EVENT_RECREATE_GROUP, note, at(seconds), pod)


def creation(pod: str, seconds: float) -> Happening:
    return Happening("ReplicaSet", "x-rs", "rs", "Normal", "SuccessfulCreate", f"Created pod: {pod}", at(seconds))


def admission(pod: str, seconds: float) -> Happening:
    note = f"Leader pod {pod} admitted for scheduling"
    return Happening(names.KIND, "x", "", "Normal", names.EVENT_GROUP_REPLACEMENT_ADMITTED, note, at(seconds), pod)


def found(*happenings: Happening, pod: str = "x-rs-9", born: float = 10, counts: str = "") -> Run | None:
    """The recreations that end with a leader made so many seconds ago."""
    lws = hash_lws()
    lws["metadata"]["uid"] = "lws-uid"
    if counts:
        lws["metadata"]["annotations"] = {names.GROUP_RESTART_COUNTS_ANNOTATION: counts}
    last: Obj = leader(9)
    last["metadata"] |= {"name": pod, "creationTimestamp": at(born)}
    record = revisions.new_revision(lws, [], revisions.record(lws), "r1")
    record["metadata"]["creationTimestamp"] = at(500)
    scene = Scene(
        name="x",
        namespace="ns",
        lws=lws,
        between=(replica_set("rs", 2),),
        happenings=tuple(happenings),
        pods=(last,),
        revisions=(record,),
    )
    return successions.find(scene, successions.known(scene), last, "r1", NOW)


LOOP = (
    creation("x-rs-1", 400),
    recreation("x-rs-1", 201, "x-1-1"),
    creation("x-rs-2", 200),
    recreation("x-rs-2", 101, "x-2-1"),
    creation("x-rs-3", 100),
    recreation("x-rs-3", 10, "x-3-2"),
)


def test_from_leader_to_leader() -> None:
    run = found(*LOOP)
    assert run is not None
    assert (run.count, run.pod, run.longest) == (3, "x-3-2", timedelta(seconds=100))
    assert run.is_loop(NOW)


def precisely(what: Happening, seconds: float) -> Happening:
    return replace(what, time=(NOW - timedelta(seconds=seconds)).isoformat())


def test_leaders_that_were_there_before_a_recreation_follow_none() -> None:
    """Three groups that are recreated once each within a second: who was let in before did not come for it."""
    happenings = [creation(f"x-rs-{n}", 10) for n in (1, 2, 3)]
    happenings += [precisely(admission(f"x-rs-{n}", 10), 9.9) for n in (1, 2, 3)]
    happenings += [precisely(recreation(f"x-rs-{n}", 9, f"x-{n}-1"), 9.7 - n / 10) for n in (1, 2, 3)]
    run = found(*happenings, precisely(admission("x-rs-9", 9), 9.35), born=10)
    assert run is not None
    assert run.count == 1


def test_births_are_told_in_whole_seconds() -> None:
    """A leader that came at the end of a second is told to have come at its beginning, nearer to an earlier one."""
    run = found(
        creation("x-rs-1", 14),
        precisely(recreation("x-rs-1", 13, "x-1-1"), 13.749),
        creation("x-rs-2", 14),
        precisely(recreation("x-rs-2", 11, "x-2-1"), 11.879),
        creation("x-rs-3", 12),
        precisely(recreation("x-rs-3", 10, "x-3-1"), 10.058),
        born=11,
    )
    assert run is not None
    assert (run.count, run.pod) == (3, "x-3-1")


def test_a_leader_that_came_for_another_reason_is_none() -> None:
    """Scaled up meanwhile, or in place of a group that somebody deleted."""
    assert found(*LOOP, born=50) is None
    short = [h for h in LOOP if h.note != "Created pod: x-rs-3"]
    run = found(*short)
    assert run is not None
    assert run.count == 1


def test_leaders_of_another_template_are_not_followed() -> None:
    assert found(*LOOP, pod="x-other-9") is None


def test_what_came_long_before_is_another_matter() -> None:
    before = (creation("x-rs-1", 9000), recreation("x-rs-1", 8000), creation("x-rs-2", 8000))
    run = found(*before, recreation("x-rs-2", 10))
    assert run is not None
    assert run.count == 1


def test_without_the_replica_sets_events_those_of_the_gate_do() -> None:
    """A ReplicaSet's events are dropped after some; then it is known when a leader left its gate."""
    gates = (admission("x-rs-3", 90), admission("x-rs-2", 180))
    run = found(*(h for h in LOOP if h.kind != "ReplicaSet"), *gates)
    assert run is not None
    assert run.count == 3


def test_leaders_that_have_failed_for_good() -> None:
    run = found(recreation("x-rs-1", 10, over=True))
    assert run is not None
    assert (run.count, run.pod) == (1, "x-rs-1")


def test_the_count_of_the_set_is_believed_where_it_is_higher() -> None:
    """Restarts are handed on from key to key, so the count is that of all of them."""
    run = found(counts=f'{{"r1/{key(9)}": 4}}')
    assert run is not None
    assert (run.count, run.pod, run.is_loop(NOW)) == (4, "", True)
    assert found(*LOOP, counts=f'{{"r1/{key(9)}": 2}}') == found(*LOOP)
    assert found(counts=f'{{"r1/{key(8)}": 4}}') is None
