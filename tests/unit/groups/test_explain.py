"""Explanations of sets whose objects say what a cluster seldom shows for long."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from lwskit.api import names
from lwskit.groups.explain import Explanation, State, explain
from lwskit.groups.scene import Happening, Scene
from lwskit.runtime.objects import Obj
from tests.unit.groups.small_cluster import LEADERS, NOW, WORKERS, SmallCluster
from tests.unit.simulate.scenes import scene_of, small
from tests.unit.simulate.test_rollout import edited


def explained(scene: Scene) -> Explanation:
    return explain(scene, LEADERS, WORKERS, NOW)


def with_workload(scene: Scene, *, status: Obj | None = None, **meta: Any) -> Scene:
    workload = copy.deepcopy(scene.workload)
    assert workload is not None
    workload["metadata"] |= meta
    workload["status"] = {**workload["status"], **(status or {})}
    return replace(scene, workload=workload)


def facts(found: Explanation) -> tuple[State, str]:
    return found.state, found.cause


def failure(note: str, kind: str = names.KIND, name: str = "x") -> Happening:
    return Happening(kind, name, "", "Warning", "FailedUpdate", note, "2026-10-20T10:00:00Z")


def rolled(cluster: SmallCluster) -> SmallCluster:
    cluster.change(image="B")
    cluster.settle()
    return cluster


def test_nobody_has_seen_the_new_generation() -> None:
    cluster = small(2)
    cluster.change(image="B")
    found = explained(scene_of(cluster))
    assert facts(found) == (State.BLOCKED, "no-manager")
    assert "is at generation 2, of which the manager has acted on 1" in found.paragraph


def test_the_statefulset_is_gone() -> None:
    found = explained(replace(scene_of(small(1)), workload=None))
    assert facts(found) == (State.BLOCKED, "no-manager")
    assert "ns/x has no StatefulSet x" in found.paragraph


def test_the_statefulset_is_being_deleted() -> None:
    scene = with_workload(scene_of(small(1)), deletionTimestamp="2026-10-20T10:00:00Z")
    assert facts(explained(scene)) == (State.PROGRESSING, "workload-deleting")


def test_the_statefulset_belongs_to_an_earlier_set_or_to_nobody() -> None:
    scene = scene_of(small(1))
    assert scene.workload is not None
    owner = scene.workload["metadata"]["ownerReferences"][0]
    earlier = explained(with_workload(scene, ownerReferences=[{**owner, "uid": "old"}]))
    assert facts(earlier) == (State.BLOCKED, "foreign-workload")
    assert "belongs to an earlier set of this name" in earlier.paragraph
    assert "belongs to nobody" in explained(with_workload(scene, ownerReferences=[])).paragraph


def test_the_statefulset_controller_does_not_run() -> None:
    scene = with_workload(scene_of(small(1)), generation=3, status={"observedGeneration": 2})
    found = explained(scene)
    assert facts(found) == (State.BLOCKED, "no-statefulset-controller")
    assert "is at generation 3, of which its controller has seen 2" in found.paragraph


def test_the_manager_has_not_written_what_it_would() -> None:
    scene = scene_of(small(3))
    assert scene.workload is not None
    workload = copy.deepcopy(scene.workload)
    workload["spec"]["replicas"] = 2
    found = explained(replace(scene, workload=workload))
    assert facts(found) == (State.PROGRESSING, "not-written-yet")
    assert "would now set partition 0 and replicas 3 on StatefulSet x, which has 0 and 2" in found.paragraph
    refused = explained(replace(scene, workload=workload, happenings=(failure("quota"),)))
    assert facts(refused) == (State.BLOCKED, "not-written")
    assert "It could not: quota." in refused.paragraph


def test_settings_that_cannot_be_read() -> None:
    scene = scene_of(small(2))
    assert scene.lws is not None
    found = explained(replace(scene, lws=edited(scene.lws, maxUnavailable="some")))
    assert facts(found) == (State.BLOCKED, "no-decision")
    assert "maxUnavailable is 'some'" in found.paragraph


def test_restart_counters_that_cannot_be_read() -> None:
    scene = scene_of(small(2))
    assert scene.lws is not None
    notes = {names.GROUP_RESTART_COUNTS_ANNOTATION: "["}
    lws = {**scene.lws, "metadata": {**scene.lws["metadata"], "annotations": notes}}
    assert facts(explained(replace(scene, lws=lws))) == (State.BLOCKED, "no-decision")


def test_no_budget() -> None:
    found = explained(scene_of(rolled(small(4, maxUnavailable="10%"))))
    assert facts(found) == (State.BLOCKED, "no-budget")
    assert "maxUnavailable comes to 0 of 4 groups" in found.paragraph


def test_the_statefulset_takes_no_more_leaders_down() -> None:
    cluster = small(3)
    cluster.make_ready(0, ready=False)
    cluster.change(image="B")
    cluster.reconcile()
    workload = copy.deepcopy(cluster.workload)
    assert workload is not None
    workload["spec"]["updateStrategy"]["rollingUpdate"]["partition"] = 2
    cluster.workload = workload
    cluster.reconcile()
    found = explained(scene_of(cluster))
    assert (found.cause, found.group, found.state) == ("replacing", 0, State.BLOCKED)
    assert "held by group 0, which the update has not reached" in found.paragraph
    assert found.advice[-1].startswith("`kubectl -n ns delete pod x-2`")
    assert "group 2 is next and still of an older revision" in found.paragraph.lower()


def test_so_also_where_a_group_does_not_count_as_ready_for_its_size() -> None:
    """Its leader is ready, and of the size before it has no workers: the StatefulSet looks at leaders."""
    cluster = small(2)
    old = {**cluster.leaders}
    cluster.make_ready(0, ready=False)
    cluster.change(size=2)
    cluster.settle()
    # The StatefulSet controller has not replaced the leader that is ready.
    cluster.leaders[1] = old[1]
    cluster.workers.pop(1)
    found = explained(scene_of(cluster))
    assert (found.state, found.cause, found.group) == (State.BLOCKED, "replacing", 0)
    assert "held by group 0, which the update has not reached" in found.paragraph
    assert found.advice[-1].startswith("`kubectl -n ns delete pod x-1`")


def test_a_missing_leader_and_why() -> None:
    cluster = small(2)
    cluster.remove(1)
    assert facts(explained(scene_of(cluster))) == (State.PROGRESSING, "no-leader")
    note = "create Pod x-1 in StatefulSet x failed error: quota."
    found = explained(replace(scene_of(cluster), happenings=(failure(note, "StatefulSet"),)))
    assert (found.state, found.pod) == (State.BLOCKED, "x-1")
    assert found.paragraph.endswith("failed error: quota.")


def test_a_worker_that_is_missing() -> None:
    found = explained(scene_of(_worker_down(small(1, size=2))))
    assert (found.cause, found.pod) == ("no-worker", "x-0-1")


def _worker_down(cluster: SmallCluster) -> SmallCluster:
    workers = copy.deepcopy(cluster.workers[0])
    workers["status"] = {"replicas": 0, "availableReplicas": 0}
    cluster._put_workers(0, workers)
    cluster.settle()
    return cluster


def leader_with(cluster: SmallCluster, group: int, **notes: str) -> None:
    """Put annotations on a group's leader."""
    pod = copy.deepcopy(cluster.leaders[group])
    known = {"pending": names.GROUP_RECREATE_PENDING_ANNOTATION, "exhausted": EXHAUSTED}
    pod["metadata"].setdefault("annotations", {}).update({known[k]: v for k, v in notes.items()})
    pod["metadata"]["creationTimestamp"] = "2026-10-20T09:59:50Z"
    cluster._put_leader(group, pod)


