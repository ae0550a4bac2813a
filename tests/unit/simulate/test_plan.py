"""Plans: what an edit is, where its steps end, and what is told of them."""

from __future__ import annotations

import copy
import json
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lwskit.api import names
from lwskit.groups.scene import Scene
from lwskit.runtime.objects import Obj
from lwskit.simulate import order
from lwskit.simulate.edit import LAST_APPLIED, Verdict, applied, differences
from lwskit.simulate.output import as_data, text
from lwskit.simulate.plan import plan
from lwskit.simulate.report import Outcome, Report, refused
from tests.unit.groups.small_cluster import LEADERS, NOW, WORKERS, SmallCluster, make_lws
from tests.unit.simulate.scenes import planned, small
from tests.unit.simulate.test_rollout import edited


def codes(report: Report) -> list[str]:
    return [n.code for n in report.notices]


def with_spec(lws: Obj, **fields: Any) -> Obj:
    new = copy.deepcopy(lws)
    new["spec"] |= fields
    return new


def with_template(lws: Obj, **fields: Any) -> Obj:
    return with_spec(lws, leaderWorkerTemplate={**lws["spec"]["leaderWorkerTemplate"], **fields})


def with_annotation(lws: Obj, key: str, value: str) -> Obj:
    return {**lws, "metadata": {**lws["metadata"], "annotations": {key: value}}}


def rolling(cluster: SmallCluster) -> SmallCluster:
    """In the middle of a rollout to image B: one group is made anew and not ready yet."""
    cluster.change(image="B")
    cluster.settle()
    return cluster


