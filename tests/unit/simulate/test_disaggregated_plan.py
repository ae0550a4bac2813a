"""Plans of DisaggregatedSets: what an edit is, its steps, the lowest capacity, the widest skew, and where it ends."""

from __future__ import annotations

import copy
from fractions import Fraction
from typing import Any

import pytest

from lwskit.api import disaggregated_names as names
from lwskit.runtime.objects import Obj
from lwskit.simulate.disaggregated_edit import Verdict
from lwskit.simulate.disaggregated_output import as_data, text
from lwskit.simulate.disaggregated_report import Report
from lwskit.simulate.order import OrderError
from lwskit.simulate.report import Outcome
from tests.dsobjects import sub
from tests.unit.doctor.patients import chat, child, role
from tests.unit.doctor.test_children import external, scaler
from tests.unit.simulate.families import objects, paced, pair, planned, with_image, with_replicas


def steps(report: Report, slice: int = 0) -> list[str]:
    """The steps as the tables of the specification have them: old/new per part."""
    return [" ".join(f"{c.old}/{c.new}" for p, c in step.counts.items() if p.slice == slice) for step in report.steps]


def codes(report: Report) -> list[str]:
    return [notice.code for notice in report.notices]


# Steps ----------------------------------------------------------------------------------------------------------------


def test_the_first_table_of_the_specification() -> None:
    """50 §9 r01."""
    ds = pair()
    report = planned(with_image(ds, "b"), *objects(ds))
    assert (report.verdict, report.outcome) == (Verdict.ROLLS, Outcome.DONE)
    told = ["4/0 2/0", "4/1 2/1", "3/1 1/1", "3/2 1/2", "2/2 1/2", "2/3 1/2", "1/3 1/2", "1/4 1/2", "0/4 0/2"]
    assert steps(report)[:-1] == told
    assert report.steps[0].made == (f"chat-0-{report.revision}-decode", f"chat-0-{report.revision}-prefill")
    assert report.steps[-1].gone == (
        f"chat-0-{report.revision_before}-decode",
        f"chat-0-{report.revision_before}-prefill",
    )
    assert {str(part): low.ready for part, low in report.lowest.items()} == {"prefill": 4, "decode": 2}


def test_a_bootstrap_surge_is_marked() -> None:
    """50 §9 r14."""
    ds = pair(1, 2, surge=0, unavailable=1)
    report = planned(with_image(ds, "b"), *objects(ds))
    assert steps(report)[:4] == ["1/0 2/0", "1/0 1/0", "1/0 1/1", "1/1 1/1"]
    marked = [number for number, step in enumerate(report.steps, 1) if step.marks]
    assert (marked, report.steps[3].marks) == ([4], ("bootstrap surge",))
    assert "bootstrap-surge" in codes(report)
    assert any("bootstrap surge" in line for line in text(report))


def test_an_outage_is_told_of() -> None:
    """50 §9 r13."""
    ds = pair(1, 1, surge=0, unavailable=1)
    report = planned(with_image(ds, "b"), *objects(ds))
    assert steps(report)[:3] == ["1/0 1/0", "0/0 0/0", "0/1 0/1"]
    assert codes(report).count("outage") == 2
    (_, low) = next(iter(report.lowest.items()))
    assert (low.ready, low.wanted, low.step) == (0, 1, 2)


def test_a_slice_more_hides_no_outage() -> None:
    ds = pair(1, 1, surge=0, unavailable=1)
    edited = with_image(ds, "b")
    edited["spec"]["slices"] = 2
    told = [notice.message for notice in planned(edited, *objects(ds)).notices if notice.code == "outage"]
    assert told == [f"role {role}: at step 3 no group of it is ready in slice 0" for role in ("prefill", "decode")]