EXHAUSTED = names.GROUP_RESTART_BUDGET_EXHAUSTED_ANNOTATION


def put_off(**rolling: Any) -> SmallCluster:
    cluster = small(3, size=2, **rolling)
    cluster.lws["spec"]["leaderWorkerTemplate"]["restartBackoff"] = {"baseSeconds": 30, "capSeconds": 30}
    leader_with(cluster, 1, pending="x-1-1")
    return cluster


def test_a_ready_group_that_will_be_recreated_is_not_well() -> None:
    found = explained(scene_of(put_off()))
    assert facts(found) == (State.PROGRESSING, "back-off")
    assert (found.group, found.pod) == (1, "x-1-1")
    assert "3 of 3 groups are ready" in found.paragraph
    assert "Group 1 is ready and will be recreated all the same. Pod x-1-1 failed, and" in found.paragraph
    assert "for about 20 s more (restartBackoff)" in found.paragraph
    assert "All is well" not in found.paragraph


def test_so_also_where_the_partition_holds() -> None:
    cluster = small(3, size=2, partition=2)
    cluster.change(image="B")
    cluster.settle()
    cluster.make_ready(2)
    cluster.settle()
    cluster.lws["spec"]["leaderWorkerTemplate"]["restartBackoff"] = {"baseSeconds": 30, "capSeconds": 30}
    leader_with(cluster, 1, pending="x-1-1")
    found = explained(scene_of(cluster))
    assert facts(found) == (State.HELD, "partition")
    assert "Group 1 is ready and will be recreated all the same." in found.paragraph


