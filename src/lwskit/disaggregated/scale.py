"""The guarded write of a child's replicas. Pure.

Specification: 50 §6, §7.2, §7.6, §17, §18.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated.model import NO_WRITE, Child, Readiness, Write
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.objects import (
    Obj,
    ObjectRef,
    annotations_of,
    controller_of,
    generation_of,
    key_of,
    labels_of,
    ref_of,
    version_of,
)
from lwskit.runtime.plan import Event, OnError, Patch


def to(
    child: Child,
    replicas: int,
    *,
    readiness: Readiness,
    why: str,
    initial: int | None = None,
    event_ref: ObjectRef | None = None,
    also: Mapping[str, Any] | None = None,
    notes: Mapping[str, str | None] | None = None,
) -> Write:
    """Have a child ask for `replicas` groups, in one patch that fails if the child is not as it was seen.

    `initial` is what its annotation initial-replicas is to say; None leaves it as it is. `also` are further fields of
    its spec. `notes` are further annotations that say the same as `replicas`, None removes one. `event_ref` is the set
    that an event tells of the scaling; None tells nobody. `why` is for people. A raise is pending, and only the rest is
    written, while groups of an earlier lowering may still be on their way out.
    """
    waits = replicas > child.replicas and needs_settling(child) and not readiness.settled
    written = child.replicas if waits else replicas
    body = _body(child, written, initial, also, {} if waits or notes is None else notes)
    pending = unsettled(child) if waits else ""
    if not body:
        return Write((), pending) if waits else NO_WRITE
    event = _event(child, written, event_ref) if event_ref is not None and written != child.replicas else None
    return Write((guarded(child, body, why, event),), pending)


def needs_settling(child: Child) -> bool:
    """Whether groups may still be on their way out that a raise must not count as its own (50 §7.6)."""
    status = child.obj.get("status") or {}
    more = max(status.get("replicas", 0), status.get("readyReplicas", 0))
    return child.has_pending_scale_down or more > child.replicas


def unsettled(child: Child) -> str:
    """The sentence about a child whose scale-down is not over."""
    return f"the previous scale-down of LeaderWorkerSet {child.name} has not settled"


def _body(
    child: Child,
    replicas: int,
    initial: int | None,
    also: Mapping[str, Any] | None,
    notes: Mapping[str, str | None],
) -> Obj:
    """The merge patch, empty if it would change nothing."""
    there = annotations_of(child.obj)
    annotations = {key: text for key, text in notes.items() if there.get(key) != text}
    if initial is not None and child.initial != initial:
        annotations[names.INITIAL_REPLICAS_ANNOTATION] = str(initial)
    if replicas < child.replicas and not child.has_pending_scale_down:
        annotations[names.SCALE_DOWN_PENDING_ANNOTATION] = "true"
    if replicas > child.replicas and child.has_pending_scale_down:
        annotations[names.SCALE_DOWN_PENDING_ANNOTATION] = None
    spec: Obj = {**(also or {}), **({"replicas": replicas} if replicas != child.replicas else {})}
    body: Obj = {}
    if annotations:
        body["metadata"] = {"annotations": annotations}
    if spec:
        body["spec"] = spec
    return body


def guarded(child: Child, body: Obj, why: str, event: Event | None = None) -> Patch:
    """The patch of a child that fails if it is another one or not as it was seen.

    Its status may have changed: a step that stopped half-way because of that would go on with other counts.
    """

    def bound(obj: Obj) -> Obj:
        return {**body, "metadata": {**body.get("metadata", {}), "resourceVersion": version_of(obj)}}

    return Patch(
        kind=LEADER_WORKER_SET,
        key=key_of(child.obj),
        uid=child.uid,
        body=bound(child.obj),
        why=why,
        on_success=event,
        on_failure=_failed(child),
        errors={"Conflict": OnError.REQUEUE},
        anew=lambda live: bound(live) if _is_as_seen(child, live, body) else None,
    )


def _is_as_seen(child: Child, live: Obj, body: Obj) -> bool:
    """Whether a child is still what was decided on: only its status has changed, and forbids neither a raise nor, since
    Ready groups were lost, that more of them go."""
    now = Child.of(live)
    lowers = body.get("spec", {}).get("replicas", child.replicas) < child.replicas
    return (
        not (lowers and _ready(now) < _ready(child))
        and now.uid == child.uid
        and generation_of(live) == generation_of(child.obj)
        and labels_of(live) == labels_of(child.obj)
        and annotations_of(live) == annotations_of(child.obj)
        and live["metadata"].get("ownerReferences") == child.obj["metadata"].get("ownerReferences")
        and now.is_terminating == child.is_terminating
        and (needs_settling(child) or not needs_settling(now))
    )


def _ready(child: Child) -> int:
    return (child.obj.get("status") or {}).get("readyReplicas", 0)


def _event(child: Child, replicas: int, ref: ObjectRef) -> Event:
    grows = replicas > child.replicas
    reason, word = (names.EVENT_SCALING_UP, "up") if grows else (names.EVENT_SCALING_DOWN, "down")
    note = f"Scaling {word} {child.role} LWS {child.name} from {child.replicas} to {replicas} replicas"
    return Event(ref, reason, names.ACTION_UPDATE, note, related=ref_of(child.obj, LEADER_WORKER_SET))


def _failed(child: Child) -> Event:
    """The event of its set that a child was not changed."""
    owner = controller_of(child.obj) or {}
    ref = ObjectRef(
        names.API_VERSION, names.KIND, key_of(child.obj).namespace, owner.get("name", ""), owner.get("uid", "")
    )
    note = f"Failed to update LeaderWorkerSet {child.name}: {{error}}"
    related = ref_of(child.obj, LEADER_WORKER_SET)
    return Event(ref, names.EVENT_FAILED_UPDATE, names.ACTION_UPDATE, note, "Warning", related)
