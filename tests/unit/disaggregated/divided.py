"""Children that are divided among sub-roles, and their groups, for the tests of the decisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lwskit.api import disaggregated_names as names
from lwskit.api import names as base
from lwskit.disaggregated.model import Child, Part, Readiness, Ready, Write
from lwskit.disaggregated.scene import Scene, Targets
from lwskit.disaggregated.subroles import tally
from lwskit.disaggregated.subroles.groups import Partition, read
from lwskit.runtime.kinds import POD, REPLICA_SET, STATEFUL_SET
from lwskit.runtime.objects import Obj, annotations_of, controller_reference, labels_of, uid_of
from lwskit.runtime.plan import Patch
from tests.unit.disaggregated.scenes import NOW, REVISION, child_object, ds_object, role, scene

Counts = Mapping[str, int]
READY = Readiness(ready=Ready(1, 1))
OLD = "0ddba11a"


def divided_role(name: str = "prefill", /, *external: str, **replicas: int) -> Obj:
    """A role with these sub-roles, those of `external` scaled from outside."""
    subroles: list[Obj] = [{"name": sub, "replicas": count} for sub, count in replicas.items()]
    subroles += [{"name": sub, "scaling": {"mode": names.SCALING_EXTERNAL}} for sub in external]
    return role(name, None, subRoles=subroles)


def divided(
    issued: Counts | None,
    *,
    first: Counts | None = None,
    plan: Counts | str | None = None,
    replicas: int | None = None,
    revision: str = REVISION,
    pending_down: bool = False,
    initial: int | None = None,
    hashed: bool = False,
    **metadata: Any,
) -> Obj:
    """A child of the role `prefill` as its annotations have it."""
    total = sum((issued or {}).values()) if replicas is None else replicas
    notes: dict[str, str] = {}
    if issued is not None:
        first = issued if first is None else first
        notes[names.SUBROLE_REPLICAS_ANNOTATION] = tally.written(issued)
        notes[names.INITIAL_SUBROLE_REPLICAS_ANNOTATION] = tally.written(first)
        initial = sum(first.values()) if initial is None else initial
    if plan is not None:
        notes[names.SUBROLE_PLAN_ANNOTATION] = plan if isinstance(plan, str) else tally.written(plan)
    if pending_down:
        notes[names.SCALE_DOWN_PENDING_ANNOTATION] = "true"
    obj = child_object("prefill", total, revision=revision, initial=initial, annotations=notes, **metadata)
    if hashed:
        obj["spec"]["groupIdentity"] = base.IDENTITY_HASH
    return obj


def pod(name: str, group: str, index: int, label: str = "", *, hashed: bool = False, **fields: Any) -> Obj:
    """One pod; `fields`: `ready`, `leaving`, `annotations`, `created`."""
    labels = {base.NAME_LABEL: "child", base.GROUP_INDEX_LABEL: group, base.WORKER_INDEX_LABEL: str(index)}
    if label:
        labels[names.SUBROLE_LABEL] = label
    kind = REPLICA_SET if hashed else STATEFUL_SET
    owner = {"metadata": {"name": "child", "uid": "maker"}}
    annotations = dict(fields.get("annotations", {}))
    if hashed:
        annotations[base.GROUP_IDENTITY_ANNOTATION] = base.IDENTITY_HASH
    metadata: Obj = {
        "name": name,
        "namespace": "prod",
        "uid": f"{name}-uid",
        "resourceVersion": "1",
        "creationTimestamp": fields.get("created", "2026-11-30T11:00:00Z"),
        "labels": labels,
        "annotations": annotations,
        "ownerReferences": [controller_reference(owner, kind)],
    }
    if fields.get("leaving"):
        metadata["deletionTimestamp"] = "2026-11-30T11:59:00Z"
    ready = str(fields.get("ready", True))
    return {
        "apiVersion": POD.api_version,
        "kind": POD.kind,
        "metadata": metadata,
        "spec": {"nodeName": f"node-{name}"},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]},
    }


def pods_of(labels: Sequence[str], *, size: int = 1, unready: Iterable[int] = (), hashed: bool = False) -> list[Obj]:
    """The pods of groups 0, 1, … with these labels, of `size` pods each; `-` stands for a group that is not there."""
    found: list[Obj] = []
    for i, label in enumerate(labels):
        if label == "-":
            continue
        fields = {"ready": i not in {*unready}, "hashed": hashed}
        found.append(pod(f"child-{i}", str(i), 0, label, **fields))
        found += [pod(f"child-{i}-{w}", str(i), w, label, **fields) for w in range(1, size)]
    return found


def partition(pods: Iterable[Obj], ordinals: int | None) -> Partition:
    """The groups of these pods, of a leader workload that wants so many; None in Hash mode."""
    groups = read(pods, lambda leader: leader["status"]["conditions"][0]["status"] == "True")
    return Partition(groups, None if ordinals is None else range(ordinals))


def divided_scene(
    ds: Obj | Counts,
    children: Obj | Sequence[Obj],
    pods: Sequence[Obj] = (),
    *,
    targets: Mapping[Part, int] | None = None,
    known: bool = True,
    settled: bool = True,
) -> Scene:
    """The scene of slice 0; the pods are those of the first child."""
    objects = [children] if isinstance(children, dict) else [*children]
    if "spec" not in ds:
        ds = ds_object(divided_role(**dict(ds)))
    assert isinstance(ds, dict)
    base_scene = scene(ds, objects, counts={})
    parts = dict(targets or {})
    if targets is None:
        parts = {Part(r.name, s.name): s.replicas for r in base_scene.spec.roles for s in r.subroles}
        parts |= {Part(r.name): r.replicas for r in base_scene.spec.roles if not r.subroles}
    roles: dict[str, int] = {}
    for part, count in parts.items():
        roles[part.role] = roles.get(part.role, 0) + count
    partitions = {}
    for i, obj in enumerate(objects):
        hashed = obj["spec"].get("groupIdentity") == base.IDENTITY_HASH
        mine = pods if i == 0 else ()
        partitions[uid_of(obj)] = partition(mine, None if hashed else obj["spec"]["replicas"])
    readiness = {uid_of(obj): replace(READY, known=known, settled=settled) for obj in objects}
    return replace(base_scene, targets=Targets(parts, roles), readiness=readiness, partitions=partitions, now=NOW)


def child_of(found: Scene, index: int = 0) -> Child:
    """A child of a scene."""
    return found.children[index]


def patches(write: Write) -> list[Patch]:
    """The patches of a write, in order."""
    return [action for action in write.actions if isinstance(action, Patch)]


def relabelled(write: Write) -> list[tuple[str, str | None]]:
    """The pods whose label a write changes, with the new one."""
    return [
        (p.key.name, p.body["metadata"]["labels"][names.SUBROLE_LABEL])
        for p in patches(write)
        if p.kind == POD and "labels" in p.body["metadata"]
    ]


def notes_of(write: Write) -> dict[str, str | None]:
    """The annotations that the one patch of a child changes."""
    (found,) = [p for p in patches(write) if p.kind != POD]
    return dict(found.body["metadata"].get("annotations", {}))


def after(pods: Sequence[Obj], write: Write) -> list[Obj]:
    """The pods as the patches of a write leave them."""
    found = {uid_of(one): one for one in pods}
    for action in patches(write):
        if action.kind == POD:
            found[action.uid] = _patched(found[action.uid], action.body["metadata"])
    return [*found.values()]


def child_after(obj: Obj, write: Write) -> Obj:
    """The child as the patches of a write leave it."""
    for action in patches(write):
        if action.kind != POD and action.uid == uid_of(obj):
            obj = {**_patched(obj, action.body["metadata"]), "spec": {**obj["spec"], **action.body.get("spec", {})}}
    return obj


def _patched(obj: Obj, change: Mapping[str, Any]) -> Obj:
    labels = _merged(labels_of(obj), change.get("labels", {}))
    notes = _merged(annotations_of(obj), change.get("annotations", {}))
    assert change["resourceVersion"] == obj["metadata"]["resourceVersion"]
    version = str(int(change["resourceVersion"]) + 1)
    metadata = {**obj["metadata"], "labels": labels, "annotations": notes, "resourceVersion": version}
    return {**obj, "metadata": metadata}


def _merged(old: Mapping[str, str], change: Mapping[str, str | None]) -> dict[str, str]:
    found = {**old, **change}
    return {key: text for key, text in found.items() if text is not None}
