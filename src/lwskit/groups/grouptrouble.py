"""Why one group is not ready: its restarts, its leader, its workers, or what makes them. Pure.

What is made for a group is read off the manager's own decision about its leader (`member.decide`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from lwskit.api import names
from lwskit.groups import backoff, budget, counters, member, ownership, podtrouble, restarts, spec
from lwskit.groups.identity import parse_ordinal
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.model import DecisionError, MemberSnapshot
from lwskit.groups.podtrouble import Trouble
from lwskit.groups.ports import LeaderBackend, WorkerBackend
from lwskit.groups.scene import Scene, is_leader_pod
from lwskit.runtime.kinds import NODE, POD
from lwskit.runtime.objects import Key, Obj, controller_of, is_deleting, is_true, key_of, uid_of
from lwskit.runtime.plan import NeedFresh


@dataclass(frozen=True, slots=True)
class GroupTrouble:
    """What keeps a group from being ready. `pod` is the pod that it is about, empty if there is none."""

    group: int
    pod: str
    trouble: Trouble
    advice: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Looking:
    """The scene, how its objects are read, and the time."""

    scene: Scene
    leaders: LeaderBackend
    workers: WorkerBackend
    now: datetime

    def leader(self, ordinal: int) -> Obj | None:
        """The leader pod of a group."""
        name = f"{self.scene.name}-{ordinal}"
        found = (p for p in self.scene.pods if p["metadata"]["name"] == name and is_leader_pod(p))
        return next(found, None)

    def failure(self, kind: str, name: str, mention: str = "") -> str:
        """The latest warning about something that could not be made, for an object of that kind and name."""
        for h in reversed(self.scene.happenings):
            if (h.kind, h.name) == (kind, name) and h.reason in _FAILED and h.type == "Warning" and mention in h.note:
                return h.note
        return ""


_FAILED = (names.EVENT_FAILED_CREATE, names.EVENT_FAILED_UPDATE)


def of(looking: Looking, ordinal: int) -> GroupTrouble | None:
    """Why group `ordinal` is not ready, None if nothing is found."""
    scene, name = looking.scene, f"{looking.scene.name}-{ordinal}"
    assert scene.lws is not None
    leader = looking.leader(ordinal)
    if leader is None:
        said = looking.failure("StatefulSet", scene.name, name)
        text = f"does not exist: {said}" if said else "does not exist yet; the StatefulSet controller has to make it"
        return GroupTrouble(ordinal, name, Trouble("no-leader", text, passes=not said))
    if budget.is_exhausted(leader):
        return _exhausted(looking, ordinal, leader)
    if budget.cause_of_pending(leader):
        return _pending(looking, ordinal, leader)
    workload = next((w for w in scene.workers if w["metadata"]["name"] == ownership.workers_name(leader)), None)
    policy = spec.startup_policy(scene.lws)
    waits = policy if policy == names.STARTUP_LEADER_READY else ""
    if not _is_ready(leader) or is_deleting(leader):
        found = podtrouble.of(leader, scene.happenings)
        if found is not None:
            if restarts.size_told(leader, scene.lws) > 1 and workload is None and waits:
                found = replace(
                    found, text=f"{found.text}; its workers are made when it is ready (startupPolicy {waits})"
                )
            return GroupTrouble(ordinal, name, found, _advice(scene, name, found))
    if restarts.size_told(leader, scene.lws) == 1:
        return None
    if workload is None or not ownership.owned_by_leader(workload, leader):
        return GroupTrouble(ordinal, name, _no_workers(looking, leader, workload))
    return _worker(looking, ordinal, workload)


def _is_ready(pod: Obj) -> bool:
    return (pod.get("status") or {}).get("phase") == "Running" and is_true(pod, "Ready")


def _exhausted(looking: Looking, ordinal: int, leader: Obj) -> GroupTrouble:
    scene, name = looking.scene, leader["metadata"]["name"]
    assert scene.lws is not None
    limit = budget.limit_of(scene.lws)
    of = f" ({limit})" if limit is not None else ""
    text = f"marks its group as having used up its restarts{of}; it is kept as it is and not recreated by itself"
    command = f"kubectl -n {scene.namespace} annotate pod {name} {names.RECOVER_ANNOTATION}=true"
    advice = (f"when the cause is mended: `{command}` gives the group a fresh budget",)
    return GroupTrouble(ordinal, name, Trouble("budget-exhausted", text), advice)


def _pending(looking: Looking, ordinal: int, leader: Obj) -> GroupTrouble:
    scene, cause = looking.scene, budget.cause_of_pending(leader)
    assert scene.lws is not None
    try:
        count = counters.read(scene.lws).get(counters.key_of_group(leader), 0)
    except DecisionError as error:
        return GroupTrouble(ordinal, cause, Trouble("counters-unreadable", str(error)))
    left = backoff.remaining(scene.lws, leader, count, looking.now)
    wait = f"for {left:.0f} s more" if left > 0 else "no longer: the manager has to do it now"
    text = f"failed, and after {count} restarts so far the recreation of the group waits {wait} (restartBackoff)"
    return GroupTrouble(ordinal, cause, Trouble("back-off", text, passes=True))


def _advice(scene: Scene, pod: str, trouble: Trouble) -> tuple[str, ...]:
    show = f"`kubectl -n {scene.namespace} describe pod {pod}`"
    logs = f"`kubectl -n {scene.namespace} logs {pod} --previous`"
    match trouble.code:
        case "crash-loop" | "container-ended" | "pod-ended":
            return (f"{logs} shows why",)
        case "unschedulable" | "image-pull" | "container-waiting" | "probe":
            return (f"{show} shows more",)
        case _:
            return ()


def _no_workers(looking: Looking, leader: Obj, workload: Obj | None) -> Trouble:
    """Why a group has no workers, by what the manager decides for its leader."""
    scene, name = looking.scene, leader["metadata"]["name"]
    assert scene.lws is not None
    said = looking.failure(names.KIND, scene.name, f"leader pod {name}")
    if said:
        return Trouble("no-workers", f"has no workers: {said}")
    node = leader["spec"].get("nodeName") or ""
    live = {(POD, key_of(leader)), (LEADER_WORKER_SET, key_of(scene.lws)), (NODE, Key("", node))}
    snapshot = MemberSnapshot(
        now=looking.now,
        pod=leader,
        lws=scene.lws,
        leader=leader,
        workers=workload,
        workload=scene.workload,
        service=next((s for s in scene.services if s["metadata"]["name"] == ownership.service_name(leader)), None),
        revisions=scene.revisions,
        group_pods=[p for p in scene.pods if _group_of(p) == _group_of(leader)],
        set_pods=scene.pods,
        node=scene.nodes.get(node),
        live=frozenset(live),
    )
    try:
        decision = member.decide(snapshot, looking.leaders, looking.workers)
    except DecisionError as error:
        return Trouble("no-workers", f"has no workers: {error}")
    if isinstance(decision, NeedFresh):
        return Trouble("no-workers", f"has no workers yet: {decision.why}", passes=True)
    return Trouble("no-workers", f"has no workers yet: {decision.note}", passes=True)


def _group_of(pod: Obj) -> str:
    return (pod["metadata"].get("labels") or {}).get(names.GROUP_INDEX_LABEL, "")


def _worker(looking: Looking, ordinal: int, workload: Obj) -> GroupTrouble | None:
    """The first worker that is missing or not ready."""
    scene, name = looking.scene, workload["metadata"]["name"]
    pods = {p["metadata"]["name"]: p for p in scene.pods if (controller_of(p) or {}).get("uid") == uid_of(workload)}
    start = (workload["spec"].get("ordinals") or {}).get("start", 0)
    wanted = [f"{name}-{i}" for i in range(start, start + workload["spec"].get("replicas", 1))]
    missing = [w for w in wanted if w not in pods]
    for pod in sorted(pods.values(), key=lambda p: parse_ordinal(p["metadata"]["name"])[1]):
        found = podtrouble.of(pod, scene.happenings)
        if found is not None:
            worker = pod["metadata"]["name"]
            return GroupTrouble(ordinal, worker, found, _advice(scene, worker, found))
    if missing:
        said = looking.failure("StatefulSet", name, missing[0]) or looking.failure("StatefulSet", name)
        text = f"does not exist: {said}" if said else "does not exist yet; the StatefulSet controller has to make it"
        return GroupTrouble(ordinal, missing[0], Trouble("no-worker", text, passes=not said))
    if not looking.workers.observe(workload).ready:
        text = f"is ready like all workers, which the status of StatefulSet {name} does not say yet"
        return GroupTrouble(ordinal, wanted[-1] if wanted else name, Trouble("not-counted", text, passes=True))
    return None


def first(looking: Looking, ordinals: Sequence[int]) -> GroupTrouble | None:
    """The first of these groups for which something is found."""
    return next((found for o in ordinals if (found := of(looking, o)) is not None), None)
