"""The executor of rollouts, pass by pass (specification: 50 §7, §10, §17)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated import inputs, planner, rollout, scale, selection
from lwskit.disaggregated.model import Child, Readiness, Ready, SlicePlan, Write
from lwskit.disaggregated.planner import RolloutState, Step
from lwskit.runtime.objects import Obj, annotations_of, uid_of
from lwskit.runtime.plan import AnyAction, Create, Delete, Emit, Event, OnError, Patch
from tests.unit.disaggregated.played import World, limited
from tests.unit.disaggregated.scenes import REVISION, child_object

OLD, OLDER = "bbbbbbbb", "aaaaaaaa"
INITIAL = names.INITIAL_REPLICAS_ANNOTATION
PENDING = {names.SCALE_DOWN_PENDING_ANNOTATION: "true"}
ROLES = (limited("prefill", 4, 1, 0), limited("decode", 2, 1, 0))


def old(prefill: int, decode: int, revision: str = OLD, made: int = 1, **fields: Any) -> list[Obj]:
    """An old revision that was meant to have 4 and 2 groups."""
    created = f"2026-11-30T10:{made:02}:00Z"
    counts = {"prefill": (prefill, 4), "decode": (decode, 2)}
    return [
        child_object(name, spec, revision=revision, initial=initial, creationTimestamp=created, **fields)
        for name, (spec, initial) in counts.items()
    ]


def target(prefill: int, decode: int, **fields: Any) -> list[Obj]:
    """The target."""
    return [child_object("prefill", prefill, initial=4, **fields), child_object("decode", decode, initial=2, **fields)]


def world(*objects: Obj, roles: Sequence[Obj] = ROLES, **fields: Any) -> World:
    return World(roles, **fields).add(*objects)


def scaled(plan: SlicePlan) -> dict[str, int]:
    """The sizes that a plan asks for, by child, in its order."""
    patches = [action for action in plan.plan.actions if isinstance(action, Patch)]
    return {p.key.name: p.body["spec"]["replicas"] for p in patches if "replicas" in p.body.get("spec", {})}


def of(revision: str, role: str) -> str:
    return f"chat-0-{revision}-{role}"


def told(actions: Sequence[AnyAction]) -> list[Event]:
    """The events of a plan that succeeds."""
    found = [action.event if isinstance(action, Emit) else action.on_success for action in actions]
    return [event for event in found if event is not None]


def waits(plan: SlicePlan) -> None:
    """A plan that changes nothing and comes again in a second."""
    assert plan.plan.actions == ()
    assert plan.plan.result.after == 1.0
    assert plan.plan.note


# The children of the target -------------------------------------------------------------------------------------------


def test_a_rollout_begins_with_children_without_groups() -> None:
    """50 §23 line 25: they say what they are to have, and planning starts only in a later pass."""
    seen = world(*old(4, 2))
    begun = seen.step()
    assert [type(action) for action in begun.plan.actions] == [Create, Create]
    assert [(e.reason, e.note) for e in told(begun.plan.actions)] == [
        ("RollingUpdateStarted", f"Started rolling update to revision {REVISION}")
    ]
    assert begun.plan.result.after == 1.0
    assert seen.stand() == {OLD: {"prefill": 4, "decode": 2}, REVISION: {"prefill": 0, "decode": 0}}
    assert annotations_of(seen.objects[of(REVISION, "prefill")])[INITIAL] == "4"
    assert scaled(seen.step()) == {of(REVISION, "prefill"): 1, of(REVISION, "decode"): 1}
    seen.finish()
    assert seen.reasons().count("RollingUpdateStarted") == 1


def test_a_target_that_lost_a_child_gets_it_back_before_anything_else() -> None:
    """50 §23 line 38: it has none of its groups left, and is planned anew from what it has."""
    seen = world(*old(3, 1), target(1, 1)[0])
    assert [type(action) for action in seen.step().plan.actions] == [Create]
    assert seen.spec(REVISION) == {"prefill": 1, "decode": 0}
    assert seen.reasons() == []


def test_while_a_child_of_the_target_is_being_deleted_nothing_is_drained_or_asked_for() -> None:
    """50 §23 line 42: its name is not free yet, and a request for it would be refused every second."""
    going = target(1, 1)
    going[0]["metadata"]["deletionTimestamp"] = "2026-11-30T11:59:00Z"
    seen = world(*old(4, 2), *going)
    plan = seen.decided()
    waits(plan)
    assert plan.plan.note == f"LeaderWorkerSet {of(REVISION, 'prefill')} is being deleted"
    del seen.objects[of(REVISION, "prefill")]
    assert [type(action) for action in seen.step().plan.actions] == [Create]


def test_what_somebody_else_has_under_the_name_of_a_child_fails_the_pass() -> None:
    """50 §18, §23 line 55: nothing is done to it, and an event tells."""
    foreign = child_object("decode", 7, owner="of another")
    plan = world(*old(4, 2), target(0, 0)[0], foreign).decided()
    assert plan.error == (
        f"LeaderWorkerSet {of(REVISION, 'decode')} exists but is not controlled by DisaggregatedSet chat; "
        "refusing to adopt it"
    )
    (told,) = plan.plan.actions
    assert isinstance(told, Emit)
    assert (told.event.reason, told.event.note) == ("FailedCreate", plan.error)


@pytest.mark.parametrize("key", [names.ROLE_LABEL, names.SLICE_LABEL, names.REVISION_LABEL])
def test_a_child_that_says_it_is_another_one_is_not_drained(key: str) -> None:
    """50 §6, §8.8: its role would lose its groups alone, for the name of what would replace them is taken."""
    prefill, decode = target(4, 2)
    decode["metadata"]["labels"][key] = "x"
    seen = world(*old(0, 0), prefill, decode)
    scene = seen.seen()
    plan = rollout.decide(replace(scene, children=tuple(c for c in scene.children if c.slice == 0)))
    assert plan.error == (
        f"LeaderWorkerSet {of(REVISION, 'decode')} has not the labels of its name; give it {names.ROLE_LABEL}=decode, "
        f"{names.SLICE_LABEL}=0, {names.REVISION_LABEL}={REVISION} again, or delete it"
    )
    assert ("FailedCreate", plan.error) in [(e.reason, e.note) for e in told(plan.plan.actions)]
    assert scaled(plan) == {}


def test_a_copy_of_an_old_child_keeps_the_rollout_from_being_complete() -> None:
    """50 §7.3, §7.7: what has groups is not removed, and completion is told once, when all that is old can go."""
    copied = child_object("decode", 1, revision=OLD)
    copied["metadata"] |= {"name": "a-copy", "uid": "a-copy-uid"}
    seen = world(copied, *old(0, 0), *target(4, 2))
    plan = seen.step()
    assert plan.error.startswith("LeaderWorkerSet a-copy stands beside another of its role and revision: ")
    assert (seen.events, seen.deleted) == ([], [])
    copied["spec"]["replicas"] = 0
    seen.finish()
    assert seen.reasons("LWSDeleted") == ["RollingUpdateCompleted"]


def test_what_an_old_child_was_meant_to_have_is_restored_with_a_warning() -> None:
    """50 §23 line 37: the present size stands in for it, and nothing else happens in that pass."""
    children = old(3, 1)
    children[0]["metadata"]["annotations"][INITIAL] = "many"
    seen = world(*children, *target(1, 1))
    plan = seen.step()
    (action,) = plan.plan.actions
    assert isinstance(action, Patch)
    assert action.body["metadata"]["annotations"] == {INITIAL: "3"}
    (event,) = told(plan.plan.actions)
    assert (event.type, event.reason, event.action) == ("Warning", "InitialReplicasMissing", "Recover")
    assert event.note == (
        f"LWS {of(OLD, 'prefill')} has no valid {INITIAL} annotation; restoring it from current spec.replicas (3)"
    )
    assert Child.of(seen.objects[of(OLD, "prefill")]).initial == 3


# Waiting --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("whose", [OLD, REVISION])
def test_nothing_is_decided_on_what_is_not_known(whose: str) -> None:
    def ready(child: Child) -> Readiness:
        return Readiness(Ready(child.replicas, 0), known=child.revision != whose)

    waits(world(*old(4, 2), *target(1, 1), ready=ready).decided())


def test_a_target_that_was_scaled_down_must_have_settled() -> None:
    """50 §7.1 item 5: a rollback onto a revision that was draining."""

    def ready(child: Child) -> Readiness:
        return Readiness(Ready(child.replicas, child.replicas), settled=False)

    # What is drained of the other revision waits too: groups that are going are not to be counted on.
    waits(world(*old(1, 1), *target(4, 2, annotations=PENDING), ready=ready).decided())
    draining = target(3, 1, annotations=PENDING)
    grown = world(*old(1, 1), *draining).step()
    assert scaled(grown) == {of(REVISION, "prefill"): 4, of(REVISION, "decode"): 2}
    assert all(
        p.body["metadata"]["annotations"] == {names.SCALE_DOWN_PENDING_ANNOTATION: None}
        for p in grown.plan.actions
        if isinstance(p, Patch)
    )


def test_an_unready_target_holds_the_old_revision_and_says_so_the_same_way_every_time() -> None:
    """50 §23 line 29: the event is folded into one, however the set itself changes meanwhile."""
    seen = world(*old(4, 2), *target(1, 1), never_ready=frozenset({REVISION}))
    (event,) = told(seen.step().plan.actions)
    assert (event.type, event.reason, event.action) == ("Normal", "RevisionDrainBlocked", "Wait")
    assert event.note.startswith("Waiting to retire an old revision: no feasible replica change")
    assert event.regarding.resource_version == ""
    assert event.regarding.uid
    assert seen.step().plan.note == (
        "no step is possible yet; 0 of 4 groups of prefill are Ready; 0 of 2 groups of decode are Ready"
    )
    assert seen.stand()[OLD] == {"prefill": 4, "decode": 2}


# Steps ----------------------------------------------------------------------------------------------------------------


def test_drains_come_before_growth() -> None:
    """50 §23 line 28: so that a pass that dies in between leaves nothing above its limits."""
    roles = (limited("prefill", 4, 1, 1), limited("decode", 2, 1, 1))
    seen = world(*old(4, 2), *target(0, 0), roles=roles)
    plan = seen.step()
    assert list(scaled(plan)) == [
        of(OLD, "prefill"),
        of(OLD, "decode"),
        of(REVISION, "prefill"),
        of(REVISION, "decode"),
    ]
    assert [(e.reason, e.note) for e in told(plan.plan.actions)] == [
        ("ScalingDown", f"Scaling down prefill LWS {of(OLD, 'prefill')} from 4 to 3 replicas"),
        ("ScalingDown", f"Scaling down decode LWS {of(OLD, 'decode')} from 2 to 1 replicas"),
        ("ScalingUp", f"Scaling up prefill LWS {of(REVISION, 'prefill')} from 0 to 1 replicas"),
        ("ScalingUp", f"Scaling up decode LWS {of(REVISION, 'decode')} from 0 to 1 replicas"),
    ]


def test_percentages_are_of_what_is_desired() -> None:
    """50 §23 line 27: surge is rounded up and unavailable down."""
    roles = (limited("prefill", 4, "30%", "30%"), limited("decode", 2, "30%", "30%"))
    taken = scaled(world(*old(4, 2), *target(0, 0), roles=roles).step())
    assert taken == {of(OLD, "prefill"): 3, of(REVISION, "prefill"): 2, of(REVISION, "decode"): 1}


def test_a_step_that_breaks_a_promise_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """50 §7.4 item 6: every step is judged without asking how it was found."""

    def wrong(state: RolloutState) -> Step:
        return Step(old=(0,) * len(state.active.spec), target=state.target.spec)

    monkeypatch.setattr(planner, "next_step", wrong)
    plan = world(*old(4, 2), *target(1, 1)).decided()
    assert plan.plan.actions == ()
    assert plan.error.startswith(f"the next step to revision {REVISION} is not taken, for it is wrong: role prefill: ")


def test_a_bootstrap_surge_is_told_as_a_warning() -> None:
    """50 §17: r08's third step: decode has no free slot, and the others wait for it."""
    roles = (limited("encode", 6, 0, 1), limited("prefill", 3, 0, 1), limited("decode", 1, 0, 1))
    counts = {"encode": (5, 6, 1), "prefill": (2, 3, 1), "decode": (1, 1, 0)}
    seen = world(roles=roles)
    for name, (spec, initial, new) in counts.items():
        seen.add(child_object(name, spec, revision=OLD, initial=initial), child_object(name, new, initial=initial))
    plan = seen.step()
    assert scaled(plan) == {of(REVISION, "decode"): 1}
    event = told(plan.plan.actions)[-1]
    assert (event.type, event.reason, event.action) == ("Warning", "BootstrapSurge", "Bootstrap")
    assert event.note == (
        "Created one bootstrap replica for roles [decode] without a free maxSurge slot to preserve revision "
        "completeness"
    )


