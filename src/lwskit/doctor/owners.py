"""What nobody owns any more: Services, workloads, pods and scalers whose set is gone. Pure.

Specification: 50 §15, §18; 20 §4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lwskit.api import disaggregated_names, names
from lwskit.disaggregated.kinds import DISAGGREGATED_SET, ROLE_SCALER
from lwskit.doctor import findings
from lwskit.doctor.findings import Finding, delete, found
from lwskit.doctor.ward import KINDS, Owner, Ward, disaggregated_name, is_group_less, overdue
from lwskit.groups import ownership
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import CONTROLLER_REVISION, DEPLOYMENT, POD, REPLICA_SET, SERVICE, STATEFUL_SET, Kind
from lwskit.runtime.objects import Obj, is_deleting, labels_of

STUCK_SECONDS = 600.0
"""How long after it should be gone a deletion is told of."""
PRIVATE_SUFFIX = "-prv"
"""How the Services end that v0.10 made for roles (specification: 50 §15)."""
_SHOWN = 3
_OWNED: dict[Kind, str] = {
    SERVICE: f"{LEADER_WORKER_SET.kind} or leader pod",
    STATEFUL_SET: f"{LEADER_WORKER_SET.kind} or leader pod",
    DEPLOYMENT: LEADER_WORKER_SET.kind,
    REPLICA_SET: DEPLOYMENT.kind,
    CONTROLLER_REVISION: LEADER_WORKER_SET.kind,
    ROLE_SCALER: DISAGGREGATED_SET.kind,
}
"""What is looked at one by one, and whose it should be. Pods are told of by set, for there may be very many."""


def without_owner(ward: Ward) -> Iterator[Finding]:
    """Objects of sets that have no owner, or whose owner is gone."""
    for kind, owner in _OWNED.items():
        for obj in ward.of(kind):
            if is_deleting(obj) or not _is_of_a_set(kind, obj):
                continue
            if kind == SERVICE and _is_private(obj):
                yield _private(ward, obj)
            else:
                yield from _orphan(ward, kind, obj, owner)
    yield from _pods(ward)


def _is_of_a_set(kind: Kind, obj: Obj) -> bool:
    """Whether a manager made an object, as far as its labels tell; anybody may label a Service like a set."""
    if kind == ROLE_SCALER:
        return True
    if kind == SERVICE:
        name, of = obj["metadata"]["name"], ownership.set_name(obj)
        headless = (obj.get("spec") or {}).get("clusterIP") == "None"
        return headless and (_is_private(obj) or (bool(of) and (name == of or name.startswith(f"{of}-"))))
    return bool(ownership.set_name(obj))


def _is_private(service: Obj) -> bool:
    of_role = disaggregated_name(service) and labels_of(service).get(disaggregated_names.ROLE_LABEL)
    return bool(of_role) and service["metadata"]["name"].endswith(PRIVATE_SUFFIX)


def _private(ward: Ward, service: Obj) -> Finding:
    gone = ward.owner(service)[0] in (Owner.GONE, Owner.REPLACED, Owner.NONE)
    text = "is one of those that v0.10 made for roles: nothing makes or looks after them any more"
    return found(
        findings.PRIVATE_SERVICE,
        SERVICE,
        service,
        text + (", and its owner is gone" if gone else ""),
        f"have clients use Service {service['metadata']['name'].removesuffix(PRIVATE_SUFFIX)} or the labels of pods, "
        f"then {delete(SERVICE, service)}",
    )


def _orphan(ward: Ward, kind: Kind, obj: Obj, owner: str) -> Iterator[Finding]:
    state, of_kind, name = ward.owner(obj)
    what = f"{of_kind.kind if of_kind is not None else owner} {name}"
    if state is Owner.GONE:
        yield _gone(findings.OWNER_GONE, kind, obj, f"belongs to {what}, which does not exist any more")
    elif state is Owner.REPLACED:
        yield _gone(findings.OWNER_REPLACED, kind, obj, f"belongs to an earlier {what}, not to the one that there is")
    elif state is Owner.NONE:
        of = disaggregated_name(obj) if kind == ROLE_SCALER else ownership.set_name(obj)
        yield found(
            findings.NO_OWNER,
            kind,
            obj,
            f"has the label of {'set ' + of if of else 'no set'} and no owner: nothing deletes it with its set",
            f"if nothing uses it, {delete(kind, obj)}",
        )


def _gone(code: str, kind: Kind, obj: Obj, message: str) -> Finding:
    return found(code, kind, obj, message, f"{COLLECTED}: {delete(kind, obj)}", passes=True)


COLLECTED = "the garbage collector deletes it, unless it does not run or a finalizer keeps the object"


def _pods(ward: Ward) -> Iterator[Finding]:
    """Pods by set: those that belong to nobody, and those that no webhook has given a place in a group."""
    lost: dict[tuple[str, str], list[Obj]] = {}
    bare: dict[tuple[str, str], list[Obj]] = {}
    for pod in ward.of(POD):
        of = ownership.set_name(pod)
        if not of or is_deleting(pod):
            continue
        key = (pod["metadata"]["namespace"], of)
        if ward.owner(pod)[0] is Owner.NONE:
            lost.setdefault(key, []).append(pod)
        elif is_group_less(pod):
            bare.setdefault(key, []).append(pod)
    for (namespace, of), pods in sorted(lost.items()):
        message = f"has {_names(pods)} without an owner: nothing makes them anew or deletes them"
        hint = f"if nothing uses them, `kubectl -n {namespace} delete pod {_listed(pods)}`"
        yield Finding(findings.NO_OWNER, names.KIND, namespace, of, message, hint)
    for (namespace, of), pods in sorted(bare.items()):
        message = f"has {_names(pods)} without a place in a group: no webhook answered when they were made"
        hint = f"see that the webhooks answer, then `kubectl -n {namespace} delete pod {_listed(pods)}`"
        yield Finding(findings.NO_PLACE, names.KIND, namespace, of, message, hint)


def _names(pods: list[Obj]) -> str:
    more = len(pods) - _SHOWN
    shown = ", ".join(p["metadata"]["name"] for p in pods[:_SHOWN])
    return f"{len(pods)} pod{'' if len(pods) == 1 else 's'} ({shown}{f' and {more} more' if more > 0 else ''})"


def _listed(pods: list[Obj]) -> str:
    return " ".join(p["metadata"]["name"] for p in pods[:_SHOWN]) + (" …" if len(pods) > _SHOWN else "")


def not_deleted(ward: Ward) -> Iterator[Finding]:
    """Objects that should have been gone for long."""
    for kind in KINDS:
        for obj in ward.of(kind):
            late = overdue(obj, ward.now, STUCK_SECONDS)
            if late is not None and _is_ours(kind, obj):
                yield found(
                    findings.DELETION_STUCK,
                    kind,
                    obj,
                    f"has been deleted for {late / 60:.0f} min and is still there{_kept(obj)}",
                    _about_keeping(kind, obj),
                )


def _is_ours(kind: Kind, obj: Obj) -> bool:
    return kind in (LEADER_WORKER_SET, DISAGGREGATED_SET) or _is_of_a_set(kind, obj)


def _kept(obj: Obj) -> str:
    finalizers: Iterable[str] = obj["metadata"].get("finalizers") or ()
    listed = ", ".join(finalizers)
    return f", kept by finalizer {listed}" if listed else ""


def _about_keeping(kind: Kind, obj: Obj) -> str:
    finalizers = obj["metadata"].get("finalizers") or ()
    if not finalizers and kind == POD:
        node = (obj.get("spec") or {}).get("nodeName") or ""
        return f"see whether node {node} is alive" if node else "see why its API server keeps it"
    if "foregroundDeletion" in finalizers or "orphan" in finalizers:
        return "see whether the garbage collector runs, and which of its dependents are left"
    return "see whether what should take the finalizer away runs"
