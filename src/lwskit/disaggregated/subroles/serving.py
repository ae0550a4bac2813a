"""Ready groups of a child by sub-role, as `readiness` counts them for the whole child. Pure.

Specification: 50 §13, §7.5.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from lwskit.disaggregated.readiness import Counted
from lwskit.disaggregated.subroles.groups import LabelledGroup, Partition, label_of
from lwskit.runtime.objects import Obj, uid_of


def counted(partition: Partition) -> dict[str, Counted]:
    """The Ready groups of each sub-role that a group is assigned to, and those of them that are there to stay.

    In Ordinal mode those stay whose ordinals the leader workload wants. How many a smaller size may still cost in Hash
    mode is for the caller to take from every sub-role: it may be any of them.
    """
    wanted = None if partition.ordinals is None else {*partition.ordinals}
    found: dict[str, Counted] = {}
    for group in partition.groups:
        if group.subrole and group.ready:
            ready, sound = found.get(group.subrole, Counted())
            found[group.subrole] = Counted(ready + 1, sound + _is_sound(group, wanted))
    return found


def _is_sound(group: LabelledGroup, wanted: Collection[int] | None) -> bool:
    stays = wanted is None or group.ordinal in wanted
    return stays and not (group.leaving or group.losing or group.exhausted)


def unschedulable(partition: Partition, waiting: Iterable[Obj]) -> frozenset[str]:
    """The sub-roles of which one of the pods waits for a node; those of groups without one stand for none."""
    uids = {uid_of(pod) for pod in waiting}
    return frozenset(
        group.label
        for group in partition.groups
        for pod in (group.leader, *group.workers)
        if uid_of(pod) in uids and label_of(group.leader)
    )