class TestVerdict:
    def test_nothing(self) -> None:
        cluster = small()
        report = planned(cluster, copy.deepcopy(cluster.lws))
        assert (report.verdict, report.steps, report.outcome) == (Verdict.NOTHING, (), Outcome.DONE)
        assert list(text(report)) == ["ns/x: nothing changes"]

    def test_metadata_only(self) -> None:
        cluster = small()
        report = planned(cluster, with_annotation(cluster.lws, "team", "a"))
        assert report.verdict is Verdict.METADATA
        assert report.changed == ("metadata.annotations[team]",)
        assert not report.steps

    @pytest.mark.parametrize("fields", [{"startupPolicy": names.STARTUP_LEADER_READY}])
    def test_at_the_next_restart(self, fields: Obj) -> None:
        cluster = small()
        assert planned(cluster, with_spec(cluster.lws, **fields)).verdict is Verdict.NEXT_RESTART
        limited = with_template(cluster.lws, maxGroupRestarts=3)
        assert planned(cluster, limited).verdict is Verdict.NEXT_RESTART

    def test_at_the_next_rollout(self) -> None:
        cluster = small()
        report = planned(cluster, edited(cluster.lws, maxUnavailable=2))
        assert report.verdict is Verdict.NEXT_ROLLOUT
        assert not any(step.down for step in report.steps)

    def test_scales(self) -> None:
        cluster = small(2)
        report = planned(cluster, edited(cluster.lws, replicas=4))
        assert (report.verdict, report.peak_groups, report.lowest) == (Verdict.SCALES, 4, 2)
        assert [step.up for step in report.steps if step.up] == [(2, 3)]
        fewer = planned(cluster, edited(cluster.lws, replicas=1))
        assert [step.removed for step in fewer.steps if step.removed] == [(1,)]

    def test_rolls(self) -> None:
        cluster = small(4, 3)
        report = planned(cluster, edited(cluster.lws, image="B"))
        assert (report.verdict, report.rolled, report.outcome) == (Verdict.ROLLS, 4, Outcome.DONE)
        assert (report.lowest, report.floor, report.peak_groups, report.peak_pods) == (3, 3, 4, 12)
        assert [step.down for step in report.steps if step.down] == [(3,), (2,), (1,), (0,)]
        assert not report.notices

    def test_surge_costs_groups_and_pods(self) -> None:
        cluster = small(4, 3, maxUnavailable=0, maxSurge=2)
        report = planned(cluster, edited(cluster.lws, image="B"))
        assert (report.lowest, report.peak_groups, report.peak_pods) == (4, 6, 18)
        assert any("2 groups and 6 pods more than now" in line for line in text(report))

    def test_creates(self) -> None:
        scene = Scene(name="x", namespace="ns", lws=None)
        new = make_lws(replicas=2)
        del new["metadata"]["uid"]
        report = plan(scene, new, "highest-first", LEADERS, WORKERS, NOW)
        assert (report.verdict, report.outcome, report.floor) == (Verdict.CREATES, Outcome.DONE, None)
        assert report.steps[0].up == (0, 1)

    def test_back_to_a_template_that_some_groups_still_have(self) -> None:
        cluster = small(3)
        cluster.change(image="B")
        cluster.settle()
        report = planned(cluster, edited(cluster.lws, image="A"))
        assert (report.verdict, report.rolled) == (Verdict.ROLLS, 1)
        assert {o for step in report.steps for o in step.down} == {2}

    def test_surge_is_not_counted_among_the_groups_that_are_made_anew(self) -> None:
        """A newer template in the middle of a rollout: the surge group is made anew, too."""
        cluster = small(4, maxSurge=1)
        cluster.change(image="B")
        cluster.settle()
        assert 4 in cluster.leaders
        report = planned(cluster, edited(cluster.lws, image="C"))
        assert {o for step in report.steps for o in step.up} == {0, 1, 2, 3, 4}
        assert (report.rolled, next(text(report))) == (4, "ns/x: makes 4 of 4 groups anew")

    def test_a_group_that_is_gone_already_is_made_anew(self) -> None:
        cluster = small(4, partition=4)
        leader = copy.deepcopy(cluster.leaders[3])
        leader["metadata"]["deletionTimestamp"] = "2026-10-20T10:00:00Z"
        cluster._put_leader(3, leader)
        report = planned(cluster, edited(cluster.lws, image="B", partition=3))
        assert {o for step in report.steps for o in step.up} == {3}
        assert (report.verdict, report.rolled) == (Verdict.ROLLS, 1)

    @pytest.mark.parametrize(
        ("fields", "verdict", "said"),
        [
            ({"maxGroupRestarts": 3}, Verdict.NEXT_RESTART, "applies when a group is next made or restarted; "),
            ({}, Verdict.NOTHING, "nothing changes; "),
        ],
    )
    def test_what_goes_on_already_is_not_the_edits(self, fields: Obj, verdict: Verdict, said: str) -> None:
        cluster = rolling(small(4))
        report = planned(cluster, with_template(cluster.lws, **fields))
        assert (report.verdict, report.rolled) == (verdict, 3)
        assert next(text(report)) == f"ns/x: {said}what goes on already:"

    def test_metadata_in_the_middle_of_a_rollout(self) -> None:
        cluster = rolling(small(4))
        report = planned(cluster, with_annotation(cluster.lws, "team", "a"))
        assert next(text(report)) == "ns/x: metadata only; what goes on already:"
        scaled = planned(cluster, edited(cluster.lws, replicas=6))
        assert scaled.verdict is Verdict.SCALES

    def test_what_the_edit_makes_anew_beside_what_goes_on(self) -> None:
        """The annotation reaches the leaders' template; a partition that is lowered reaches further groups."""
        cluster = rolling(small(4))
        report = planned(cluster, with_annotation(cluster.lws, names.EXCLUSIVE_TOPOLOGY_ANNOTATION, "rack"))
        assert report.verdict is Verdict.ROLLS
        held = rolling(small(4, partition=2))
        lowered = planned(held, edited(held.lws, partition=1))
        assert (lowered.verdict, lowered.rolled) == (Verdict.ROLLS, 2)
        faster = planned(held, edited(held.lws, maxUnavailable=2))
        assert (faster.verdict, faster.rolled) == (Verdict.NEXT_ROLLOUT, 1)

    def test_refused(self) -> None:
        report = refused("ns", "x", ["spec.size: no"])
        assert not report.good
        assert list(text(report)) == ["ns/x: the API server refuses it", "  refused: spec.size: no [refused]"]


