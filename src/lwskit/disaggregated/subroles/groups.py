"""The groups of one child as sub-roles see them: which label each has on all its pods, and whether it is ready. Pure.

Specification: 50 §13. The leader is authoritative and labelled last, so a group that is half-way counts for nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lwskit.api import disaggregated_names as names
from lwskit.groups import budget
from lwskit.groups.identity import has_hash_identity, is_leader, parse_ordinal
from lwskit.groups.pool import group_name
from lwskit.runtime.objects import Obj, controller_of, is_deleting, labels_of, uid_of
from lwskit.runtime.ranking import is_active


@dataclass(frozen=True, slots=True)
class LabelledGroup:
    """One group: its leader, and those of its workers that are not being deleted.

    `ordinal` is -1 in Hash mode. `leaving` says that the leader is being deleted or has ended, `losing` that one of its
    workers is being deleted, `ready` that leader and workers are ready, whatever their labels.
    """

    ordinal: int
    leader: Obj
    workers: tuple[Obj, ...] = ()
    ready: bool = False
    leaving: bool = False
    losing: bool = False
    exhausted: bool = False

    @property
    def order(self) -> tuple[int, str]:
        """Where it stands among the groups of its child: by ordinal, then by the leader's name (50 §13)."""
        return self.ordinal, self.name

    @property
    def name(self) -> str:
        """The leader's name."""
        return self.leader["metadata"]["name"]

    @property
    def uid(self) -> str:
        """The leader's UID, by which the group is known."""
        return uid_of(self.leader)

    @property
    def label(self) -> str:
        """What the leader's label says, empty without one."""
        return label_of(self.leader)

    @property
    def subrole(self) -> str:
        """The sub-role that it counts for: what all its pods say; empty where they do not agree."""
        label = self.label
        return label if all(label_of(pod) == label for pod in self.workers) else ""

    @property
    def coherent(self) -> bool:
        """Whether all its pods have the same label, or all have none."""
        return all(label_of(pod) == self.label for pod in self.workers)


@dataclass(frozen=True, slots=True)
class Partition:
    """What was observed of one child whose groups are divided among sub-roles: the groups, in their order, and in
    Ordinal mode the ordinals that the leader workload wants, those that stay longest first."""

    groups: tuple[LabelledGroup, ...] = ()
    ordinals: Sequence[int] | None = None

    @property
    def alive(self) -> tuple[LabelledGroup, ...]:
        """The groups whose leaders are there to stay."""
        return tuple(group for group in self.groups if not group.leaving)

    def first(self, count: int) -> tuple[LabelledGroup, ...]:
        """The living groups of the first `count` ordinals; in Hash mode all that live. A hole pulls nobody in."""
        if self.ordinals is None:
            return self.alive
        wanted = {*self.ordinals[:count]}
        return tuple(group for group in self.alive if group.ordinal in wanted)


NO_PARTITION = Partition()


def label_of(pod: Mapping[str, object]) -> str:
    """The sub-role that a pod's label names, empty without one."""
    return labels_of(pod).get(names.SUBROLE_LABEL, "")


def read(pods: Iterable[Obj], ready: Callable[[Obj], bool]) -> tuple[LabelledGroup, ...]:
    """The groups that these pods of one child make up, in their order; `ready` says of a leader whether its group is.

    Leaders that nothing controls lead no group of the child, and workers without a leader belong to none.
    """
    leaders: list[Obj] = []
    workers: dict[str, list[Obj]] = {}
    for pod in pods:
        if not is_leader(pod):
            workers.setdefault(group_name(pod), []).append(pod)
        elif controller_of(pod) is not None:
            leaders.append(pod)
    latest: dict[str, Obj] = {}
    for leader in leaders:
        # Two leaders of one group: the one that stays has its workers.
        known = latest.get(group_name(leader))
        if known is None or is_deleting(known):
            latest[group_name(leader)] = leader
    found = [_group(one, _workers_of(one, workers, latest), ready(one)) for one in leaders]
    return tuple(sorted(found, key=lambda group: group.order))


def _workers_of(leader: Obj, workers: Mapping[str, Sequence[Obj]], latest: Mapping[str, Obj]) -> tuple[Obj, ...]:
    group = group_name(leader)
    if latest[group] is not leader:
        return ()
    return tuple(sorted(workers.get(group, ()), key=lambda pod: pod["metadata"]["name"]))


def _group(leader: Obj, workers: tuple[Obj, ...], ready: bool) -> LabelledGroup:
    ordinal = -1 if has_hash_identity(leader) else parse_ordinal(leader["metadata"]["name"])[1]
    staying = tuple(pod for pod in workers if not is_deleting(pod))
    return LabelledGroup(
        ordinal,
        leader,
        staying,
        ready,
        leaving=not is_active(leader),
        losing=len(staying) < len(workers),
        exhausted=budget.is_exhausted(leader),
    )