def test_a_name_that_only_the_edit_needs_is_taken() -> None:
    ds = pair(2, 1)
    edited = with_image(ds, "b")
    revision = planned(edited, *objects(ds)).revision
    meta = {"name": f"chat-0-{revision}-decode", "namespace": "ns", "uid": "other"}
    (loose, *_) = (o for o in objects(ds) if o["kind"] == "LeaderWorkerSet")
    taken = {**loose, "metadata": meta}
    report = planned(edited, *objects(ds), taken)
    assert (report.outcome, "no-decision" in codes(report)) == (Outcome.STALLED, True)
    created = planned(edited, taken)
    assert (created.outcome, "no-decision" in codes(created)) == (Outcome.STALLED, True)
    elsewhere = {**taken, "metadata": {**meta, "name": "another"}}
    assert planned(edited, *objects(ds), elsewhere).outcome is Outcome.DONE


def test_groups_one_after_another() -> None:
    ds = pair(2, 1)
    report = planned(with_image(ds, "b"), *objects(ds), order="lowest-first")
    assert report.steps[2].after == f"chat-0-{report.revision}-prefill-0 is ready"
    assert report.outcome is Outcome.DONE
    newest = planned(with_image(ds, "b"), *objects(ds), order="highest-first")
    assert newest.steps[2].after == f"chat-0-{report.revision}-decode-0 is ready"


def test_a_target_that_never_becomes_ready() -> None:
    """50 §9 m05: one probe group of each role, and it waits."""
    ds = pair()
    report = planned(with_image(ds, "b"), *objects(ds), order="never")
    assert (steps(report), report.outcome) == (["4/0 2/0", "4/1 2/1"], Outcome.STALLED)
    waits = next(n.message for n in report.notices if n.code == "waits")
    assert waits.startswith("it waits: ")


def test_a_rollout_in_the_middle_goes_on() -> None:
    ds = pair()
    new = with_image(ds, "b")
    revision = planned(new, *objects(ds)).revision
    there = {
        "old prefill": child(ds, "prefill", 3),
        "old decode": child(ds, "decode", 1),
        "prefill": child(ds, "prefill", 1, rev=revision),
        "decode": child(ds, "decode", 1, rev=revision),
    }
    for key, initial in (("old prefill", 4), ("old decode", 2), ("prefill", 4), ("decode", 2)):
        there[key]["metadata"]["annotations"] = {names.INITIAL_REPLICAS_ANNOTATION: str(initial)}
    report = planned(new, *objects(new, there))
    assert (report.verdict, report.outcome) == (Verdict.NOTHING, Outcome.DONE)
    assert steps(report)[:2] == ["3/2 1/2", "2/2 1/2"]
    assert next(iter(text(report))) == "ns/chat: nothing changes; what goes on already:"


def test_groups_that_start_become_ready() -> None:
    ds = pair(2, 1)
    report = planned(with_image(ds, "b"), *objects(ds, ready={"0/prefill": 1}))
    assert report.outcome is Outcome.DONE
    assert report.before is not None
    assert [c.ready for c in report.before.counts.values()] == [1, 1]


def test_groups_in_trouble_do_not() -> None:
    """And an old one that is not ready keeps the rollout: what goes would be a ready one, for all anybody knows."""
    ds = pair(2, 1)
    there = objects(ds, ready={"0/prefill": 1})
    (pod,) = [o for o in there if o["kind"] == "Pod" and o["metadata"]["name"].endswith("prefill-1")]
    message = {"reason": "CrashLoopBackOff", "message": "back-off"}
    pod["spec"] = {**pod["spec"], "nodeName": "n"}
    pod["status"] = {
        "phase": "Running",
        "containerStatuses": [{"name": "c", "restartCount": 5, "state": {"waiting": message}}],
    }
    report = planned(with_image(ds, "b"), *there)
    assert report.outcome is Outcome.STALLED
    waits = next(n.message for n in report.notices if n.code == "waits")
    assert waits.endswith(f"not expected to be: 1 of 2 groups of chat-0-{report.revision_before}-prefill")