class TestEnd:
    def test_the_partition_holds(self) -> None:
        cluster = small(4, partition=2)
        report = planned(cluster, edited(cluster.lws, image="B"))
        assert (report.outcome, report.good, report.rolled) == (Outcome.HELD, True, 2)
        assert codes(report) == ["held-partition"]
        assert report.notices[0].message == "the partition 2 keeps groups 0 and 1 on the revision that they have"
        one = small(4, partition=1)
        report = planned(one, edited(one.lws, image="B"))
        assert report.notices[0].message == "the partition 1 keeps group 0 on the revision that it has"

    def test_the_hold_of_the_formula(self) -> None:
        """20 §6.5: a group that is down below the update, one that is ready above it."""
        cluster = small(3)
        cluster.make_ready(0, ready=False)
        report = planned(cluster, edited(cluster.lws, image="B"))
        assert (report.outcome, codes(report)) == (Outcome.STALLED, ["held-formula"])
        notice = report.notices[0]
        assert "held by group 0" in notice.message
        assert "kubectl -n ns delete pod x-2" in " ".join(notice.hints)

    def test_deleting_the_group_that_is_named_lets_the_rollout_go_on(self) -> None:
        cluster = small(3)
        cluster.make_ready(0, ready=False)
        cluster.change(image="B")
        cluster.settle()
        assert cluster.target == (3, 3)
        cluster.remove(2)
        cluster.settle()
        assert cluster.target == (3, 2)

    def test_a_percentage_that_comes_to_nothing(self) -> None:
        cluster = small(4, maxUnavailable="10%")
        report = planned(cluster, edited(cluster.lws, image="B"))
        assert (report.outcome, codes(report)) == (Outcome.STALLED, ["held-budget"])

    def test_claim_templates_cannot_be_changed(self) -> None:
        cluster = small(2)
        claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
        report = planned(cluster, with_template(cluster.lws, volumeClaimTemplates=[claim]))
        assert (report.outcome, codes(report), report.rolled) == (Outcome.STALLED, ["claims-immutable"], 0)

    def test_nothing_becomes_ready(self) -> None:
        cluster = small(3)
        report = planned(cluster, edited(cluster.lws, image="B"), order.NEVER)
        assert (report.outcome, codes(report)) == (Outcome.STALLED, ["held-updating"])

    def test_nothing_that_is_created_becomes_ready(self) -> None:
        scene = Scene(name="x", namespace="ns", lws=None)
        report = plan(scene, make_lws(replicas=2), order.NEVER, LEADERS, WORKERS, NOW)
        assert codes(report) == ["held-updating"]

    def test_a_group_that_is_down_without_a_rollout(self) -> None:
        cluster = small(3, maxUnavailable=2)
        cluster.make_ready(0, 1, ready=False)
        report = planned(cluster, copy.deepcopy(cluster.lws), order.NEVER)
        assert (report.outcome, codes(report)) == (Outcome.STALLED, ["not-ready"])
        said = "groups 0 and 1 are not ready, and nothing in this edit makes them anew"
        assert report.notices[0].message == said
        assert [*text(report)] == [
            "ns/x: nothing changes",
            "  end: it is stuck as it is",
            f"  note: {said} [not-ready]",
        ]

    def test_an_order_that_names_a_group_that_does_not_exist(self) -> None:
        cluster = small(3, maxSurge=1)
        report = planned(cluster, edited(cluster.lws, image="B"), "9,3,7,0")
        assert (report.outcome, codes(report)) == (Outcome.DONE, ["order-no-such-group"])
        assert report.notices[0].message == "groups 7 and 9 of the order exist at no step"

    def test_a_group_that_stays_down(self) -> None:
        cluster = small(3, partition=1)
        cluster.make_ready(0, ready=False)
        report = planned(cluster, edited(cluster.lws, image="B", maxUnavailable=3))
        assert report.outcome is Outcome.STALLED
        assert "not-ready" in codes(report)

    def test_a_group_without_restarts_left_is_let_go_when_it_is_updated(self) -> None:
        cluster = small(2)
        leader = copy.deepcopy(cluster.leaders[1])
        leader["metadata"]["annotations"][names.GROUP_RESTART_BUDGET_EXHAUSTED_ANNOTATION] = "true"
        leader["metadata"]["deletionTimestamp"] = "2026-10-20T10:00:00Z"
        cluster._put_leader(1, leader)
        cluster.make_ready(1, ready=False)
        report = planned(cluster, edited(cluster.lws, image="B"))
        assert report.outcome is Outcome.DONE
        kept = planned(cluster, edited(cluster.lws, maxUnavailable=2))
        assert (kept.outcome, codes(kept)) == (Outcome.STALLED, ["not-ready"])
        assert not any(step.up or step.down for step in kept.steps)

    def test_settings_that_cannot_be_read(self) -> None:
        cluster = small(2)
        report = planned(cluster, edited(cluster.lws, image="B", maxUnavailable="some"))
        assert (report.outcome, codes(report)) == (Outcome.STALLED, ["no-decision"])

    def test_what_keeps_the_manager_away(self) -> None:
        cluster = small(2)
        new = edited(cluster.lws, image="B")
        deleting = copy.deepcopy(cluster.lws)
        deleting["metadata"]["deletionTimestamp"] = "2026-10-20T10:00:00Z"
        cluster.lws = deleting
        assert codes(planned(cluster, new)) == ["set-deleting"]
        other = small(2)
        assert other.workload is not None
        other.workload = copy.deepcopy(other.workload)
        other.workload["metadata"]["ownerReferences"][0]["uid"] = "somebody-else"
        assert codes(planned(other, new)) == ["foreign-workload"]

    def test_a_leader_workload_that_is_being_deleted(self) -> None:
        cluster = small(2)
        assert cluster.workload is not None
        cluster.workload = copy.deepcopy(cluster.workload)
        cluster.workload["metadata"]["deletionTimestamp"] = "2026-10-20T10:00:00Z"
        report = planned(cluster, copy.deepcopy(cluster.lws))
        assert (codes(report), report.outcome) == (["workload-deleting"], Outcome.DONE)


