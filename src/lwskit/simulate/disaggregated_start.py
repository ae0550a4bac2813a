"""From the objects of a cluster to the set that a simulation begins with. Pure."""

from __future__ import annotations

from datetime import datetime

from lwskit.disaggregated.family import Family, LeadersOf
from lwskit.disaggregated.model import Child
from lwskit.groups import spec
from lwskit.groups.ports import WorkerBackend
from lwskit.groups.scene import Scene, is_leader_pod
from lwskit.runtime.objects import Obj
from lwskit.simulate import hashed_start, start
from lwskit.simulate.disaggregated_world import Group, Judge, World


def world(family: Family, ds: Obj, leaders_of: LeadersOf, workers: WorkerBackend, now: datetime, judge: Judge) -> World:
    """The family as it is, with `ds`, which may be an edit of its set.

    Groups that are not ready become so if their pods show no trouble. `judge` says which children are refused.
    """
    own = family.own
    mine = {child.name for child in own}
    found = World(
        ds,
        now,
        judge,
        children={child.name: child.obj for child in own},
        others={o["metadata"]["name"]: o for o in family.children if o["metadata"]["name"] not in mine},
        scalers={o["metadata"]["name"]: o for o in family.scalers},
    )
    for child in own:
        scene = family.scenes.get(child.name)
        found.groups[child.uid] = _groups(child, scene, leaders_of, workers, now) if scene is not None else []
    numbered = [group for groups in found.groups.values() for group in groups]
    for number, group in enumerate(numbered):
        group.number = number - len(numbered)
    found.observe()
    return found


def _groups(child: Child, scene: Scene, leaders_of: LeadersOf, workers: WorkerBackend, now: datetime) -> list[Group]:
    """The groups of a child that are there to stay; their leaders as they are."""
    leaders = leaders_of(child.obj)
    if spec.is_hashed(child.obj):
        members = hashed_start.observe(scene, leaders, workers, now).groups
        alive = [one for one in members if one.alive]
        return [Group(0, i, one.pod, one.ready, one.stuck, one.size) for i, one in enumerate(alive)]
    pods = {pod["metadata"]["name"]: pod for pod in scene.pods if is_leader_pod(pod)}
    groups = start.observe(scene, leaders, workers, now).groups
    return [
        Group(0, ordinal, pods[f"{child.name}-{ordinal}"], one.ready, one.stuck, one.size)
        for ordinal, one in sorted(groups.items())
        if not one.terminating
    ]
