"""What the pod reconciler decides for one pod of a set: restart its group, or make what a leader needs. Pure.

Specification: 20 §10, §11, in the order of §10.2.
"""

from __future__ import annotations

from dataclasses import replace

from lwskit.api import names
from lwskit.groups import (
    budget,
    gates,
    hashbudget,
    interfered,
    ownership,
    placement,
    readiness,
    restarts,
    revisions,
    services,
    spec,
    standing,
    templates,
    turns,
)
from lwskit.groups.identity import has_hash_identity, is_leader
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.model import DecisionError, MemberSnapshot
from lwskit.groups.ports import LeaderBackend, Scheduler, WorkerBackend
from lwskit.runtime.kinds import NODE, POD, SERVICE
from lwskit.runtime.objects import (
    Key,
    Obj,
    annotations_of,
    controller_of,
    is_deleting,
    is_true,
    key_of,
    labels_of,
    ref_of,
    uid_of,
)
from lwskit.runtime.plan import (
    AnyAction,
    Apply,
    Create,
    Decision,
    Delete,
    Emit,
    Event,
    NeedFresh,
    OnError,
    Plan,
)
from lwskit.runtime.request import Result

_REVISION_DELAY = 1.0
_GATE_DELAY = 10.0


def decide(
    snapshot: MemberSnapshot, leaders: LeaderBackend, workers: WorkerBackend, scheduler: Scheduler | None = None
) -> Decision:
    """The plan for a pod, live or (`snapshot.deleted`) as it was last seen.

    Raises DecisionError where the pod lacks a label or something of an earlier group is in the way; the reconcile is
    retried then.
    """
    pod = snapshot.pod
    if pod is None:
        return Plan(note="the pod is gone")
    if snapshot.deleted and is_leader(pod):
        return interfered.vanished(snapshot, pod, workers.kind)
    for label in (names.NAME_LABEL, names.WORKER_INDEX_LABEL):
        if not labels_of(pod).get(label):
            raise DecisionError(f"{label} label is unexpected missing")
    lws = snapshot.lws
    if lws is None:
        return _without_set(snapshot, pod)
    if is_deleting(lws):
        return budget.release_all(snapshot, pod, "the set is being deleted; what it owns goes with it")
    if snapshot.namespace is not None and is_deleting(snapshot.namespace):
        return budget.release_all(snapshot, pod, "the namespace is being deleted, which waits for its pods")
    if is_leader(pod) and budget.is_exhausted(pod):
        released = hashbudget.unwanted if has_hash_identity(pod) else budget.unwanted
        return budget.reconcile_marked(snapshot, lws, pod, leaders, released)
    if not is_leader(pod):
        stray = budget.release_stray(snapshot, pod) or interfered.left_behind(snapshot, lws, pod, workers.kind)
        if stray is not None:
            return stray
    other = _other_kind(snapshot.leader, leaders)
    if other:
        return Plan(note=f"the group's leader is made by a {other}, which this manager does not serve")
    if is_leader(pod) and is_deleting(pod):
        return budget.release_unmarked(snapshot, pod) or _leaving(snapshot.workers, pod, workers)
    let_in = interfered.ungated(snapshot, lws, pod) if is_leader(pod) else None
    if let_in is not None:
        return let_in
    verdict = restarts.judge(snapshot, pod, lws, workers.kind)
    if verdict.decision is not None:
        return verdict.decision
    if is_leader(pod) and restarts.is_over(pod):
        return _over(lws, pod, verdict.hold)
    if not is_leader(pod):
        return _held(Plan(note=verdict.note), verdict.hold)
    try:
        return _held(_furnish(snapshot, lws, pod, leaders, workers, scheduler), verdict.hold)
    except DecisionError as error:
        if not verdict.hold.actions:
            raise
        return Plan(verdict.hold.actions, Result(error=error), str(error))


def _other_kind(leader: Obj | None, leaders: LeaderBackend) -> str:
    """The kind of a leader's controller if it is none of the backend's, empty otherwise."""
    reference = controller_of(leader) if leader is not None else None
    return "" if reference is None else ownership.foreign_kind(reference, leaders)


