"""A set in Hash mode as it is, and what its Deployment asks for (30 §2, §4, §13)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lwskit.api import names
from lwskit.runtime.kinds import DEPLOYMENT, REPLICA_SET
from lwskit.runtime.objects import Obj, annotations_of, controller_of, is_deleting, is_true, labels_of, uid_of
from tests.scenarios.hash.support import is_gated
from tests.scenarios.world import World, counted, is_leader, key_of

ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Asked:
    """What the Deployment asks for at a moment."""

    at: float
    uid: str
    replicas: int
    unavailable: int
    surge: int
    key: str
    recorded: str
    """How many groups the manager says that the set wants."""

    @property
    def floor(self) -> int:
        """How many groups are to be ready at least."""
        return max(0, self.replicas - self.unavailable)

    @property
    def most(self) -> int:
        """How many groups there may be."""
        return self.replicas + self.surge


def asked(deployment: Obj, at: float) -> Asked:
    """What a Deployment asks for, percentages counted out; it takes one down at a time where it may do neither."""
    spec = deployment["spec"]
    pace, replicas = spec["strategy"]["rollingUpdate"], spec["replicas"]
    down, more = counted(pace["maxUnavailable"], replicas, math.floor), counted(pace["maxSurge"], replicas, math.ceil)
    return Asked(
        at,
        uid_of(deployment),
        replicas,
        down if down or more else 1,
        more,
        key_of(deployment),
        annotations_of(deployment).get(names.REPLICAS_ANNOTATION, ""),
    )


class HashWorld(World):
    """What there is of a set whose leaders are in a Deployment. A group is known by the UID of its leader."""

    leaders = DEPLOYMENT
    between = (REPLICA_SET,)

    def is_mine(self, leader: Obj) -> bool:
        made = self.makers.get((controller_of(leader) or {}).get("uid", ""))
        return made is not None and _owner(made) in ("", uid_of(self.workload) if self.workload is not None else "")

    def is_alone(self, leader: Obj) -> bool:
        return annotations_of(leader)[names.SIZE_ANNOTATION] == "1"

    def place_of(self, leader: Obj) -> str:
        return uid_of(leader)

    def mine(self) -> list[Obj]:
        """All leaders of the set's."""
        return [p for p in self.pods.values() if is_leader(p) and self.is_mine(p)]

    def gated(self) -> list[Obj]:
        """Leaders that wait at their gate."""
        return [p for p in self.mine() if is_gated(p) and not is_deleting(p)]

    def active_of(self, maker: str) -> list[Obj]:
        """The pods that a ReplicaSet counts."""
        pods = (p for p in self.pods.values() if _owner(p) == maker)
        return [p for p in pods if not is_deleting(p) and (p.get("status") or {}).get("phase") not in ENDED]

    def serving(self) -> set[str]:
        """The leaders that the Deployment counts as available, by UID."""
        found = (p for p in self.mine() if not is_deleting(p) and is_true(p, "Ready"))
        return {uid_of(p) for p in found if (p.get("status") or {}).get("phase") not in ENDED}

    def taking_places(self) -> set[str]:
        """The keys of groups of which a pod is, or may get, on a node."""
        pods = (p for p in self.pods.values() if labels_of(p).get(names.NAME_LABEL) == self.name)
        return {group_key(p) for p in pods if not is_gated(p)}


def group_key(pod: Obj) -> str:
    """The key of a pod's group."""
    return labels_of(pod)[names.GROUP_KEY_LABEL]


def _owner(obj: Obj) -> str:
    return (controller_of(obj) or {}).get("uid", "")