def test_a_budget_that_the_newest_template_used_up_is_mended_by_a_newer_one() -> None:
    cluster = small(3)
    leader_with(cluster, 2, exhausted="true")
    found = explained(scene_of(cluster))
    assert facts(found) == (State.BLOCKED, "budget-exhausted")
    assert "correct it in the set, and the rollout replaces the group" in found.advice[0]
    assert "of the same template, with a fresh budget" in found.advice[1]


def test_one_that_an_older_template_used_up_is_only_recovered() -> None:
    cluster = small(3, partition=2)
    cluster.change(image="B")
    cluster.settle()
    cluster.make_ready(2)
    cluster.settle()
    leader_with(cluster, 0, exhausted="true")
    found = explained(scene_of(cluster))
    assert "used up its restarts" in found.paragraph
    assert "correct it in the set" not in found.paragraph


def test_a_rollout_that_goes_on_says_so() -> None:
    cluster = small(3)
    cluster.change(image="B")
    cluster.settle()
    pod = copy.deepcopy(cluster.leaders[2])
    pod["spec"]["nodeName"] = "n"
    cluster._put_leader(2, {**pod, "status": {"phase": "Running", "containerStatuses": [{"name": "c"}]}})
    found = explained(scene_of(cluster))
    assert facts(found) == (State.PROGRESSING, "not-ready")
    assert "The rollout waits for group 2, which is on its way." in found.paragraph
    assert found.paragraph.endswith("It goes on by itself once group 2 is ready.")
    assert "holds" not in found.paragraph


def of_two_revisions() -> SmallCluster:
    """Groups 0 and 1 below a partition are of a revision that somebody has deleted."""
    cluster = small(3, 2, partition=2)
    old = cluster.revisions[0]
    rolled(cluster)
    cluster.make_ready(2)
    cluster.settle()
    cluster.revisions.remove(old)
    return cluster


def test_a_revision_that_groups_are_of_is_gone() -> None:
    cluster = of_two_revisions()
    found = explained(scene_of(cluster))
    assert facts(found) == (State.HELD, "partition")
    told = "which groups 0 and 1 are of, has been deleted: if one of them is recreated before it is updated, it gets no"
    assert told in found.paragraph
    assert "has been deleted" not in explained(scene_of(small(3, 2, partition=2))).paragraph


def test_a_group_cannot_be_made_again_without_its_revision() -> None:
    """So it is said without any event."""
    cluster = of_two_revisions()
    del cluster.workers[0]
    found = explained(scene_of(cluster))
    assert (found.state, found.group) == (State.BLOCKED, 0)
    assert "x-0 is of, has been deleted, so its workers cannot be made before the group is updated" in found.paragraph


def test_workers_that_somebody_has_scaled() -> None:
    cluster = small(2, 3)
    workers = copy.deepcopy(cluster.workers[1])
    workers["spec"]["replicas"] = 0
    workers["status"] |= {"replicas": 0, "availableReplicas": 0}
    cluster.workers[1] = workers
    found = explained(scene_of(cluster))
    assert (found.state, found.cause, found.group) == (State.BLOCKED, "workers-scaled", 1)
    assert "StatefulSet x-1 was scaled to 0, where 2 workers are the whole group." in found.paragraph
    assert "`kubectl -n ns scale statefulset x-1 --replicas=2` makes the group whole again." in found.paragraph
