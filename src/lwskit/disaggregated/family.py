"""A DisaggregatedSet with its children and all that belongs to them, at one moment: what plans and explanations read.
Pure.

What a running manager knows from its watches is read here from the objects themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated import readiness, sight
from lwskit.disaggregated.decide import Named, named, owned
from lwskit.disaggregated.kinds import DISAGGREGATED_SET, ROLE_SCALER
from lwskit.disaggregated.model import Child, Readiness, Snapshot
from lwskit.disaggregated.readiness import Seen
from lwskit.disaggregated.revision import resolve
from lwskit.disaggregated.subroles.groups import Partition
from lwskit.groups import spec
from lwskit.groups.belongings import Belongings
from lwskit.groups.identity import is_leader
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.pool import group_name
from lwskit.groups.ports import LeaderBackend, WorkerBackend
from lwskit.groups.scene import Happening, Scene, happening, is_event
from lwskit.groups.scene import of as scene_of
from lwskit.runtime.objects import (
    Obj,
    annotations_of,
    controller_of,
    is_deleting,
    is_of,
    labels_of,
)

LeadersOf = Callable[[Obj], LeaderBackend]
"""From a LeaderWorkerSet to the backend of its leaders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One set. `children` are the LeaderWorkerSets with its name in their label, and those with names that its children
    are to have; `scalers` likewise, of any owner. `scenes` are those of the children by name."""

    namespace: str
    name: str
    ds: Obj | None
    children: tuple[Obj, ...] = ()
    scalers: tuple[Obj, ...] = ()
    scenes: Mapping[str, Scene] = field(default_factory=dict)
    happenings: tuple[Happening, ...] = ()
    """Events about the set itself, oldest first."""
    blind: str = ""
    """Why no events are known, empty where those that there are were read."""
    strangers: tuple[Obj, ...] = ()
    """The other LeaderWorkerSets and scalers of the namespace: an edit may come to need their names."""

    def edited(self, ds: Obj) -> Family:
        """The family as it is for an edit of its set: with the strangers that have names which `ds` needs."""
        if resolve(ds, owned(ds, self.children)).must_mark:
            # A new set is marked before anything is made for it.
            marks = {**annotations_of(ds), names.REVISION_HASH_VERSION_ANNOTATION: names.HASH_VERSION}
            ds = {**ds, "metadata": {**ds["metadata"], "annotations": marks}}
        needed = named(ds, self.children)
        met = [o for o in self.strangers if o["metadata"]["name"] in _wanted(needed, o)]
        return replace(
            self,
            children=(*self.children, *(o for o in met if is_of(o, LEADER_WORKER_SET))),
            scalers=(*self.scalers, *(o for o in met if is_of(o, ROLE_SCALER))),
        )

    @property
    def own(self) -> tuple[Child, ...]:
        """The children that the set owns."""
        return owned(self.ds, self.children) if self.ds is not None else ()

    def snapshot(self, leaders_of: LeadersOf, workers: WorkerBackend, now: datetime) -> Snapshot:
        """What the manager would decide on."""
        found: dict[str, Readiness] = {}
        partitions: dict[str, Partition] = {}
        for child in self.own:
            scene = self.scenes.get(child.name)
            if scene is None:
                continue
            leaders = leaders_of(child.obj)
            partition = partition_of(scene, leaders, workers)
            if partition is not None:
                partitions[child.uid] = partition
            found[child.uid] = readiness_of(child, scene, leaders, workers, now, partition)
        return Snapshot(self.ds, self.children, self.scalers, found, partitions, now)


def readiness_of(
    child: Child,
    scene: Scene,
    leaders: LeaderBackend,
    workers: WorkerBackend,
    now: datetime,
    partition: Partition | None = None,
) -> Readiness:
    """What is ready of a child; one that has not taken up what it was asked for is given no time to."""
    return readiness.of(child, _seen(child, scene, leaders, workers, now, partition))


def _seen(
    child: Child,
    scene: Scene,
    leaders: LeaderBackend,
    workers: WorkerBackend,
    now: datetime,
    partition: Partition | None,
) -> Seen:
    workload = sight.workload_of(child.obj, scene.workload)
    led = [pod for pod in scene.pods if is_leader(pod)]
    if workload is None:
        return Seen(is_whole=not any(not is_deleting(pod) for pod in led))
    return sight.seen(
        child,
        leaders.observe(workload),
        scene.pool if spec.is_hashed(child.obj) else scene.state(leaders, workers),
        ordinals=leaders.ordinals(workload),
        is_whole=all(controller_of(pod) is not None for pod in led),
        leaving=[pod for pod in scene.pods if is_deleting(pod)],
        waiting=readiness.unschedulable(scene.pods, now),
        leaders_of=lambda group: [pod for pod in led if group_name(pod) == group],
        partition=partition,
    )


def partition_of(scene: Scene, leaders: LeaderBackend, workers: WorkerBackend) -> Partition | None:
    """The groups of a child that is divided among sub-roles; None for one that is not."""
    lws = scene.lws
    if lws is None or not sight.is_divided(lws):
        return None
    workload = sight.workload_of(lws, scene.workload)
    return sight.partition_of(lws, leaders, workload, scene.pods, lambda: scene.state(leaders, workers))


def _wanted(needed: Named, obj: Obj) -> Sequence[str]:
    return needed.scalers if is_of(obj, ROLE_SCALER) else needed.children


def of(
    objects: Sequence[Obj], namespace: str, name: str, leaders_of: LeadersOf, workers: WorkerBackend, blind: str = ""
) -> Family:
    """The family of one set among any objects of a cluster; `blind` is why events are not known."""
    here = [o for o in objects if o["metadata"].get("namespace") == namespace]
    ds = next((o for o in here if is_of(o, DISAGGREGATED_SET) and o["metadata"]["name"] == name), None)
    sets = [o for o in here if is_of(o, LEADER_WORKER_SET)]
    labelled = [o for o in sets if labels_of(o).get(names.NAME_LABEL) == name]
    needed = named(ds, labelled)
    children = tuple(o for o in sets if o in labelled or o["metadata"]["name"] in needed.children)
    scalers = tuple(
        o
        for o in here
        if is_of(o, ROLE_SCALER)
        and (labels_of(o).get(names.NAME_LABEL) == name or o["metadata"]["name"] in needed.scalers)
    )
    met = {id(o) for o in (*children, *scalers)}
    belongings = Belongings(o for o in objects if o["metadata"].get("namespace") in (None, "", namespace))
    events = sorted(map(happening, filter(is_event, here)), key=lambda h: h.time)
    return Family(
        namespace=namespace,
        name=name,
        ds=ds,
        children=children,
        scalers=scalers,
        scenes={
            child["metadata"]["name"]: replace(
                scene_of(belongings.of(child), namespace, child["metadata"]["name"], leaders_of(child), workers),
                blind=blind,
            )
            for child in children
        },
        happenings=tuple(h for h in events if (h.kind, h.name) == (names.KIND, name)),
        blind=blind,
        strangers=tuple(o for o in here if id(o) not in met and (is_of(o, LEADER_WORKER_SET) or is_of(o, ROLE_SCALER))),
    )