def _held(decision: Decision, hold: budget.Hold) -> Decision:
    """The decision for a group whose recreation waits: it comes back in time, whatever it does now (20 §12.6)."""
    if hold.after <= 0 or isinstance(decision, NeedFresh):
        return decision
    result = decision.result
    if not result.requeue:
        soonest = min(result.after, hold.after) if result.after > 0 else hold.after
        result = replace(result, after=soonest, reason=result.reason or "a group is to be recreated then")
    return replace(decision, actions=(*hold.actions, *decision.actions), result=result)


def _without_set(snapshot: MemberSnapshot, pod: Obj) -> Decision:
    """No set of the pod's is known. A lost worker asks once more: sets and pods come to the cache in no order."""
    key = (LEADER_WORKER_SET, Key(key_of(pod).namespace, ownership.set_name(pod)))
    leader = snapshot.leader
    if snapshot.deleted and leader is not None and not is_deleting(leader) and key not in snapshot.live:
        return NeedFresh((key,), "the set of a lost worker is not in the cache yet")
    return budget.release_all(snapshot, pod, "the pod's set is gone")


def _furnish(
    snapshot: MemberSnapshot,
    lws: Obj,
    leader: Obj,
    leaders: LeaderBackend,
    workers: WorkerBackend,
    scheduler: Scheduler | None,
) -> Decision:
    """What a leader's group needs: Service, what its scheduler wants, workers (specification: 20 §10.2 from item 8)."""
    name = leader["metadata"]["name"]
    if annotations_of(leader).get(names.LEADER_NAME_ANNOTATION):
        return Plan((_misplaced(lws, leader),), note="the pod is a worker that looks like a leader")
    without_key = interfered.unadmitted(lws, leader)
    if without_key is not None:
        return without_key
    revision = revisions.choose(revisions.own(lws, snapshot.revisions), ownership.revision_key(leader))
    group_lws = revisions.with_revision(lws, revision) if revision is not None else lws
    actions: list[AnyAction] = []
    if spec.subdomain_policy(group_lws) == names.SUBDOMAIN_UNIQUE_PER_REPLICA:
        found = snapshot.service
        if found is None:
            if (unsure := _bereft(snapshot, leader)) is not None:
                return unsure
            actions.append(_service(lws, leader))
        elif problem := services.stale(found, leader):
            return _no_service_yet(lws, leader, found, problem)
    if scheduler is not None:
        actions += scheduler.group_actions(group_lws, leader)

    if gates.is_gated(leader):
        turn = turns.of(snapshot, lws, leader, leaders)
        actions += turn.actions
        if not turn.admitted:
            return Plan(tuple(actions), Result(after=_GATE_DELAY, reason=turn.why), turn.why)

    def plan(note: str, result: Result | None = None) -> Plan:
        return Plan(tuple(actions), result or Result(), note)

    size = spec.size(group_lws) if revision is not None else restarts.size_told(leader, lws)
    if size == 1:
        return plan("the group is its leader alone")
    hashed = has_hash_identity(leader)
    # In Hash mode the leader's Ready waits for its workers.
    wanted = "ContainersReady" if hashed else "Ready"
    if spec.startup_policy(lws) == names.STARTUP_LEADER_READY and not is_true(leader, wanted):
        if snapshot.workers is not None:
            # A leader whose containers are not ready any more is not to be ready with them while its workers are not.
            own = ownership.owned_by_leader(snapshot.workers, leader)
            actions += readiness.written(leader, own and workers.observe(snapshot.workers).ready, snapshot.now)
        return plan("workers are made when their leader is ready")
    topology, node_selector = spec.exclusive_topology(lws), None
    if snapshot.workers is not None:
        if hashed and not ownership.owned_by_leader(snapshot.workers, leader):
            return interfered.taken(lws, leader, snapshot.workers, workers.kind, snapshot.now, tuple(actions))
        if not _is_behind(snapshot.workers, leader, workers):
            found = standing.of(lws, leader, snapshot.workers, workers.kind)
            actions += found.actions
            actions += readiness.written(leader, workers.observe(snapshot.workers).ready, snapshot.now)
            return plan(found.note, found.result)
    elif (unsure := _bereft(snapshot, leader)) is not None:
        return unsure
    if revision is None:
        return _without_revision(snapshot, lws, leader, leaders, tuple(actions))
    try:
        templates.group_plan(lws, group_lws, leader)
        if topology is not None:
            node = leader["spec"].get("nodeName")
            if not node:
                return plan("workers are placed where their leader is, which has no node yet")
            if (NODE, Key("", node)) not in snapshot.live:
                return NeedFresh(((NODE, Key("", node)),), "workers are placed by a label of their leader's node")
            node_selector = {topology: placement.topology_value(snapshot.node, node, topology)}
    except DecisionError as error:
        if not actions:
            raise
        return plan(str(error), Result(requeue=True, reason=str(error)))
    group = templates.group_plan(lws, group_lws, leader, node_selector)
    if snapshot.workers is not None:
        actions.append(_updated(lws, leader, workers, workers.render(group)))
        return plan(f"workers follow leader pod {name}, which was updated where it is")
    actions.append(_workers(lws, leader, workers, workers.render(group)))
    actions += readiness.written(leader, False, snapshot.now)
    return plan(f"{group.replicas} workers are made for leader pod {name}")


