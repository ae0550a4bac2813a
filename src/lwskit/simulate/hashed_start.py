"""From the objects of a cluster to the groups that the simulation of a set in Hash mode begins with. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from lwskit.groups import explain_hash, ownership, restarts, revisions, templates
from lwskit.groups.budget import is_exhausted
from lwskit.groups.gates import is_gated
from lwskit.groups.grouptrouble import Looking
from lwskit.groups.pool import facts_of, group_name, has_ended
from lwskit.groups.ports import LeaderBackend, WorkerBackend
from lwskit.groups.scene import Scene, is_leader_pod
from lwskit.runtime.deployment_templates import newest_of_template
from lwskit.runtime.kinds import DEPLOYMENT
from lwskit.runtime.objects import Obj, controller_of, is_controlled_by, is_deleting, is_true, uid_of
from lwskit.simulate.start import as_recorded


@dataclass(slots=True)
class Member:
    """One group in a simulation. `pod` is its leader; of a group without one, a pod that is left of it."""

    name: str
    """How it is told of: by its leader's name, or by its number if the simulation makes it."""
    pod: Obj
    size: int
    number: int = 0
    """From 1 on in the order in which the simulation makes them; 0 and less for those that are there, by age."""
    led: bool = True
    """Its leader exists."""
    stuck: bool = False
    """Its pods are in trouble that does not pass by itself."""
    made: bool = False
    """It starts in the simulation: its leader is made in it, or let in."""

    @property
    def kept(self) -> bool:
        """Whether it stays although it has no restart left."""
        return self.led and is_exhausted(self.pod)

    @property
    def going(self) -> bool:
        """Whether it is on its way out, and takes its place until its pods are gone."""
        return not self.kept and (not self.led or is_deleting(self.pod) or has_ended(self.pod))

    @property
    def gated(self) -> bool:
        """Whether its leader waits at its gate."""
        return self.led and is_gated(self.pod)

    @property
    def alive(self) -> bool:
        """Whether its leader is one that a ReplicaSet counts."""
        return self.led and not is_deleting(self.pod) and not has_ended(self.pod)

    @property
    def ready(self) -> bool:
        """Whether leader and workers are ready, of a group that stays."""
        return self.alive and is_true(self.pod, "Ready")

    @property
    def takes_room(self) -> bool:
        """Whether its pods are on nodes, or may be."""
        return not self.gated

    @property
    def set_uid(self) -> str:
        """UID of the ReplicaSet that made its leader."""
        owner = controller_of(self.pod) if self.led else None
        return owner["uid"] if owner is not None else ""


@dataclass(frozen=True, slots=True)
class Start:
    """Where a simulation begins."""

    lws: Obj | None = None
    base: Obj | None = None
    """The set as its leader workload was last written for."""
    workload: Obj | None = None
    sets: tuple[Obj, ...] = ()
    """The ReplicaSets of the workload."""
    newest: str = ""
    """UID of the one of the present template, empty where there is none yet."""
    groups: tuple[Member, ...] = field(default=())
    revisions: tuple[Obj, ...] = ()
    service: Obj | None = None
    loose: tuple[str, ...] = ()
    """Leaders that no ReplicaSet counts: they are no groups of the set any more, and nobody removes them."""


def observe(scene: Scene, leaders: LeaderBackend, workers: WorkerBackend, now: datetime) -> Start:
    """What is there, as a simulation needs it. A leader workload that is being deleted takes its groups with it."""
    lws, workload = scene.lws, scene.workload
    service = next((s for s in scene.services if s["metadata"]["name"] == scene.name), None)
    if lws is None:
        return Start(service=service)
    if workload is None or is_deleting(workload):
        return Start(lws, revisions=scene.revisions, service=service)
    key = leaders.observe(workload).revision
    chosen = revisions.choose(revisions.own(lws, scene.revisions), key)
    base = revisions.with_revision(lws, chosen) if chosen is not None else as_recorded(lws)
    sets = tuple(s for s in scene.between if is_controlled_by(s, DEPLOYMENT, uid_of(workload)))
    newest = newest_of_template(workload, sets)
    uid = uid_of(newest) if newest is not None else ""
    groups = _groups(scene, lws, leaders, workers, now)
    loose = tuple(p["metadata"]["name"] for p in scene.pods if _is_loose(p))
    return Start(lws, base, workload, sets, uid, groups, scene.revisions, service, loose)


def template_of(lws: Obj, key: str) -> Obj:
    """The leaders' template that is rendered for a set with that revision key."""
    return templates.hashed_leader_plan(lws, key).template


def content_of(lws: Obj, key: str) -> str:
    """What tells the leaders' template of a set from others."""
    return revisions.canonical(template_of(as_recorded(lws), key))


def _groups(
    scene: Scene, lws: Obj, leaders: LeaderBackend, workers: WorkerBackend, now: datetime
) -> tuple[Member, ...]:
    explaining = explain_hash.Explaining(scene, Looking(scene, leaders, workers, now))
    led = sorted((p for p in scene.pods if is_leader_pod(p) and not _is_loose(p)), key=_age)
    found: list[Member] = []
    for i, pod in enumerate(led):
        one = Member(pod["metadata"]["name"], pod, restarts.size_told(pod, lws), i + 1 - len(led))
        if one.alive and not one.ready and not one.gated:
            trouble = explaining.of(pod)
            one.stuck = trouble is not None and not trouble.trouble.passes
        found.append(one)
    known = {group_name(p) for p in scene.pods if is_leader_pod(p)}
    left: dict[str, list[Obj]] = {}
    for pod in scene.pods:
        if not is_leader_pod(pod) and group_name(pod) not in known:
            left.setdefault(group_name(pod), []).append(pod)
    for pods in left.values():
        name = ownership.leader_name(pods[0]) or pods[0]["metadata"]["name"]
        found.append(Member(name, pods[0], len(pods), led=False))
    return tuple(found)


def _is_loose(pod: Obj) -> bool:
    """Whether a pod is a leader that is alive, and that nobody counts: it was let go, or somebody made it."""
    if not is_leader_pod(pod) or controller_of(pod) is not None:
        return False
    facts = facts_of(pod)
    return not facts.maker and facts.alive


def _age(pod: Obj) -> tuple[str, str]:
    return pod["metadata"].get("creationTimestamp", ""), pod["metadata"]["name"]
