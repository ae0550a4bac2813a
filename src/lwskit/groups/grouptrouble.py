"""Why one group is not ready: its restarts, its leader, its workers, or what makes them. Pure.

What is made for a group is read off the manager's own decision about its leader (`member.decide`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from lwskit.api import names
from lwskit.groups import (
    backoff,
    budget,
    counters,
    member,
    ownership,
    podtrouble,
    recreations,
    restarts,
    rollout,
    spec,
    successions,
)
from lwskit.groups.explanation import quoted, upper
from lwskit.groups.identity import parse_ordinal
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.model import DecisionError, MemberSnapshot
from lwskit.groups.podtrouble import Trouble
from lwskit.groups.ports import LeaderBackend, WorkerBackend
from lwskit.groups.scene import Happening, Scene, is_leader_pod
from lwskit.runtime.kinds import NODE, POD
from lwskit.runtime.objects import Key, Obj, controller_of, is_deleting, is_true, key_of, uid_of
from lwskit.runtime.plan import Emit, NeedFresh


@dataclass(frozen=True, slots=True)
class GroupTrouble:
    """What keeps a group from being ready. `pod` is the pod that it is about, empty if there is none."""

    group: int | str
    """Its number, or in Hash mode its key."""
    pod: str
    trouble: Trouble
    advice: tuple[str, ...] = ()
    sentence: str = ""
    """What to say of it where it is not about one pod, without a full stop."""


@dataclass(frozen=True)
class Looking:
    """The scene, how its objects are read, and the time. What is looked up for every group is indexed once."""

    scene: Scene
    leaders: LeaderBackend
    workers: WorkerBackend
    now: datetime

    def leader(self, ordinal: int) -> Obj | None:
        """The leader pod of a group."""
        return self._leaders.get(f"{self.scene.name}-{ordinal}")

    @cached_property
    def _leaders(self) -> Mapping[str, Obj]:
        return {p["metadata"]["name"]: p for p in self.scene.pods if is_leader_pod(p)}

    def by_revision(self) -> Mapping[str, Sequence[int]]:
        """The groups that need a revision to be made anew, by its key: those with workers."""
        found: dict[str, list[int]] = {}
        assert self.scene.lws is not None
        for name, leader in self._leaders.items():
            parent, ordinal = parse_ordinal(name)
            if parent == self.scene.name and restarts.size_told(leader, self.scene.lws) > 1:
                found.setdefault(ownership.revision_key(leader), []).append(ordinal)
        return found

    @cached_property
    def recreated(self) -> recreations.Known:
        """When groups were recreated."""
        return recreations.known(self.scene)

    @cached_property
    def succeeded(self) -> successions.Known:
        """When groups with keys were recreated, and when others came."""
        return successions.known(self.scene)

    def owned(self, workload: Obj) -> Mapping[str, Obj]:
        """The pods of a workload by name."""
        return self._owned.get(uid_of(workload), {})

    @cached_property
    def _owned(self) -> Mapping[str, Mapping[str, Obj]]:
        found: dict[str, dict[str, Obj]] = {}
        for pod in self.scene.pods:
            owner = (controller_of(pod) or {}).get("uid", "")
            found.setdefault(owner, {})[pod["metadata"]["name"]] = pod
        return found

    def workload_named(self, name: str) -> Obj | None:
        """The workload of workers with that name."""
        return self._workloads.get(name)

    @cached_property
    def _workloads(self) -> Mapping[str, Obj]:
        return {w["metadata"]["name"]: w for w in self.scene.workers}

    def trouble(self, pod: Obj) -> Trouble | None:
        """Why a pod is not ready."""
        return podtrouble.of(pod, self._of_pods.get(pod["metadata"]["name"], ()))

    @cached_property
    def _of_pods(self) -> Mapping[str, Sequence[Happening]]:
        found: dict[str, list[Happening]] = {}
        for h in self.scene.happenings:
            if h.kind == POD.kind:
                found.setdefault(h.name, []).append(h)
        return found

    def newest(self) -> str:
        """The key of the revision that the leaders are to have, empty without a workload."""
        return self.leaders.observe(self.scene.workload).revision if self.scene.workload is not None else ""

    def has_logs(self) -> bool:
        """Whether the containers of the set have logs: those of the embedded cluster do not run."""
        pods = (p.get("status") or {} for p in self.scene.pods)
        ids = (c.get("containerID") or "" for s in pods for c in s.get("containerStatuses") or ())
        infos = ((n.get("status") or {}).get("nodeInfo") or {} for n in self.scene.nodes.values())
        versions = (i.get("containerRuntimeVersion") or "" for i in infos)
        return not any(text.startswith(_NO_RUNTIME) for text in (*ids, *versions))

    def failure(self, kind: str, name: str, mention: str = "") -> str:
        """The latest warning about something that could not be made, for an object of that kind and name."""
        for h in reversed(self.scene.happenings):
            if (h.kind, h.name) == (kind, name) and h.reason in _FAILED and h.type == "Warning" and mention in h.note:
                return quoted(h.note)
        return ""

    def snapshot(self, leader: Obj, workload: Obj | None) -> MemberSnapshot:
        """What the manager would decide from about a leader, whose workers' workload is given."""
        scene = self.scene
        assert scene.lws is not None
        node = leader["spec"].get("nodeName") or ""
        live = {
            (POD, key_of(leader)),
            (LEADER_WORKER_SET, key_of(scene.lws)),
            (self.leaders.kind, key_of(scene.lws)),
            (NODE, Key("", node)),
        }
        service = ownership.service_name(leader)
        return MemberSnapshot(
            now=self.now,
            pod=leader,
            lws=scene.lws,
            leader=leader,
            workers=workload,
            workload=scene.workload,
            service=next((s for s in scene.services if s["metadata"]["name"] == service), None),
            revisions=scene.revisions,
            group_pods=[p for p in scene.pods if _group_of(p) == _group_of(leader)],
            set_pods=scene.pods,
            pool=scene.pool,
            node=scene.nodes.get(node),
            live=frozenset(live),
        )


