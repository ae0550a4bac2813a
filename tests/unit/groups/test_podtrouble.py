"""Why a pod is not ready, from its status and its events."""

from __future__ import annotations

from typing import Any

import pytest

from lwskit.groups import podtrouble
from lwskit.groups.scene import Happening
from lwskit.runtime.objects import Obj


def pod(
    phase: str = "Running", *, node: str = "n", spec: Obj | None = None, meta: Obj | None = None, **more: Any
) -> Obj:
    return {
        "metadata": {"name": "x-0", "namespace": "ns", "uid": "u", **(meta or {})},
        "spec": {**({"nodeName": node} if node else {}), **(spec or {})},
        "status": {"phase": phase, **more},
    }


def container(ready: bool = False, *, last: Obj | None = None, restarts: int = 0, **state: Obj) -> Obj:
    found: Obj = {"name": "c", "ready": ready, "restartCount": restarts, "state": state}
    return {**found, "lastState": {"terminated": last}} if last else found


def event(reason: str, note: str, uid: str = "u") -> Happening:
    return Happening("Pod", "x-0", uid, "Warning", reason, note, "2026-01-01T00:00:00Z")


def waiting(reason: str, message: str = "") -> Obj:
    return {"reason": reason, "message": message} if message else {"reason": reason}


READY = [{"type": "Ready", "status": "True"}]
UNSCHEDULABLE = [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes:\n taints"}]

CASES: list[tuple[str, Obj, list[Happening], str, str, bool]] = [
    (
        "gate",
        pod("Pending", node="", spec={"schedulingGates": [{"name": "g"}]}),
        [],
        "scheduling-gated",
        "gate g",
        False,
    ),
    ("no node", pod("Pending", node="", conditions=UNSCHEDULABLE), [], "unschedulable", "0/3 nodes: taints", False),
    (
        "by event",
        pod("Pending", node=""),
        [event("FailedScheduling", "no")],
        "unschedulable",
        "is on no node: no",
        False,
    ),
    (
        "a gate that is gone",
        pod("Pending", node="", conditions=[{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]),
        [],
        "not-scheduled",
        "default-scheduler has said nothing",
        True,
    ),
    ("unseen", pod("Pending", node=""), [], "not-scheduled", "default-scheduler has said nothing", True),
    (
        "image",
        pod("Pending", containerStatuses=[container(waiting=waiting("ErrImagePull", "denied"))]),
        [],
        "image-pull",
        "cannot get the image of container c (ErrImagePull): denied",
        False,
    ),
    (
        "crash",
        pod(
            containerStatuses=[
                container(restarts=3, last={"exitCode": 2, "reason": "Error"}, waiting=waiting("CrashLoopBackOff"))
            ]
        ),
        [],
        "crash-loop",
        "crashes again and again (CrashLoopBackOff, 3 restarts, exit code 2)",
        False,
    ),
    (
        "init",
        pod("Pending", initContainerStatuses=[container(waiting=waiting("CreateContainerConfigError", "no secret"))]),
        [],
        "container-waiting",
        "cannot start init container c (CreateContainerConfigError): no secret",
        False,
    ),
    (
        "mount",
        pod("Pending", containerStatuses=[container(waiting=waiting("ContainerCreating"))]),
        [event("FailedMount", "no such volume")],
        "container-waiting",
        "(ContainerCreating): no such volume",
        False,
    ),
    (
        "starting",
        pod("Pending", containerStatuses=[container(waiting=waiting("ContainerCreating"))]),
        [event("FailedMount", "of an earlier pod", uid="other")],
        "starting",
        "is starting container c",
        True,
    ),
    (
        "ended",
        pod(containerStatuses=[container(terminated={"exitCode": 1})]),
        [],
        "container-ended",
        "exit code 1",
        False,
    ),
    ("pending", pod("Pending"), [], "starting", "its node has not started it yet", True),
    (
        "probe",
        pod(containerStatuses=[container(running={})]),
        [event("Unhealthy", "Readiness probe failed: 503")],
        "probe",
        "runs, but container c is not ready: Readiness probe failed: 503",
        False,
    ),
    (
        "readiness gate",
        pod(containerStatuses=[container(True, running={})], spec={"readinessGates": [{"conditionType": "a/b"}]}),
        [],
        "readiness-gate",
        "waits for condition a/b",
        False,
    ),
    ("unready", pod(containerStatuses=[container(running={}, restarts=1)]), [], "not-ready", "(1 restart)", True),
    ("evicted", pod("Failed", reason="Evicted", message="disk"), [], "pod-ended", "has failed (Evicted: disk)", False),
    ("deleting", pod(meta={"deletionTimestamp": "t"}), [], "pod-deleting", "has not ended yet", True),
    (
        "kept",
        pod(meta={"deletionTimestamp": "t", "finalizers": ["a/b"]}),
        [],
        "pod-deleting",
        "kept by finalizer a/b",
        False,
    ),
    (
        "foreground",
        pod(meta={"deletionTimestamp": "t", "finalizers": ["foregroundDeletion"]}),
        [],
        "pod-deleting",
        "waits for what it owns",
        True,
    ),
]


@pytest.mark.parametrize(
    ("status", "happenings", "code", "text", "passes"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_trouble(status: Obj, happenings: list[Happening], code: str, text: str, passes: bool) -> None:
    found = podtrouble.of(status, happenings)
    assert found is not None
    assert (found.code, found.passes) == (code, passes)
    assert text in found.text


def test_a_ready_pod_has_none() -> None:
    assert podtrouble.of(pod(conditions=READY), [event("Unhealthy", "before")]) is None


def test_long_messages_are_cut() -> None:
    found = podtrouble.of(pod("Pending", node=""), [event("FailedScheduling", "x" * 1000)])
    assert found is not None
    assert len(found.text) < 400


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("0/3 nodes are available: 3 Insufficient cpu.", "is on no node: 0/3 nodes are available: 3 Insufficient cpu"),
        ("still looking...", "is on no node: still looking..."),
    ],
)
def test_the_full_stop_of_others_is_left_to_the_sentence(said: str, told: str) -> None:
    condition = {"type": "PodScheduled", "status": "False", "message": said}
    found = podtrouble.of(pod("Pending", node="", conditions=[condition]), ())
    assert found is not None
    assert found.text == told
