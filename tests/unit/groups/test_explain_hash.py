"""Why a set in Hash mode is where it is, from the objects alone."""

from __future__ import annotations

from lwskit.api import names
from lwskit.groups.explain import Explanation, State, explain
from lwskit.groups.scene import Scene
from lwskit.runtime.objects import Obj
from tests.unit.groups.hash_objects import HASHED, NOW, WORKERS, deployment, hash_lws, key, leader
from tests.unit.groups.test_hashed import revision_of
from tests.unit.groups.test_victims import on, replica_set


def explained(*pods: Obj, lws: Obj | None = None, workload: Obj | None = None) -> Explanation:
    """The explanation of a set of two groups without workers."""
    lws = lws or hash_lws(replicas=2, size=1)
    lws["status"] = {"observedGeneration": lws["metadata"].get("generation", 0), "replicas": 2}
    revision = revision_of(lws)
    for pod in pods:
        pod["metadata"]["labels"][names.REVISION_LABEL] = revision["metadata"]["labels"][names.REVISION_LABEL]
    workload = workload or deployment(lws, pods[0]["metadata"]["labels"][names.REVISION_LABEL])
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