def _bereft(snapshot: MemberSnapshot, leader: Obj) -> NeedFresh | None:
    """The look at a leader whose workers or Service have just gone: the collector removes them after it, but the news
    of the two come in no order. What is made for a leader that is gone is removed at once, and so on without end."""
    key = (POD, key_of(leader))
    if snapshot.bereft != uid_of(leader) or key in snapshot.live:
        return None
    return NeedFresh((key,), "what is gone is made again only for a leader that is there")


def _without_revision(
    snapshot: MemberSnapshot, lws: Obj, leader: Obj, leaders: LeaderBackend, actions: tuple[AnyAction, ...]
) -> Decision:
    """No workers without the leader's revision (20 §10.2 step 16): it comes, or was deleted by hand and is gone.

    The newest one is made anew by the set. Older ones nothing can make, so somebody has to be told.
    """
    name, key = leader["metadata"]["name"], ownership.revision_key(leader)
    now = leaders.observe(snapshot.workload) if snapshot.workload is not None else None
    if now is None or now.deleting or key in ("", now.revision):
        reason = f"the revision of leader pod {name} is not known yet"
        return Plan(actions, Result(after=_REVISION_DELAY, reason=reason), reason)
    where = (leaders.kind, Key(key_of(lws).namespace, lws["metadata"]["name"]))
    if where not in snapshot.live:
        return NeedFresh((where,), "the revision of a leader is gone only if it is an older one")
    reason = (
        f"revision {key}, which leader pod {name} is of, has been deleted, so its workers cannot be made before the "
        "group is updated"
    )
    event = _event(lws, leader, names.EVENT_FAILED_CREATE, reason, "Warning")
    told = Emit(why="a group that waits for a person has to say so", event=event)
    return Plan((*actions, told), Result(requeue=True, reason=reason), reason)


def _leaving(found: Obj | None, leader: Obj, workers: WorkerBackend) -> Plan:
    """Nothing is made for a leader that goes; with `podTerminationPolicy: Parallel` its workers go at the same time.

    Otherwise the collector removes them once the leader is gone, so that both grace periods pass one after the other.
    Specification: 10 §2.1 for the field, §4.2 for the annotation.
    """
    note = "the leader is being deleted; nothing is made for its group"
    parallel = annotations_of(leader).get(names.POD_TERMINATION_POLICY_ANNOTATION) == names.TERMINATION_PARALLEL
    if not parallel or found is None or is_deleting(found) or not ownership.owned_by_leader(found, leader):
        return Plan(note=note)
    end = Delete(
        why=f"leader pod {leader['metadata']['name']} terminates, and its workers are to terminate with it",
        kind=workers.kind,
        key=key_of(found),
        uid=uid_of(found),
        errors={"NotFound": OnError.IGNORE, "Conflict": OnError.REQUEUE},
    )
    return Plan((end,), note=note)


