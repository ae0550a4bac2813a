"""A set in Ordinal mode as it is, and where its rollout goes: read after 20 §6."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lwskit.api import names
from lwskit.runtime.kinds import STATEFUL_SET
from lwskit.runtime.objects import Obj, annotations_of, controller_of, is_deleting, is_true, uid_of
from tests.scenarios.world import Group, Wanted, World, is_leader, key_of


@dataclass(frozen=True, slots=True)
class Asked:
    """What the leader workload asks for at a moment."""

    at: float
    uid: str
    replicas: int
    partition: int
    key: str
    recorded: str


class OrdinalWorld(World):
    """What there is of a set whose leaders are in a StatefulSet."""

    leaders = STATEFUL_SET

    def is_mine(self, leader: Obj) -> bool:
        owner = controller_of(leader)
        return owner is None or (self.workload is not None and owner["uid"] == uid_of(self.workload))

    def is_alone(self, leader: Obj) -> bool:
        return self.lws is not None and self.lws["spec"]["leaderWorkerTemplate"]["size"] == 1

    def place_of(self, leader: Obj) -> int:
        return ordinal_of(leader)

    def works(self, group: Group, key: str) -> bool:
        """Whether a group of an older revision is not ready only since it has no workers, as it was to have none."""
        leader = self.pods[group.uid]
        return group.key != key and is_true(leader, "Ready") and annotations_of(leader)[names.SIZE_ANNOTATION] == "1"

    def leaders_down(self) -> int:
        """How many leaders the StatefulSet controller counts as unavailable."""
        assert self.workload is not None
        replicas = self.workload["spec"]["replicas"]
        found = [p for p in self.pods.values() if is_leader(p) and ordinal_of(p) < replicas]
        return replicas - sum(is_true(p, "Ready") and not is_deleting(p) for p in found)


def asked(workload: Obj, at: float) -> Asked:
    spec = workload["spec"]
    return Asked(
        at,
        uid_of(workload),
        spec["replicas"],
        spec["updateStrategy"]["rollingUpdate"].get("partition", 0),
        key_of(workload),
        annotations_of(workload).get(names.REPLICAS_ANNOTATION, ""),
    )


def ordinal_of(leader: Obj) -> int:
    return int(leader["metadata"]["name"].rpartition("-")[2])


def stopped(groups: Mapping[int, Group], now: Asked, wanted: Wanted) -> tuple[int, list[int]]:
    """Where the partition goes by 20 §6.5, and the groups below its base that are not ready."""

    def done(i: int) -> bool:
        return i in groups and groups[i].ready and groups[i].key == groups[i].workers_key == now.key

    def ready(i: int) -> bool:
        return i in groups and groups[i].ready

    def updated(i: int) -> bool:
        return i in groups and groups[i].key == groups[i].workers_key == now.key

    tail = next((n for n, i in enumerate(reversed(range(now.replicas))) if not done(i)), now.replicas)
    step = wanted.unavailable + wanted.surge - (wanted.most - now.replicas)
    base = max(0, now.replicas - tail - step)
    below = [i for i in range(base) if not ready(i)]
    p = base + len(below)
    for i in range(min(p, now.replicas - 1), base - 1, -1):
        if ready(i) and not updated(i):
            break
        p = i
    return max(min(p, now.partition), wanted.partition), below


def unfinished(groups: Mapping[int, Group], key: str, wanted: Wanted) -> Iterator[int]:
    """The groups that are to stay and are not ready and of that revision."""
    for i in range(wanted.replicas):
        group = groups.get(i)
        if group is None or not group.ready or not group.key == group.workers_key == key:
            yield i
