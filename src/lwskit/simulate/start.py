"""From the objects of a cluster to the groups that a simulation begins with. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from lwskit.groups import grouptrouble, ownership, restarts, revisions, spec, templates
from lwskit.groups.budget import is_exhausted
from lwskit.groups.identity import parse_ordinal
from lwskit.groups.ports import LeaderBackend, WorkerBackend
from lwskit.groups.scene import Scene, is_leader_pod
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import Obj, controller_of, is_controlled_by, is_deleting, is_true, labels_of, uid_of

_POD_REVISION = "controller-revision-hash"
"""The label by which a StatefulSet tells its pods' revisions apart."""
_ENDED = ("Failed", "Succeeded")


@dataclass(slots=True)
class Group:
    """One group in a simulation. `template` stands for the StatefulSet's revision of its leader."""

    key: str
    template: str
    size: int
    workers_key: str = ""
    leader_ready: bool = False
    workers_ready: bool = False
    has_workers: bool = False
    terminating: bool = False
    ended: bool = False
    kept: bool = False
    """It has used up its restarts: its leader stays until the group is not wanted as it is."""
    made: bool = False
    """The simulation made it."""
    stuck: bool = False
    """Its pods are in trouble that does not pass by itself."""

    @property
    def ready(self) -> bool:
        """Whether leader and workers are ready."""
        return self.leader_ready and (self.size == 1 or (self.has_workers and self.workers_ready))


@dataclass(slots=True)
class Templates:
    """Which templates the StatefulSet knows: their names by content, the revision keys of what is made from them."""

    names: dict[str, str] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    """Pods of a group by revision key."""

    def name_of(self, lws: Obj, key: str) -> str:
        """The name of the template that is rendered for a set with that revision key, a new one if it is not known."""
        name = self.names.setdefault(_content(as_recorded(lws), key), f"template {len(self.names) + 1}")
        self.keys.setdefault(name, key)
        self.sizes.setdefault(key, spec.size(lws))
        return name


@dataclass(frozen=True, slots=True)
class Start:
    """Where a simulation begins."""

    lws: Obj | None
    workload: Obj | None
    groups: dict[int, Group]
    templates: Templates
    current: str
    """The template below the partition."""
    update: str
    """The template from the partition on."""
    claims: tuple[Obj, ...] | None
    """The volume claim templates that the workload was made with."""
    revisions: tuple[Obj, ...]
    service: Obj | None


def observe(scene: Scene, leaders: LeaderBackend, workers: WorkerBackend, now: datetime) -> Start:
    """What is there, as a simulation needs it."""
    lws, workload = scene.lws, scene.workload
    service = next((s for s in scene.services if s["metadata"]["name"] == scene.name), None)
    if lws is None or workload is None:
        return Start(lws, None, {}, Templates(), "", "", None, scene.revisions, service)
    key = leaders.observe(workload).revision
    status = workload.get("status") or {}
    update = status.get("updateRevision") or key
    current = status.get("currentRevision") or update
    mine = revisions.own(lws, scene.revisions)
    pods = [p for p in scene.pods if is_leader_pod(p) and _is_of(p, workload)]
    known = Templates()
    chosen = revisions.choose(mine, key)
    base = revisions.with_revision(lws, chosen) if chosen is not None else as_recorded(lws)
    known.names[_content(base, key)] = update
    known.keys |= {update: key}
    by_key = {ownership.revision_key(p): _template_of(p) for p in pods if _template_of(p) != update}
    for revision in sorted(mine, key=revisions.number_of):
        old, old_key = revisions.with_revision(lws, revision), ownership.revision_key(revision)
        known.sizes[old_key] = spec.size(old)
        if old_key != key:
            known.names.setdefault(_content(old, old_key), by_key.get(old_key, old_key))
            known.keys.setdefault(by_key.get(old_key, old_key), old_key)
    groups: dict[int, Group] = {}
    by_leader = {(controller_of(w) or {}).get("uid", ""): w for w in scene.workers}
    for pod in pods:
        parent, ordinal = parse_ordinal(pod["metadata"]["name"])
        if parent != scene.name or ordinal < 0:
            # Whoever made it, the StatefulSet did not.
            continue
        found = by_leader.get(uid_of(pod))
        group = _group(pod, lws, found, workers)
        known.keys.setdefault(group.template, group.key)
        if not group.ready:
            trouble = grouptrouble.of(grouptrouble.Looking(scene, leaders, workers, now), ordinal)
            group.stuck = trouble is not None and not trouble.trouble.passes
        groups[ordinal] = group
    known.keys.setdefault(current, key)
    return Start(lws, workload, groups, known, current, update, templates.claims(base), scene.revisions, service)


def as_recorded(lws: Obj) -> Obj:
    """The set with its template in the form that revisions have it in, so that the two can be compared."""
    return revisions.with_revision(lws, {"data": revisions.record(lws)})


def _is_of(pod: Obj, workload: Obj) -> bool:
    owner = controller_of(pod)
    return owner is not None and owner["uid"] == uid_of(workload)


def _template_of(pod: Obj) -> str:
    return labels_of(pod).get(_POD_REVISION) or ownership.revision_key(pod)


def same_template(one: Obj, other: Obj) -> bool:
    """Whether leaders of two sets would be made from the same template, but for the name of its revision."""
    return _content(as_recorded(one), "") == _content(as_recorded(other), "")


def _content(lws: Obj, key: str) -> str:
    return revisions.canonical(templates.leader_plan(lws, key, partition=0, replicas=0).template)


def _group(pod: Obj, lws: Obj, workload: Obj | None, workers: WorkerBackend) -> Group:
    phase = (pod.get("status") or {}).get("phase")
    said = workers.observe(workload) if workload is not None and is_controlled_by(workload, POD, uid_of(pod)) else None
    kept = is_exhausted(pod)
    return Group(
        key=ownership.revision_key(pod),
        template=_template_of(pod),
        size=restarts.size_told(pod, lws),
        workers_key=said.revision if said else "",
        leader_ready=phase == "Running" and is_true(pod, "Ready"),
        workers_ready=bool(said and said.ready),
        has_workers=said is not None,
        terminating=is_deleting(pod) and not kept,
        ended=phase in _ENDED and not kept,
        kept=kept,
    )