class TestFloor:
    """The documented cases in which fewer groups are ready than replicas − maxUnavailable (docs/rollouts.md)."""

    def test_groups_that_are_down_to_begin_with(self) -> None:
        cluster = small(1, maxUnavailable=0, maxSurge=1)
        cluster.make_ready(0, ready=False)
        report = planned(cluster, edited(cluster.lws, image="B"))
        assert (report.lowest, report.floor) == (0, 1)
        assert "floor-unready-at-start" in codes(report)

    def test_the_size_goes_from_one_to_more(self) -> None:
        cluster = small(2)
        report = planned(cluster, edited(cluster.lws, size=2))
        assert (report.lowest, report.floor) == (0, 1)
        assert codes(report) == ["floor-size-from-one"]

    def test_what_is_copied_into_the_template_is_no_revision(self) -> None:
        cluster = small(2, maxSurge=1)
        report = planned(cluster, with_annotation(cluster.lws, names.EXCLUSIVE_TOPOLOGY_ANNOTATION, "rack"))
        assert (report.verdict, report.lowest, report.floor) == (Verdict.ROLLS, 0, 1)
        assert codes(report) == ["floor-not-a-revision"]


settings_of_sets = st.tuples(
    st.integers(1, 5), st.integers(0, 3), st.integers(0, 3), st.integers(0, 2), st.sampled_from([1, 2])
)
edits = st.fixed_dictionaries(
    {},
    optional={
        "image": st.sampled_from("ABC"),
        "replicas": st.integers(0, 6),
        "partition": st.integers(0, 3),
        "maxSurge": st.integers(0, 3),
    },
)


@settings(max_examples=60, deadline=None)
@given(settings_of_sets, edits, st.integers(0, 3), edits, st.sets(st.integers(0, 4)), st.sampled_from(order.ORDERS))
def test_every_plan_ends_and_says_why(
    wanted: tuple[int, int, int, int, int], first: Obj, progress: int, second: Obj, down: set[int], ready_order: str
) -> None:
    replicas, unavailable, surge, partition, size = wanted
    cluster = small(
        replicas, size, maxUnavailable=unavailable or (0 if surge else 1), maxSurge=surge, partition=partition
    )
    cluster.lws = {**edited(cluster.lws, **first)}
    cluster.settle()
    for _ in range(progress):
        unready = [i for i, p in sorted(cluster.leaders.items()) if p["status"]["phase"] != "Running"]
        if unready:
            cluster.make_ready(unready[-1])
            cluster.settle()
    cluster.make_ready(*(i for i in down if i in cluster.leaders), ready=False)
    report = planned(cluster, edited(cluster.lws, **second), ready_order)
    assert report.good == (report.outcome is not Outcome.STALLED)
    assert report.good or report.notices
    assert "floor-unexpected" not in codes(report)
    last = report.steps[-1] if report.steps else None
    if last is not None and report.outcome is Outcome.DONE:
        assert last.ready == last.updated == last.total == report.replicas
    json.dumps(as_data(report))
    assert all("\n" not in line for line in text(report))