# What an edit is ------------------------------------------------------------------------------------------------------


def test_creation() -> None:
    report = planned(pair())
    assert (report.verdict, report.before, report.wanted) == (Verdict.CREATES, None, 6)
    assert steps(report) == ["0/4 0/2", "0/4 0/2"]
    assert next(iter(text(report))) == "ns/chat: creates the set with 6 groups of 2 roles"
    assert not any("lowest" in line for line in text(report))


def placed(ds: Obj) -> None:
    ds["spec"]["placementPolicy"] = {"type": "ExclusiveSlice", "topology": "rack"}


def repaced(ds: Obj) -> None:
    ds["spec"]["roles"][0]["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["maxSurge"] = 2


def replaced(ds: Obj) -> None:
    ds["spec"]["roles"][1]["spec"]["groupReplacementPolicy"] = "PostTermination"


def labelled(ds: Obj) -> None:
    ds["metadata"]["labels"] = {"a": "b"}


def role_labelled(ds: Obj) -> None:
    ds["spec"]["roles"][0]["metadata"] = {"labels": {"a": "b"}}


def sliced(ds: Obj) -> None:
    ds["spec"]["slices"] = 2


@pytest.mark.parametrize(
    ("change", "verdict", "changed", "count"),
    [
        (lambda ds: None, Verdict.NOTHING, [], 0),
        (labelled, Verdict.METADATA, ["metadata.labels[a]"], 0),
        (placed, Verdict.NEXT_REVISION, ["spec.placementPolicy"], 0),
        (
            repaced,
            Verdict.PACE,
            ["spec.roles[prefill].spec.rolloutStrategy.rollingUpdateConfiguration.maxSurge"],
            0,
        ),
        (replaced, Verdict.IN_PLACE, ["spec.roles[decode].spec.groupReplacementPolicy"], 0),
        (sliced, Verdict.SCALES, ["spec.slices"], 2),
        (role_labelled, Verdict.ROLLS, ["spec.roles[prefill].metadata"], 10),
    ],
)
def test_verdicts(change: Any, verdict: Verdict, changed: list[str], count: int) -> None:
    ds = pair()
    new = copy.deepcopy(ds)
    change(new)
    report = planned(new, *objects(ds))
    assert (report.verdict, list(report.changed)) == (verdict, changed)
    assert len(report.steps) == count
    assert report.outcome is Outcome.DONE


def test_the_order_of_roles_changes_nothing() -> None:
    ds = pair()
    new = copy.deepcopy(ds)
    new["spec"]["roles"].reverse()
    report = planned(new, *objects(ds))
    assert (report.verdict, report.steps) == (Verdict.NOTHING, ())


def test_scaling_is_no_rollout() -> None:
    ds = pair()
    report = planned(with_replicas(ds, prefill=6, decode=1), *objects(ds))
    assert (report.verdict, steps(report)) == (Verdict.SCALES, ["0/6 0/1", "0/6 0/1"])
    assert report.skew is None
    assert next(iter(text(report))) == "ns/chat: scales from 6 to 7 groups; no rollout"


def test_removed_slices_go_at_once() -> None:
    ds = chat(paced("prefill", 1), paced("decode", 1), slices=3)
    new = copy.deepcopy(ds)
    new["spec"]["slices"] = 1
    report = planned(new, *objects(ds, ready={"2/decode": 0}))
    # What is removed lacks nothing.
    assert {(low.slice, low.ready) for low in report.lowest.values()} == {(0, 1)}
    assert next(n.message for n in report.notices if n.code == "slices-removed").startswith("slices 1, 2: all groups")
    assert report.steps[0].groups == 2


def test_a_removed_role_drains_with_its_revision() -> None:
    """50 §9 r24."""
    ds = chat(*(paced(name, 2) for name in ("prefill", "decode", "encode")))
    new = copy.deepcopy(ds)
    del new["spec"]["roles"][2]
    report = planned(new, *objects(ds))
    assert [str(part) for part in report.parts] == ["prefill", "decode", "encode"]
    assert steps(report)[1:5] == ["2/1 2/1 1/0", "1/1 1/1 1/0", "1/2 1/2 1/0", "0/2 0/2 0/0"]


# Costs ----------------------------------------------------------------------------------------------------------------


def test_the_widest_skew_is_within_the_window() -> None:
    """50 §8.2: no role is further than the slowest and one group of the smallest role."""
    ds = pair(10, 2, surge=3, unavailable=0)
    report = planned(with_image(ds, "b"), *objects(ds))
    skew = report.skew
    assert skew is not None
    assert 0 < skew.share <= skew.window == Fraction(1, 2)
    assert any(line.startswith("  widest skew: ") for line in text(report))


def test_the_skew_by_hand() -> None:
    ds = pair()
    skew = planned(with_image(ds, "b"), *objects(ds)).skew
    assert skew is not None
    # 4,2/2,2: prefill has 2 of 4, decode 2 of 2.
    assert (skew.share, skew.side, str(skew.ahead), str(skew.behind), skew.step) == (
        Fraction(1, 2),
        "new",
        "decode",
        "prefill",
        4,
    )


def test_one_role_has_no_skew() -> None:
    ds = chat(paced("prefill", 3))
    report = planned(with_image(ds, "b"), *objects(ds))
    assert report.skew is None
    assert len(report.steps) > 3


def test_the_peak_beside_what_there_is_now() -> None:
    ds = pair()
    report = planned(with_image(ds, "b"), *objects(ds))
    assert report.peak is not None
    assert (report.peak.groups, report.peak.pods) == (8, 8)
    assert "  at the peak: 8 groups, 8 pods: 2 groups and 2 pods more than now" in [*text(report)]
    assert next(n.message for n in report.notices if n.code == "capacity").startswith(
        "whether nodes have room for 2 groups and 2 pods more than now"
    )


# What stalls ----------------------------------------------------------------------------------------------------------


def test_a_scaler_of_somebody_else_stops_everything() -> None:
    ds = chat(role("prefill"), external("decode"))
    foreign = scaler(ds, "decode")
    foreign["metadata"]["ownerReferences"] = []
    report = planned(with_image(ds, "b"), *objects(ds), foreign)
    assert (report.steps, report.outcome) == ((), Outcome.STALLED)
    assert codes(report) == ["unresolved"]


def test_what_a_scaler_asks_for_is_rolled() -> None:
    ds = chat(paced("prefill", 2), {**paced("decode", 2), "scaling": {"mode": "External"}})
    report = planned(with_image(ds, "b"), *objects(ds), scaler(ds, "decode", 2))
    assert report.outcome is Outcome.DONE
    assert {str(place.part): n for place, n in report.desired.items()} == {"prefill": 2, "decode": 2}


def test_a_foreign_child_stops_its_slice() -> None:
    ds = pair(1, 1)
    new = with_image(ds, "b")
    revision = planned(new, *objects(ds)).revision
    foreign = child(ds, "decode", rev=revision, ownerReferences=[])
    report = planned(new, *objects(ds), foreign)
    assert report.outcome is Outcome.STALLED
    stopped = next(n.message for n in report.notices if n.code == "no-decision")
    assert f"LeaderWorkerSet chat-0-{revision}-decode exists but is not controlled by DisaggregatedSet chat" in stopped


def undivided(ds: Obj, name: str = "decode") -> Obj:
    """The set with a role whose groups cannot be divided as it says: its LeaderWorkerSets are refused."""
    new = copy.deepcopy(ds)
    (one,) = [r for r in new["spec"]["roles"] if r["name"] == name]
    one["spec"]["leaderWorkerTemplate"] |= {"size": 5, "subGroupPolicy": {"subGroupSize": 3}}
    return new


def refusals(report: Report) -> list[str]:
    return [notice.message for notice in report.notices if notice.code == "child-refused"]


def test_a_new_set_one_of_whose_children_is_refused() -> None:
    """10 §6.4. The other roles get theirs (50 §6: for each role, in no order)."""
    ds = chat(paced("prefill", 2), paced("decode", 1), paced("encode", 1), slices=2)
    report = planned(undivided(ds))
    assert (report.verdict, report.outcome, report.good) == (Verdict.CREATES, Outcome.STALLED, False)
    made = tuple(f"chat-{i}-{report.revision}-{role}" for i in range(2) for role in ("encode", "prefill"))
    assert report.steps[0].made == made
    assert report.steps[-1].groups == 6
    assert refusals(report) == [
        f"role decode: LeaderWorkerSet chat-0-{report.revision}-decode and that of slice 1 are refused by the API "
        "server: spec.roles[decode].spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize: size or size - 1 must be "
        "divisible by subGroupSize"
    ]
    lines = [*text(report)]
    assert "  end: it stalls: LeaderWorkerSets that the manager wants are refused" in lines
    assert as_data(report)["outcome"] == "stalls"


def test_all_roles_that_are_refused_are_told() -> None:
    ds = undivided(undivided(pair()), "prefill")
    report = planned(ds)
    assert (report.steps, [told.partition(":")[0] for told in refusals(report)]) == (
        (),
        ["role prefill", "role decode"],
    )
    assert "  end: it stalls: LeaderWorkerSets that the manager wants are refused" in [*text(report)]


@pytest.mark.parametrize("name", ["1chat", "ch.at"])
def test_a_name_that_no_child_can_be_named_after(name: str) -> None:
    ds = pair()
    ds["metadata"]["name"] = name
    report = planned(ds)
    assert (report.outcome, report.steps, len(refusals(report))) == (Outcome.STALLED, (), 2)
    assert all("spec.roles[" in told and "a DNS-1035 label must consist" in told for told in refusals(report))
    assert all("under another name" in notice.hints[0] for notice in report.notices)


def test_a_rollout_to_what_is_refused_leaves_what_serves() -> None:
    ds = pair()
    report = planned(undivided(ds), *objects(ds))
    assert (report.verdict, report.outcome) == (Verdict.ROLLS, Outcome.STALLED)
    assert steps(report) == ["4/0 2/0"]
    assert {str(part): low.ready for part, low in report.lowest.items()} == {"prefill": 4, "decode": 2}
    assert len(refusals(report)) == 1


def test_a_count_that_a_child_is_refused() -> None:
    """10 §6.2: a scaler may ask for more groups than a LeaderWorkerSet can have."""
    ds = chat(paced("prefill", 1), {**paced("decode", 1, size=4), "scaling": {"mode": "External"}})
    report = planned(ds, *objects(ds), scaler(ds, "decode", 2**29))
    assert report.outcome is Outcome.STALLED
    (told,) = refusals(report)
    assert told.startswith(f"role decode: LeaderWorkerSet chat-0-{report.revision}-decode is refused by the API server")
    assert told.endswith("; there were to be 536870912 groups")


def test_a_judge_that_refuses_nothing_is_believed() -> None:
    assert planned(undivided(pair()), judge=lambda child, before: ()).outcome is Outcome.DONE


def test_a_set_that_is_stuck_says_so_where_nothing_changes() -> None:
    ds = pair(2, 1)
    there = objects(ds, ready={"0/prefill": 1})
    (pod,) = [o for o in there if o["kind"] == "Pod" and o["metadata"]["name"].endswith("prefill-1")]
    pod["status"] = {"phase": "Failed", "reason": "Evicted"}
    report = planned(ds, *there)
    child = f"chat-0-{report.revision}-prefill"
    assert (report.verdict, report.steps, report.outcome) == (Verdict.NOTHING, (), Outcome.STALLED)
    assert [*text(report)] == [
        "ns/chat: nothing changes",
        "  end: it is stuck as it is: it waits for groups that do not become ready",
        f"  note: it waits; not ready, and not expected to be: 1 of 2 groups of {child} [waits]",
    ]
    well = planned(ds, *objects(ds))
    assert [*text(well)] == ["ns/chat: nothing changes"]


def test_limits_that_come_to_nothing() -> None:
    ds = pair(2, 2, surge=0, unavailable="10%")
    report = planned(with_image(ds, "b"), *objects(ds))
    assert codes(report).count("zero-budget") == 2
    assert steps(report)[1] == "2/1 2/1"


def test_replicas_that_nobody_reads() -> None:
    ds = chat(role("prefill"), external("decode"))
    report = planned(with_replicas(ds, decode=5), *objects(ds), scaler(ds, "decode", 1))
    assert (codes(report), report.steps) == (["replicas-ignored"], ())
    assert report.notices[0].hints == ("scale DisaggregatedSetRoleScaler chat-decode",)


def test_an_order_of_groups_is_none() -> None:
    with pytest.raises(OrderError, match="'2,1' is no order for a DisaggregatedSet"):
        planned(pair(), order="2,1")


# Forms ----------------------------------------------------------------------------------------------------------------


def test_text() -> None:
    ds = pair(2, 1)
    report = planned(with_image(ds, "b"), *objects(ds))
    lines = [*text(report)]
    assert lines[0] == f"ns/chat: rolls all roles: revision {report.revision_before} → {report.revision}"
    assert lines[4:9] == [
        "  groups of old revisions/of the new one (ready ones of both)",
        "  step  after                               prefill  decode",
        "                                            2/0 (2)  1/0 (1)",
        "  1     the edit                            2/0 (2)  1/0 (1)  makes 2 LeaderWorkerSets",
        "  2                                         2/1 (2)  1/1 (1)",
    ]
    assert "  lowest: prefill 2 ready of 2 wanted; decode 1 ready of 1 wanted" in lines
    assert lines[-3] == "  end: all groups are ready and as asked for"


def test_slices_that_go_the_same_way_are_shown_once() -> None:
    ds = chat(paced("prefill", 2), paced("decode", 1), slices=2)
    alike = [*text(planned(with_image(ds, "b"), *objects(ds)))]
    assert sum("groups of old revisions/of the new one" in line for line in alike) == 1
    assert "  slices 0, 1, each: groups of old revisions/of the new one (ready ones of both)" in alike
    apart = [*text(planned(with_image(ds, "b"), *objects(ds, ready={"1/decode": 0})))]
    assert sum("groups of old revisions/of the new one" in line for line in apart) == 2


def table(lines: list[str], which: str) -> list[str]:
    """The lines of one slice's table, without its heading."""
    start = next(i for i, line in enumerate(lines) if line.startswith(f"  {which}:"))
    return [line.strip() for line in lines[start + 2 : lines.index("", start)]]


def test_each_slice_tells_its_own() -> None:
    ds = chat(paced("prefill", 2), paced("decode", 1), slices=2)
    new = with_image(ds, "b")
    new["spec"]["slices"] = 3
    lines = [*text(planned(new, *objects(ds)))]
    first, made = table(lines, "slices 0, 1, each"), table(lines, "slice 2")
    assert [line for line in first if "LeaderWorkerSet" in line] == [
        "2     the edit            2/0 (2)  1/0 (1)  makes 2 LeaderWorkerSets",
        "7                         0/2 (2)  0/1 (1)  deletes 2 LeaderWorkerSets",
    ]
    assert made == [
        "1     the edit            0/2 (0)  0/1 (0)  makes 2 LeaderWorkerSets",
        "4     7 groups are ready  0/2 (2)  0/1 (1)",
    ]


def test_a_mark_stands_in_its_slice() -> None:
    roles = paced("prefill", 1, surge=0, unavailable=1), paced("decode", 2, surge=0, unavailable=1)
    ds = chat(*roles, slices=2)
    report = planned(with_image(ds, "b"), *objects(ds, ready={"1/decode": 1}))
    marked = {number: one for number, one in enumerate(report.steps, 1) if one.marks}
    assert {number: [one.of(i).marks for i in range(2)] for number, one in marked.items()} == {
        2: [(), ("bootstrap surge",)],
        4: [("bootstrap surge",), ()],
    }
    lines = [*text(report)]
    for index, number in ((0, "4"), (1, "2")):
        told = [line for line in table(lines, f"slice {index}") if "bootstrap surge" in line]
        assert [line.split()[0] for line in told] == [number]


def test_a_slice_that_an_edit_leaves_alone() -> None:
    ds = chat(paced("prefill", 2), paced("decode", 1))
    new = copy.deepcopy(ds)
    new["spec"]["slices"] = 3
    report = planned(new, *objects(ds))
    lines = [*text(report)]
    assert "  slice 0: nothing changes" in lines
    told = "prefill 2 ready of 2 wanted in slice 0; decode 1 ready of 1 wanted in slice 0; slices 1, 2 are new"
    assert f"  lowest: {told}" in lines
    assert {(low.ready, low.slice) for low in report.lowest.values()} == {(2, 0), (1, 0)}


def test_what_is_new_has_no_capacity_to_lose() -> None:
    """50 §9 r23."""
    ds = pair(2, 2)
    new = with_image(ds, "b")
    new["spec"]["roles"].append(paced("encode", 2))
    report = planned(new, *objects(ds))
    assert [str(part) for part in report.lowest] == ["prefill", "decode"]
    assert "  lowest: prefill 2 ready of 2 wanted; decode 2 ready of 2 wanted; encode has no group yet" in [
        *text(report)
    ]
    # One that is there and not ready is another matter.
    down = planned(with_image(ds, "b"), *objects(ds, ready={"0/decode": 0}))
    assert {str(part): low.ready for part, low in down.lowest.items()} == {"prefill": 2, "decode": 0}


def test_a_set_without_any_group_has_nothing_to_lose() -> None:
    """As one whose children were refused until now."""
    ds = pair()
    report = planned(with_image(ds, "b"), ds)
    assert (report.verdict, report.outcome, report.lowest) == (Verdict.ROLLS, Outcome.DONE, {})
    assert not any("lowest" in line for line in text(report))


def test_steps_that_only_give_groups_their_sub_roles() -> None:
    old = chat(paced("model", 3), paced("decode", 1))
    new = copy.deepcopy(old)
    new["spec"]["roles"][0]["subRoles"] = [sub("a", 2), sub("b", 1)]
    report = planned(new, *objects(old))
    assert [one.labelled for one in report.steps] == [0, 3]
    lines = [*text(report)]
    assert lines[0] == "ns/chat: asks for 4 groups, as many as now; no rollout"
    assert any(line.endswith("changes the sub-role label of 3 groups") for line in lines)
    assert as_data(report)["steps"][1]["labelled"] == 3


def test_json() -> None:
    ds = pair(2, 1)
    report = planned(with_image(ds, "b"), *objects(ds))
    data = as_data(report)
    assert (data["kind"], data["verdict"], data["outcome"]) == ("DisaggregatedSet", "rolls", "done")
    assert data["lowest"][0] == {"part": "prefill", "ready": 2, "wanted": 2, "slice": 0, "step": 0}
    assert data["steps"][1]["counts"] == [
        {"slice": 0, "part": "prefill", "old": 2, "new": 1, "ready": 2},
        {"slice": 0, "part": "decode", "old": 1, "new": 1, "ready": 1},
    ]
    assert data["peak"] == {"groups": 5, "pods": 5, "extraGroups": 2, "extraPods": 2}
    assert data["skew"]["window"] == 1.0