def test_capacity_is_released_for_a_target_that_finds_no_node() -> None:
    """50 §23 line 39: d09, after a bootstrap surge, only once a pod has waited for long, and with a Warning."""
    waiting = False

    def ready(child: Child) -> Readiness:
        if child.revision == REVISION and child.role == "prefill":
            return Readiness(unschedulable=waiting)
        return Readiness(Ready(child.replicas, child.replicas))

    seen = world(*target(1, 1), roles=(limited("prefill", 1, 1, 0), limited("decode", 4, 1, 0)), ready=ready)
    for revision, decode, made in ((OLDER, 3, "2026-11-30T10:00:00Z"), (OLD, 1, "2026-11-30T11:00:00Z")):
        seen.add(child_object("prefill", 1, revision=revision, creationTimestamp=made))
        seen.add(child_object("decode", decode, initial=4, revision=revision, creationTimestamp=made))
    assert [e.reason for e in told(seen.step().plan.actions)] == ["RevisionDrainBlocked"]
    waiting = True
    plan = seen.step()
    assert scaled(plan) == {of(OLD, "prefill"): 0, of(OLD, "decode"): 0}
    event = told(plan.plan.actions)[-1]
    assert (event.type, event.reason, event.action) == ("Warning", "AvailabilityFallback", "ReleaseCapacity")
    assert event.note == (
        f"Temporarily relaxed availability by at most one replica per role while retiring revision {OLD} to release "
        "excess bootstrap capacity for scheduler-unschedulable target roles [prefill]"
    )