_FAILED = (names.EVENT_FAILED_CREATE, names.EVENT_FAILED_UPDATE)
_NO_RUNTIME = "embedded://"
"""How the container runtime of a cluster whose containers do not run is called."""
_ENDINGS = ("crash-loop", "container-ended", "pod-ended")
"""What a loop of recreations shows for a moment in each of its rounds, besides what passes."""


def of(looking: Looking, ordinal: int) -> GroupTrouble | None:
    """Why group `ordinal` is not ready, None if nothing is found."""
    found = _at_present(looking, ordinal)
    leader = looking.leader(ordinal)
    if leader is not None and budget.is_exhausted(leader):
        return found
    run = recreations.find(looking.scene, looking.recreated, ordinal, leader, looking.newest(), looking.now)
    return looped(looking, ordinal, leader, run, found)


def looped(
    looking: Looking, group: int | str, leader: Obj | None, run: recreations.Run | None, found: GroupTrouble | None
) -> GroupTrouble | None:
    """What is found of a group, in the light of how often it was recreated; `found` where that is no loop."""
    if run is None or not run.is_loop(looking.now):
        return found
    often = f"{run.count} times within {_span((looking.now - run.first).total_seconds())}"
    if found is not None and not (found.trouble.passes or found.trouble.code in _ENDINGS):
        text = f"{found.trouble.text}; its group has been recreated {often}"
        return replace(found, trouble=replace(found.trouble, text=text))
    return _looping(looking, group, leader, run, often, found)


def _looping(
    looking: Looking,
    group: int | str,
    leader: Obj | None,
    run: recreations.Run,
    often: str,
    found: GroupTrouble | None,
) -> GroupTrouble:
    """A group that is recreated again and again. What is seen of it at this moment is only a phase of that."""
    scene, where = looking.scene, f"-n {looking.scene.namespace}"
    assert scene.lws is not None
    there = leader["metadata"]["name"] if leader is not None else f"{scene.name}-{group}"
    # In Hash mode the pod that failed last has another name than any that is there.
    pod = (run.pod if isinstance(group, int) else "") or (found.pod if found is not None else "") or there
    why = "since pods of it are lost or their containers restart" + (f", last pod {run.pod}" if run.pod else "")
    present = f"; at present pod {found.pod} {found.trouble.text}" if found is not None else ""
    advice: list[str] = []
    if looking.has_logs():
        logs = f"`kubectl {where} logs {pod} --all-containers --follow`"
        advice.append(f"{logs} shows why while the pod runs; its logs go with it")
    else:
        advice.append(
            f"`kubectl {where} get pod {pod} -o yaml` shows which annotations let it fail; this cluster runs no "
            "containers, so there are no logs"
        )
    if _takes_new_template(looking, group, leader):
        advice.append("if the template is at fault: correct it in the set, and the rollout replaces the group")
    if budget.limit_of(scene.lws) is None:
        advice.append("to limit how often a group is recreated, set spec.leaderWorkerTemplate.maxGroupRestarts")
    trouble = Trouble("restart-loop", f"is of a group that has been recreated {often}")
    sentence = f"Group {group} has been recreated {often}, {why}{present}"
    if isinstance(group, str):
        sentence = f"Group {group[:8]}… takes the place of groups that have been recreated {often}, {why}{present}"
    return GroupTrouble(group, pod, trouble, tuple(advice), sentence)