class TestApply:
    live: ClassVar[Obj] = {
        "metadata": {"name": "x", "uid": "1", "resourceVersion": "7", "annotations": {"a": "1"}},
        "spec": {"replicas": 3, "leaderWorkerTemplate": {"size": 2, "workerTemplate": {"spec": {"x": [1, 2]}}}},
        "status": {"replicas": 3},
    }

    def test_what_the_manifest_does_not_name_stays(self) -> None:
        new = applied(self.live, {"metadata": {"name": "x"}, "spec": {"leaderWorkerTemplate": {"size": 3}}})
        assert new["spec"]["replicas"] == 3
        assert new["spec"]["leaderWorkerTemplate"] == {"size": 3, "workerTemplate": {"spec": {"x": [1, 2]}}}
        assert new["metadata"] == {"name": "x", "uid": "1", "resourceVersion": "7", "annotations": {"a": "1"}}

    def test_lists_are_replaced(self) -> None:
        wanted = {"leaderWorkerTemplate": {"workerTemplate": {"spec": {"x": [3]}}}}
        new = applied(self.live, {"metadata": {"name": "x"}, "spec": wanted})
        assert new["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["x"] == [3]

    def test_what_the_last_apply_had_goes(self) -> None:
        before = {LAST_APPLIED: json.dumps({"spec": {"replicas": 3}, "metadata": {"annotations": {"a": "1"}}})}
        live = {**self.live, "metadata": {**self.live["metadata"], "annotations": {"a": "1", "b": "2", **before}}}
        new = applied(live, {"metadata": {"name": "x"}, "spec": {"leaderWorkerTemplate": {"size": 2}}})
        assert "replicas" not in new["spec"]
        assert applied(live, {"metadata": {"name": "x", "annotations": {}}, "spec": {}})["metadata"]["annotations"] == {
            "b": "2",
            **before,
        }

    @pytest.mark.parametrize("written", [{}, {"annotations": None}, {"annotations": {}}])
    def test_annotations_that_somebody_else_wrote_stay(self, written: Obj) -> None:
        """`kubectl apply` records annotations, if empty ones, of every manifest."""
        record = {LAST_APPLIED: json.dumps({"metadata": {"name": "x", "annotations": {}}, "spec": {"replicas": 3}})}
        live = {**self.live, "metadata": {**self.live["metadata"], "annotations": {"counts": "1", **record}}}
        new = applied(live, {"metadata": {"name": "x", **written}, "spec": {"replicas": 3}})
        assert differences(live, new) == []
        assert new["metadata"]["annotations"] == live["metadata"]["annotations"]
        bare = {**self.live, "metadata": {"name": "x"}}
        assert applied(bare, {"metadata": {"name": "x", **written}, "spec": {}})["metadata"] == {"name": "x"}

    def test_a_new_set_is_the_manifest(self) -> None:
        assert applied(None, {"metadata": {"name": "x"}, "spec": {}, "status": {}}) == {
            "metadata": {"name": "x"},
            "spec": {},
        }

    def test_differences_are_the_innermost_fields(self) -> None:
        new = copy.deepcopy(self.live)
        new["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["x"] = [1, 3]
        new["metadata"]["labels"] = {"l": "1"}
        assert differences(self.live, new) == [
            "spec.leaderWorkerTemplate.workerTemplate.spec.x[1]",
            "metadata.labels[l]",
        ]


def test_what_an_order_says_of_groups() -> None:
    assert order.told("never") == "no group becomes ready"
    assert order.told("5,2").startswith("groups become ready in the order 5, 2, then the highest first; so do those")
    assert [order.named(text) for text in ("never", "5,2", "3")] == [(), (5, 2), (3,)]


def test_orders() -> None:
    assert list(order.parse("highest-first")([0, 2, 5])) == [5]
    assert list(order.parse("lowest-first")([0, 2, 5])) == [0]
    assert list(order.parse("together")([0, 2])) == [0, 2]
    assert list(order.parse("never")([0, 2])) == []
    listed = order.parse("5,4,2")
    assert [list(listed([0, 2, 5])) for _ in range(3)] == [[5], [2], [5]]
    with pytest.raises(order.OrderError, match="'soon' is no order; use highest-first"):
        order.parse("soon")