def test_a_bootstrap_surge_that_has_to_wait_is_not_told() -> None:
    def ready(child: Child) -> Readiness:
        return Readiness(Ready(child.replicas, child.replicas), settled=child.replicas > 0)

    roles = (limited("prefill", 10, 0, 1), limited("decode", 1, 0, 1))
    seen = world(roles=roles, ready=ready)
    seen.add(child_object("prefill", 9, revision=OLD, initial=10), child_object("decode", 1, revision=OLD))
    seen.add(child_object("prefill", 1, initial=10), child_object("decode", 0, initial=1, status={"replicas": 1}))
    plan = seen.decided()
    waits(plan)
    assert plan.plan.note.endswith("has not settled")


def test_nothing_grows_while_what_is_to_shrink_has_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two belong together: the target would have more than it may beside the old groups."""
    to = scale.to

    def later(child: Child, replicas: int, **fields: Any) -> Write:
        return Write(pending="it waits") if child.revision == OLD else to(child, replicas, **fields)

    monkeypatch.setattr(scale, "to", later)
    roles = (limited("prefill", 4, 1, 1), limited("decode", 2, 1, 1))
    plan = world(*old(4, 2), *target(0, 0), roles=roles).decided()
    waits(plan)
    assert plan.plan.note == "it waits; it waits"


def test_what_shrinks_of_the_target_comes_before_what_grows() -> None:
    seen = world(policy=names.ADVANCE_ROLLOUT, counts={"prefill": 3, "decode": 2})
    seen.add(*old(0, 0), child_object("prefill", 1), child_object("decode", 4))
    assert [*scaled(seen.decided()).items()] == [(of(REVISION, "decode"), 2), (of(REVISION, "prefill"), 3)]


# Which revision -------------------------------------------------------------------------------------------------------


def test_an_unready_revision_goes_first_although_it_is_the_older_one() -> None:
    """50 §7.4 item 1."""
    seen = world(*old(2, 1, OLDER, 1), *old(2, 1, OLD, 2), *target(0, 0), never_ready=frozenset({OLDER}))
    assert [*scaled(seen.decided())][:2] == [of(OLDER, "prefill"), of(OLDER, "decode")]
    seen.never_ready = frozenset()
    assert [*scaled(seen.decided())] == [of(REVISION, "prefill"), of(REVISION, "decode")]


def chosen(monkeypatch: pytest.MonkeyPatch, **steps: Step | None) -> str:
    """The old revision that is drained if the planner has these steps for them; OLD is the newer one."""
    sizes = {4: OLDER, 2: OLD}
    monkeypatch.setattr(planner, "next_step", lambda state: steps[sizes[state.active.spec[0]]])
    seen = world(*old(4, 2, OLDER, 1), *old(2, 1, OLD, 2), *target(2, 2), policy=names.ADVANCE_ROLLOUT)
    choice = selection.choose(inputs.read(seen.seen()))
    return choice.revision.name if choice is not None else ""


def test_the_newest_revision_with_an_ordinary_step_is_drained(monkeypatch: pytest.MonkeyPatch) -> None:
    """50 §7.4 item 3: a bootstrap surge is for when there is none, and so is a smaller target."""
    newer, older = Step((1, 1), (2, 2)), Step((3, 2), (2, 2))
    surge, shrink = Step((2, 1), (3, 2), bootstrap_surge=True), Step((2, 1), (1, 2))
    assert chosen(monkeypatch, **{OLD: newer, OLDER: older}) == OLD
    assert chosen(monkeypatch, **{OLD: None, OLDER: older}) == OLDER
    assert chosen(monkeypatch, **{OLD: surge, OLDER: older}) == OLDER
    assert chosen(monkeypatch, **{OLD: shrink, OLDER: older}) == OLDER
    assert chosen(monkeypatch, **{OLD: surge, OLDER: shrink}) == OLDER
    assert chosen(monkeypatch, **{OLD: surge, OLDER: surge}) == OLD
    assert chosen(monkeypatch, **{OLD: None, OLDER: None}) == ""


def test_a_pod_without_a_node_of_a_role_that_has_all_its_groups_ready_is_no_cause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """50 §7.4 item 4: it is one of those that are to go."""
    flags: list[tuple[bool, ...]] = []

    def nothing(state: RolloutState) -> None:
        flags.append(state.target.unschedulable)

    def ready(child: Child) -> Readiness:
        committed = child.replicas if child.role == "prefill" else 0
        return Readiness(Ready(committed, committed), unschedulable=True)

    monkeypatch.setattr(planner, "next_step", nothing)
    world(*old(4, 2), *target(1, 1), ready=ready).decided()
    assert flags == [(False, False), (False, True)]


def test_a_revision_was_meant_to_have_what_it_has_at_least() -> None:
    """50 §8.1: whatever its annotation says."""
    seen = world(child_object("prefill", 4, revision=OLD, initial=1), *target(0, 0))
    (revision,) = inputs.read(seen.seen()).old
    assert revision.counts.initial == (4, 0)


# The end --------------------------------------------------------------------------------------------------------------


def test_the_newest_drained_revision_is_kept_until_the_target_is_ready() -> None:
    """50 §23 line 30: completion is told once, after the last of it is gone."""
    seen = world(*old(0, 0, OLDER, 1), *old(0, 0, OLD, 2), *target(4, 2), never_ready=frozenset({REVISION}))
    plan = seen.step()
    assert {labels["metadata"]["name"] for labels in seen.deleted} == {of(OLDER, "decode"), of(OLDER, "prefill")}
    assert [(e.reason, e.note, e.action) for e in told(plan.plan.actions)] == [
        ("LWSDeleted", f"Deleted drained LWS {of(OLDER, name)}", "Delete") for name in ("decode", "prefill")
    ]
    waits(seen.step())
    seen.never_ready = frozenset()
    plan = seen.step()
    assert seen.stand() == {REVISION: {"prefill": 4, "decode": 2}}
    assert [e.reason for e in told(plan.plan.actions)] == ["LWSDeleted", "LWSDeleted", "RollingUpdateCompleted"]
    assert told(plan.plan.actions)[-1].note == f"Completed rolling update to revision {REVISION}"


def test_a_deletion_is_of_that_very_child_and_waits_for_what_it_owns() -> None:
    plan = world(*old(0, 0), *target(4, 2)).decided()
    deletions = [action for action in plan.plan.actions if isinstance(action, Delete)]
    assert [(d.key.name, d.uid, d.propagation, d.errors["NotFound"]) for d in deletions] == [
        (of(OLD, name), f"{of(OLD, name)}-uid", "Foreground", OnError.IGNORE) for name in ("decode", "prefill")
    ]


def test_a_partly_drained_revision_is_kept_whole() -> None:
    """50 §23 line 31: its roles go together."""
    seen = world(*old(0, 2, OLDER, 1), *old(0, 0, OLD, 2), *target(2, 1), never_ready=frozenset({REVISION}))
    seen.step()
    assert {uid_of(gone) for gone in seen.deleted} == {f"{of(OLD, n)}-uid" for n in ("prefill", "decode")}


def test_a_target_that_needs_more_when_nothing_is_left_to_drain_gets_it_at_once() -> None:
    """50 §7.4 item 2, §10: from 0 the target goes straight to what is desired, and the old children stay until then."""
    seen = world(*old(0, 0), *target(0, 0))
    assert scaled(seen.step()) == {of(REVISION, "prefill"): 4, of(REVISION, "decode"): 2}
    assert OLD in seen.stand()
    seen.finish()
    assert seen.reasons("ScalingUp") == ["LWSDeleted", "LWSDeleted", "RollingUpdateCompleted"]


def test_a_pause_drains_the_old_revision_in_one_step() -> None:
    """50 §10, r27: with nothing wanted of any role."""
    roles = (limited("prefill", 0, 1, 0), limited("decode", 0, 1, 0))
    seen = world(*old(4, 2), roles=roles)
    seen.step()
    assert scaled(seen.step()) == {of(OLD, "prefill"): 0, of(OLD, "decode"): 0}
    seen.finish()
    assert seen.stand() == {REVISION: {"prefill": 0, "decode": 0}}


# Situations -----------------------------------------------------------------------------------------------------------


def test_a_broken_revision_in_between_goes_before_anything_else_moves() -> None:
    """50 §23 line 32: it serves nobody, and holds capacity."""
    seen = world(*old(4, 2, OLDER, 1), *old(1, 1, OLD, 2), never_ready=frozenset({OLD}))
    seen.step()
    assert scaled(seen.step()) == {of(OLD, "prefill"): 0, of(OLD, "decode"): 0}
    seen.finish()
    assert seen.stand() == {REVISION: {"prefill": 4, "decode": 2}}


def test_a_rollback_takes_the_children_that_are_there() -> None:
    """50 §23 line 33: they keep their UIDs and get to know what they are to have now."""
    back = [child_object("prefill", 3, initial=9), child_object("decode", 2, initial=2)]
    seen = world(*old(1, 1), *back)
    plan = seen.step()
    assert not any(isinstance(action, Create) for action in plan.plan.actions)
    assert annotations_of(seen.objects[of(REVISION, "prefill")])[INITIAL] == "4"
    seen.finish()
    assert {name: uid_of(obj) for name, obj in seen.objects.items()} == {uid_of(o)[:-4]: uid_of(o) for o in back}
    assert "RollingUpdateStarted" not in seen.reasons()


def rolled(before: Mapping[str, int], roles: Sequence[Obj]) -> list[tuple[dict[str, int], dict[str, int]]]:
    """How old and new children stand after each step of a rollout to these roles."""
    seen = world(*(child_object(name, count, revision=OLD) for name, count in before.items()), roles=roles)
    stands = [(seen.spec(OLD), {})]
    for _ in range(50):
        if not seen.has_old:
            return stands[1:]
        seen.step()
        if (now := (seen.spec(OLD), seen.spec(REVISION))) != stands[-1] and now[0]:
            stands.append(now)
    raise AssertionError(stands)


def test_a_role_may_come() -> None:
    """50 §23 line 34: r23; the old revision ends as a whole when the new role serves."""
    roles = [limited(name, 2, 1, 0) for name in ("prefill", "decode", "encode")]
    assert [(tuple(o.values()), tuple(n.values())) for o, n in rolled({"prefill": 2, "decode": 2}, roles)] == [
        ((2, 2), (0, 0, 0)),
        ((2, 2), (1, 1, 2)),
        ((1, 1), (1, 1, 2)),
        ((1, 1), (2, 2, 2)),
        ((0, 0), (2, 2, 2)),
    ]


def test_a_role_may_go() -> None:
    """50 §23 line 34: r24; its child goes with its revision."""
    roles = [limited(name, 2, 1, 0) for name in ("prefill", "decode")]
    steps = rolled({"prefill": 2, "decode": 2, "encode": 2}, roles)
    assert [(tuple(o.values()), tuple(n.values())) for o, n in steps] == [
        ((2, 2, 2), (0, 0)),
        ((2, 2, 1), (1, 1)),
        ((1, 1, 1), (1, 1)),
        ((1, 1, 1), (2, 2)),
        ((0, 0, 0), (2, 2)),
    ]


def test_roles_may_all_have_other_names() -> None:
    """50 §23 line 35: r26; the old ones go as the new ones become usable together."""
    roles = [limited(name, 2, 1, 0) for name in ("p2", "d2")]
    assert [(tuple(o.values()), tuple(n.values())) for o, n in rolled({"prefill": 2, "decode": 2}, roles)] == [
        ((2, 2), (0, 0)),
        ((2, 2), (1, 1)),
        ((1, 1), (2, 2)),
        ((0, 0), (2, 2)),
    ]


@pytest.mark.parametrize(
    ("policy", "meant", "completes"), [(names.ROLLOUT_COUPLED, "3", True), (names.ADVANCE_ROLLOUT, "1", False)]
)
def test_what_others_scale_down_in_a_rollout(policy: str, meant: str, completes: bool) -> None:
    """50 §23 line 48: coupled, the target keeps what it has until the old groups are gone."""
    roles = (limited("prefill", 4, 1, 0, names.SCALING_EXTERNAL), limited("decode", 4, 1, 0))
    seen = world(roles=roles, policy=policy, counts={"prefill": 1, "decode": 4})
    seen.add(*(child_object(name, 1, revision=OLD, initial=4) for name in ("prefill", "decode")))
    seen.add(*(child_object(name, 3, initial=4) for name in ("prefill", "decode")))
    seen.step()
    assert annotations_of(seen.objects[of(REVISION, "prefill")])[INITIAL] == meant
    seen.finish()
    assert seen.spec(REVISION) == {"prefill": 3 if completes else 1, "decode": 4}
    assert annotations_of(seen.objects[of(REVISION, "prefill")])[INITIAL] == "1"