def _over(lws: Obj, leader: Obj, hold: budget.Hold) -> Decision:
    """The end of a group in Hash mode whose leader has failed for good: its ReplicaSet has made another one and leaves
    this one lying, and its workers with it (specification: 30 §10)."""
    name, index = leader["metadata"]["name"], labels_of(leader).get(names.GROUP_INDEX_LABEL, "")
    if hold.after > 0:
        return _held(Plan(note=f"leader pod {name} has failed"), hold)
    note = f"Leader pod {name} failed, deleted it to replace group {index}"
    end = Delete(
        why=f"leader pod {name} has failed for good, and another one takes its place once group {index} is gone",
        kind=POD,
        key=key_of(leader),
        uid=uid_of(leader),
        propagation="Foreground",
        on_success=_event(lws, leader, names.EVENT_RECREATE_GROUP, note, action=names.ACTION_DELETE),
        errors={"NotFound": OnError.IGNORE, "Conflict": OnError.REQUEUE},
    )
    return Plan((end,))


def _is_behind(found: Obj, leader: Obj, workers: WorkerBackend) -> bool:
    """Whether workers that can be changed where they are have another revision than their leader has got."""
    if workers.write != "apply" or not ownership.owned_by_leader(found, leader):
        return False
    return not is_deleting(found) and workers.observe(found).revision != ownership.revision_key(leader)


def _updated(lws: Obj, leader: Obj, workers: WorkerBackend, obj: Obj) -> Apply:
    name = leader["metadata"]["name"]
    failed = f"Failed to update worker {workers.kind.kind.lower()} for leader pod {name}: {{error}}"
    return Apply(
        why=f"leader pod {name} is of another revision than its workers",
        kind=workers.kind,
        obj=obj,
        manager=names.FIELD_MANAGER,
        on_failure=_event(lws, leader, names.EVENT_FAILED_UPDATE, failed, "Warning", names.ACTION_UPDATE),
    )


def _service(lws: Obj, leader: Obj) -> Create:
    failed = "Failed to create headless service for error: {error}"
    return Create(
        why="the pods of each group find each other through a Service of their own, which does not exist",
        kind=SERVICE,
        obj=services.group_service(lws, leader),
        on_failure=_event(lws, leader, names.EVENT_FAILED_CREATE, failed, "Warning"),
        errors={"AlreadyExists": OnError.REQUEUE},
    )


def _no_service_yet(lws: Obj, leader: Obj, found: Obj, problem: str) -> Plan:
    """Nothing is made for a group that another Service takes the name from (20 §4); of one that stays it is told."""
    error = DecisionError(problem)
    if not services.is_foreign(found, leader):
        return Plan(result=Result(error=error), note=problem)
    note = f"Failed to create headless service for error: {problem}"
    event = _event(lws, leader, names.EVENT_FAILED_CREATE, note, "Warning")
    told = Emit(why="a group that waits for a person has to say so", event=event)
    return Plan((told,), Result(error=error), problem)


def _workers(lws: Obj, leader: Obj, workers: WorkerBackend, obj: Obj) -> Create:
    name = leader["metadata"]["name"]
    done = f"Created worker statefulset for leader pod {name}"
    failed = f"Failed to create worker statefulset for leader pod {name}: {{error}}"
    return Create(
        why=f"leader pod {name} has no workers yet",
        kind=workers.kind,
        obj=obj,
        on_success=_event(lws, leader, names.EVENT_GROUPS_PROGRESSING, done),
        on_failure=_event(lws, leader, names.EVENT_FAILED_CREATE, failed, "Warning"),
        # They may be the leader's own, which the cache lacks yet or for ever, or somebody else's.
        errors={"AlreadyExists": OnError.LOOK},
    )


def _misplaced(lws: Obj, leader: Obj) -> Emit:
    note = (
        f"leader pod {key_of(leader)} contains mistake annotation '{names.LEADER_NAME_ANNOTATION}': "
        "requires Kubernetes ≥v1.27 or v1.26 with StatefulSetStartOrdinal feature"
    )
    event = _event(lws, leader, names.EVENT_FAILED_CREATE, note, "Warning")
    return Emit(why="workers of workers would never end", event=event)


def _event(
    lws: Obj, leader: Obj, reason: str, note: str, type: str = "Normal", action: str = names.ACTION_CREATE
) -> Event:
    return Event(ref_of(lws, LEADER_WORKER_SET), reason, action, note, type, ref_of(leader, POD))
