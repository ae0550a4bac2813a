"""What the scenarios of Hash mode share: groups have no numbers, so they are told apart by their keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lwskit.api import names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import DEPLOYMENT, POD, REPLICA_SET, STATEFUL_SET, Kind
from lwskit.runtime.objects import Obj, condition_of, is_deleting, is_true, labels_of, uid_of
from tests.scenarios.behind import rests
from tests.scenarios.support import ALL_KINDS, Sets, set_object

HASH = {"groupIdentity": names.IDENTITY_HASH}


@dataclass(frozen=True, slots=True)
class Group:
    """The pods of one group that exist."""

    key: str
    leader: Obj | None
    workers: tuple[Obj, ...]

    @property
    def pods(self) -> tuple[Obj, ...]:
        """All of them."""
        return (*((self.leader,) if self.leader is not None else ()), *self.workers)

    @property
    def uids(self) -> frozenset[str]:
        """Their UIDs."""
        return frozenset(uid_of(pod) for pod in self.pods)

    @property
    def name(self) -> str:
        """The leader's name."""
        assert self.leader is not None, f"group {self.key} has no leader"
        return self.leader["metadata"]["name"]

    @property
    def host(self) -> str:
        """The leader's host name, which is the name of the workers' workload too."""
        assert self.leader is not None, f"group {self.key} has no leader"
        return self.leader["spec"]["hostname"]

    @property
    def gated(self) -> bool:
        """Whether the leader waits at its gate."""
        return self.leader is not None and is_gated(self.leader)

    @property
    def ready(self) -> bool:
        """Whether the leader is ready, and so the whole group."""
        return self.leader is not None and is_true(self.leader, "Ready")


def is_gated(pod: Obj) -> bool:
    """Whether a pod has the gate of group replacement."""
    return any(g["name"] == names.GROUP_REPLACEMENT_GATE for g in pod["spec"].get("schedulingGates") or ())


class HashSets(Sets):
    """Sets in Hash mode."""

    kind_of_workers = STATEFUL_SET

    def __init__(self, cluster: Any) -> None:
        super().__init__(cluster, DEPLOYMENT)

    async def create(self, name: str = "llm", **fields: Any) -> Obj:
        """Create a set in Hash mode; arguments as for `set_object`."""
        return await self.cluster.create(LEADER_WORKER_SET, set_object(name, **{**HASH, **fields}))

    async def groups(self, name: str = "llm") -> dict[str, Group]:
        """The groups of a set that have pods, by key."""
        found: dict[str, list[Obj]] = {}
        for pod in (await self.pods(name)).values():
            found.setdefault(labels_of(pod)[names.GROUP_KEY_LABEL], []).append(pod)
        return {key: _group(key, pods) for key, pods in found.items()}

    async def living(self, name: str = "llm") -> dict[str, Group]:
        """The groups whose leaders are not being deleted, by key."""
        groups = await self.groups(name)
        return {k: g for k, g in groups.items() if g.leader is not None and not is_deleting(g.leader)}

    async def has_groups(self, count: int, *, size: int, gated: int = 0, name: str = "llm") -> dict[str, Group]:
        """Wait until a set has so many groups that are complete, and so many leaders at their gate; nothing else."""

        async def check() -> dict[str, Group]:
            groups = await self.groups(name)
            assert sorted(len(g.pods) for g in groups.values()) == sorted([size] * count + [1] * gated), groups.keys()
            assert sum(g.gated for g in groups.values()) == gated
            assert not any(is_deleting(p) for g in groups.values() for p in g.pods)
            return groups

        return await self.cluster.eventually(check)

    async def settled(self) -> None:
        """Wait until nothing changes any more, and no workload's controller is behind."""
        kinds: tuple[Kind, ...] = (*ALL_KINDS, DEPLOYMENT, REPLICA_SET)
        await rests(self.cluster, *dict.fromkeys(kinds))

    async def workers(self, name: str = "llm") -> dict[str, Obj]:
        """The StatefulSets of workers, by name."""
        return {w["metadata"]["name"]: w for w in await self.cluster.list(STATEFUL_SET, f"{names.NAME_LABEL}={name}")}

    async def leader(self, pod: str) -> Obj:
        """A pod by name."""
        return await self.cluster.get(POD, pod)


async def said(sets: HashSets, leader: str, ready: str) -> None:
    """Wait until a leader's condition says whether its workers are ready."""

    async def check() -> None:
        condition = condition_of(await sets.leader(leader), names.GROUP_READY_GATE)
        assert condition is not None
        assert condition["status"] == ready

    await sets.cluster.eventually(check)


def _group(key: str, pods: list[Obj]) -> Group:
    leader = next((p for p in pods if labels_of(p)[names.WORKER_INDEX_LABEL] == "0"), None)
    return Group(key, leader, tuple(p for p in pods if p is not leader))