def _span(seconds: float) -> str:
    """A duration in words."""
    if seconds < 120:
        return f"{max(1.0, seconds):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def _takes_new_template(looking: Looking, group: int | str, leader: Obj | None) -> bool:
    """Whether a newer template is what mends a group: it is on the newest, and a rollout will reach it."""
    assert looking.scene.lws is not None
    if leader is not None and ownership.revision_key(leader) != looking.newest():
        return False
    return isinstance(group, str) or group >= rollout.Settings.of(looking.scene.lws).partition


def _at_present(looking: Looking, ordinal: int) -> GroupTrouble | None:
    scene, name = looking.scene, f"{looking.scene.name}-{ordinal}"
    assert scene.lws is not None
    leader = looking.leader(ordinal)
    if leader is None:
        said = looking.failure("StatefulSet", scene.name, name)
        return _missing(looking, ordinal, name, "no-leader", scene.workload or {}, said)
    if budget.is_exhausted(leader):
        return exhausted(looking, ordinal, leader)
    if budget.cause_of_pending(leader):
        return pending(looking, ordinal, leader)
    workload = looking.workload_named(ownership.workers_name(leader))
    policy = spec.startup_policy(scene.lws)
    waits = policy if policy == names.STARTUP_LEADER_READY else ""
    if not _is_ready(leader) or is_deleting(leader):
        found = looking.trouble(leader)
        if found is not None:
            if restarts.size_told(leader, scene.lws) > 1 and workload is None and waits:
                found = replace(
                    found, text=f"{found.text}; its workers are made when it is ready (startupPolicy {waits})"
                )
            return GroupTrouble(ordinal, name, found, advice(looking, name, found))
    return of_workers(looking, ordinal, leader, workload)


def outlived(looking: Looking, ordinal: int) -> bool:
    """Whether a group works and is only no more what the set wants: it had no workers, which the newest size has."""
    leader = looking.leader(ordinal)
    if leader is None or ownership.revision_key(leader) == looking.newest() or not _is_ready(leader):
        return False
    return not is_deleting(leader) and of(looking, ordinal) is None


def of_workers(looking: Looking, group: int | str, leader: Obj, workload: Obj | None) -> GroupTrouble | None:
    """Why the workers of a leader that is ready itself are not, None if nothing is found."""
    assert looking.scene.lws is not None
    if restarts.size_told(leader, looking.scene.lws) == 1:
        return None
    if workload is None or not ownership.owned_by_leader(workload, leader):
        return GroupTrouble(group, leader["metadata"]["name"], _no_workers(looking, leader, workload))
    return _scaled(looking, group, leader, workload) or _worker(looking, group, workload)


def _is_ready(pod: Obj) -> bool:
    return (pod.get("status") or {}).get("phase") == "Running" and is_true(pod, "Ready")


def exhausted(looking: Looking, group: int | str, leader: Obj) -> GroupTrouble:
    """A group without a restart left, and how it is given new ones."""
    scene, name = looking.scene, leader["metadata"]["name"]
    assert scene.lws is not None
    limit = budget.limit_of(scene.lws)
    of = f" ({limit})" if limit is not None else ""
    text = f"marks its group as having used up its restarts{of}; it is kept as it is and not recreated by itself"
    command = f"kubectl -n {scene.namespace} annotate pod {name} {names.RECOVER_ANNOTATION}=true"
    advice = (f"when the cause is mended: `{command}` gives the group a fresh budget",)
    if _takes_new_template(looking, group, leader):
        advice = (
            "if its template, the newest, is at fault: correct it in the set, and the rollout replaces the group",
            f"if something else was: `{command}` makes the group anew of the same template, with a fresh budget",
        )
    return GroupTrouble(group, name, Trouble("budget-exhausted", text), advice)


def pending(looking: Looking, group: int | str, leader: Obj) -> GroupTrouble:
    """A group whose recreation waits."""
    scene, cause = looking.scene, budget.cause_of_pending(leader)
    assert scene.lws is not None
    try:
        count = counters.read(scene.lws).get(counters.key_of_group(leader), 0)
    except DecisionError as error:
        return GroupTrouble(group, cause, Trouble("counters-unreadable", str(error)))
    left = backoff.remaining(scene.lws, leader, count, looking.now)
    wait = f"for about {max(1.0, left):.0f} s more" if left > 0 else "no longer: the manager has to do it now"
    so_far = f"{count} restart{'' if count == 1 else 's'}"
    text = f"failed, and after {so_far} so far the recreation of the group waits {wait} (restartBackoff)"
    return GroupTrouble(group, cause, Trouble("back-off", text, passes=True))


def put_off(looking: Looking, ordinals: Iterable[int]) -> Iterator[GroupTrouble]:
    """Those groups whose recreation waits for its back-off, ready as they may look."""
    for ordinal in ordinals:
        leader = looking.leader(ordinal)
        if leader is None or is_deleting(leader) or budget.is_exhausted(leader) or not budget.cause_of_pending(leader):
            continue
        yield pending(looking, ordinal, leader)


