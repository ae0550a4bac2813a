"""Why a set in Hash mode is where it is, from the objects alone."""

from __future__ import annotations

from lwskit.api import names
from lwskit.groups.explain import Explanation, State, explain
from lwskit.groups.scene import Scene
from lwskit.runtime.objects import Obj, controller_of, is_deleting, is_true
from tests.unit.groups.hash_objects import HASHED, NOW, WORKERS, deployment, hash_lws, key, leader, worker
from tests.unit.groups.test_hashed import revision_of
from tests.unit.groups.test_victims import on, replica_set


def explained(*pods: Obj, lws: Obj | None = None, workload: Obj | None = None) -> Explanation:
    """The explanation of a set of two groups without workers."""
    lws = lws or hash_lws(replicas=2, size=1)
    lws["status"] = {"observedGeneration": lws["metadata"].get("generation", 0), "replicas": 2}
    revision = revision_of(lws)
    for pod in pods:
        pod["metadata"]["labels"][names.REVISION_LABEL] = revision["metadata"]["labels"][names.REVISION_LABEL]
    ready = sum(is_true(p, "Ready") for p in pods if controller_of(p) and not is_deleting(p))
    newest = pods[0]["metadata"]["labels"][names.REVISION_LABEL]
    made = deployment(lws, newest, replicas=2, readyReplicas=ready, updatedReplicas=2, availableReplicas=ready)
    workload = workload or made
    scene = Scene(
        name="x",
        namespace="ns",
        lws=lws,
        workload=workload,
        between=(replica_set("rs", 2),),
        pods=pods,
        revisions=(revision,),
    )
    return explain(scene, HASHED, WORKERS, NOW)


def test_a_group_that_is_on_its_way() -> None:
    """It passes by itself, which is said of it as in Ordinal mode."""
    found = explained(on("n", leader(1, size=1)), on("n", leader(2, size=1, ready=False)))
    assert (found.state, found.cause, found.group) == (State.PROGRESSING, "not-ready", key(2))
    assert found.sentences[1:] == (
        "The set waits for group 00000002…, which is on its way.",
        "Pod x-rs-2 runs, but it is not ready.",
        "It goes on by itself once group 00000002… is ready.",
    )
    assert found.scale_down == "scaling 2 → 1 would remove x-rs-2: not ready"


def test_a_group_without_a_restart_left() -> None:
    """On the newest template, that is what may be at fault; on an older one only the mark helps."""
    found = explained(on("n", leader(1, size=1)), on("n", leader(2, size=1, exhausted=True)))
    assert (found.state, found.cause, found.pod) == (State.BLOCKED, "budget-exhausted", "x-rs-2")
    assert found.sentences[1] == "Group 00000002… holds the set."
    assert [text.split(",")[0] for text in found.advice] == [
        "if its template",
        "if something else was: `kubectl -n ns annotate pod x-rs-2 leaderworkerset.sigs.k8s.io/recover=true` "
        "makes the group anew of the same template",
    ]
    lws = hash_lws(replicas=2, size=1)
    older = explained(
        on("n", leader(1, size=1)), on("n", leader(2, size=1, exhausted=True)), workload=deployment(lws, "newer")
    )
    assert [text.split(":")[0] for text in older.advice] == ["when the cause is mended"]


def test_a_deployment_of_an_earlier_set() -> None:
    lws = hash_lws(replicas=2, size=1)
    workload = deployment({**lws, "metadata": {**lws["metadata"], "uid": "earlier"}})
    found = explained(on("n", leader(1, size=1)), lws=lws, workload=workload)
    assert (found.state, found.cause, found.next_to_go) == (State.BLOCKED, "foreign-workload", ())
    assert found.sentences == ("Deployment x belongs to an earlier set of this name, and is still being removed.",)


def test_a_pod_whose_containers_do_not_run_has_no_logs() -> None:
    """The embedded cluster's containers do not run: no command is given that cannot show anything."""
    ended = {"terminated": {"exitCode": 1}}
    for runtime, shown in (("containerd://1", "logs"), ("embedded://1", "describe")):
        pod = on("n", leader(2, size=1, ready=False))
        status = {"name": "c", "ready": False, "restartCount": 0, "state": ended, "containerID": runtime}
        pod["status"]["containerStatuses"] = [status]
        found = explained(on("n", leader(1, size=1)), pod)
        assert (found.state, found.cause) == (State.BLOCKED, "container-ended")
        assert f"`kubectl -n ns {shown} " in found.advice[0]


def held(pod: Obj) -> Obj:
    """A pod that is being deleted and cannot go."""
    pod["metadata"] |= {"deletionTimestamp": "2026-10-20T09:59:00Z", "finalizers": ["example.com/wait"]}
    return pod


KEPT = "is being deleted (deletionTimestamp 2026-10-20T09:59:00Z) and kept by finalizer example.com/wait"


def test_a_pod_in_the_way_is_told_with_its_own_trouble() -> None:
    """Of the pods that a leader waits for, the first one need not be the one that cannot go."""
    going = [worker(3), held(on("n", leader(3)))]
    found = explained(on("n", leader(1, size=1)), leader(2, size=1, gated=True, ready=False, phase="Pending"), *going)
    assert (found.state, found.cause, found.pod) == (State.BLOCKED, "group-replacement", "x-rs-2")
    assert found.paragraph.count("kept by finalizer") == 1
    assert f"still there: x-00000003-1, x-rs-3; x-rs-3 {KEPT}." in found.paragraph


def test_groups_that_are_all_there_and_others_beside_them() -> None:
    """A set is well while a group of it that was let go, or scaled away, still has its devices; but it is told."""
    groups = [on("n", leader(1, size=1)), on("n", leader(2, size=1))]
    counts = "ns/x: 2 of 2 groups are ready; 2 are of the newest revision."
    assert explained(*groups).sentences == (f"{counts} All is well.",)
    going = explained(*groups, worker(3), held(on("n", leader(3))))
    assert (going.state, going.cause) == (State.OK, "ok")
    told = f"Still there of groups that are no longer wanted: x-00000003-1, x-rs-3; x-rs-3 {KEPT}."
    assert going.sentences == (counts, told)
    let_go = [leader(i, size=1, maker="") for i in (3, 4, 5, 6)]
    found = explained(*groups, *let_go)
    assert (found.state, found.sentences[0]) == (State.OK, counts)
    assert [s.split(":")[0] for s in found.sentences[1:]] == [
        *(f"Leader pod x-rs-{i} is controlled by no ReplicaSet" for i in (3, 4, 5)),
        "So it is with 1 more.",
    ]
    assert len(explained(*groups, let_go[0]).sentences) == 2
    broken = explained(*groups, leader(7, size=1, maker="", ready=False))
    assert (broken.state, len(broken.sentences)) == (State.OK, 2)


def test_the_ready_ones_are_not_said_to_be_of_the_newest_revision() -> None:
    found = explained(on("n", leader(1, size=1)), on("n", leader(2, size=1, ready=False)))
    assert found.sentences[0] == "ns/x: 1 of 2 groups is ready; 2 are of the newest revision."