def advice(looking: Looking, pod: str, trouble: Trouble) -> tuple[str, ...]:
    """What a person can look at next."""
    where = f"-n {looking.scene.namespace}"
    show = f"`kubectl {where} describe pod {pod}`"
    match trouble.code:
        case "crash-loop" | "container-ended" | "pod-ended":
            if not looking.has_logs():
                return (f"{show} shows more; this cluster runs no containers, so there are no logs",)
            # A container that ended for good has no later one before which another would be the previous.
            earlier = " --previous" if trouble.code == "crash-loop" else ""
            return (f"`kubectl {where} logs {pod}{earlier}` shows why",)
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
    try:
        decision = member.decide(looking.snapshot(leader, workload), looking.leaders, looking.workers)
    except DecisionError as error:
        return Trouble("no-workers", f"has no workers: {error}")
    if isinstance(decision, NeedFresh):
        return Trouble("no-workers", f"has no workers yet: {decision.why}", passes=True)
    person = any(isinstance(a, Emit) and a.event.type == "Warning" for a in decision.actions)
    return Trouble("no-workers", f"has no workers yet: {decision.note}", passes=not person)


def _group_of(pod: Obj) -> str:
    return (pod["metadata"].get("labels") or {}).get(names.GROUP_INDEX_LABEL, "")


def _scaled(looking: Looking, group: int | str, leader: Obj, workload: Obj) -> GroupTrouble | None:
    """Workers that somebody has scaled so that their group cannot be whole."""
    assert looking.scene.lws is not None
    name, asked, kind = workload["metadata"]["name"], workload["spec"].get("replicas", 1), looking.workers.kind.kind
    wanted = restarts.size_told(leader, looking.scene.lws) - 1
    if asked >= wanted:
        return None
    are = "worker is" if wanted == 1 else "workers are"
    text = f"{kind} {name} was scaled to {asked}, where {wanted} {are} the whole group"
    command = f"kubectl -n {looking.scene.namespace} scale {kind.lower()} {name} --replicas={wanted}"
    return GroupTrouble(
        group, "", Trouble("workers-scaled", text), (f"`{command}` makes the group whole again",), upper(text)
    )


def _worker(looking: Looking, group: int | str, workload: Obj) -> GroupTrouble | None:
    """The first worker that is missing or not ready."""
    name = workload["metadata"]["name"]
    pods = looking.owned(workload)
    start = (workload["spec"].get("ordinals") or {}).get("start", 0)
    wanted = [f"{name}-{i}" for i in range(start, start + workload["spec"].get("replicas", 1))]
    missing = [w for w in wanted if w not in pods]
    for pod in sorted(pods.values(), key=lambda p: parse_ordinal(p["metadata"]["name"])[1]):
        found = looking.trouble(pod)
        if found is not None:
            worker = pod["metadata"]["name"]
            return GroupTrouble(group, worker, found, advice(looking, worker, found))
    if missing:
        said = looking.failure("StatefulSet", name, missing[0]) or looking.failure("StatefulSet", name)
        return _missing(looking, group, missing[0], "no-worker", workload, said)
    if not looking.workers.observe(workload).ready:
        text = f"is ready like all workers, which the status of StatefulSet {name} does not say yet"
        return GroupTrouble(group, wanted[-1] if wanted else name, Trouble("not-counted", text, passes=True))
    return None


def _missing(looking: Looking, group: int | str, pod: str, code: str, workload: Obj, said: str) -> GroupTrouble:
    """A pod that its StatefulSet has not made; `said` is what an event says of that, empty without one."""
    revision, limit = (workload.get("status") or {}).get("updateRevision", ""), names.MAX_NAME_LENGTH
    if len(revision) > limit:
        text = (
            f"cannot be made: StatefulSets label their pods with controller-revision-hash, here {revision}, which has "
            f"{len(revision)} characters, where {limit} are allowed"
        )
        suffix = len(revision.rpartition("-")[0]) - len(looking.scene.name) + names.STATEFUL_SET_HASH_SUFFIX
        way = f"a set cannot be renamed: create it anew with a name of at most {limit - suffix} characters"
        return GroupTrouble(group, pod, Trouble("name-too-long", text), (way,))
    text = f"does not exist: {said}" if said else "does not exist yet; the StatefulSet controller has to make it"
    return GroupTrouble(group, pod, Trouble(code, text, passes=not said))


def first(looking: Looking, ordinals: Sequence[int]) -> GroupTrouble | None:
    """The first of these groups whose trouble does not pass by itself, without one the first that has any."""
    passing: GroupTrouble | None = None
    for ordinal in ordinals:
        found = of(looking, ordinal)
        if found is not None and not found.trouble.passes:
            return found
        passing = passing or found
    return passing
