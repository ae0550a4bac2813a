"""What is seen of a child's groups, whoever looks: a manager in its cache, or a plan in objects. Pure.

Specification: 50 §7.5, §7.6, §13.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from lwskit.api import names
from lwskit.disaggregated import readiness
from lwskit.disaggregated.model import Child
from lwskit.disaggregated.readiness import Seen
from lwskit.disaggregated.subroles import groups as labelled
from lwskit.disaggregated.subroles import serving
from lwskit.disaggregated.subroles.division import OWN_ANNOTATIONS
from lwskit.disaggregated.subroles.groups import NO_PARTITION, Partition
from lwskit.groups import spec
from lwskit.groups.identity import is_leader, parse_ordinal
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.model import Groups, LeaderState, SetState
from lwskit.groups.pool import facts_of, group_name
from lwskit.groups.poolstate import PoolState
from lwskit.groups.ports import LeaderBackend
from lwskit.runtime.objects import Obj, annotations_of, is_controlled_by, is_true, labels_of, uid_of


def workload_of(lws: Obj, found: Obj | None) -> Obj | None:
    """The leader workload that was found, if this very child controls it."""
    return found if found is not None and is_controlled_by(found, LEADER_WORKER_SET, uid_of(lws)) else None


def seen(
    child: Child,
    state: LeaderState,
    groups: PoolState | SetState,
    *,
    ordinals: Sequence[int],
    is_whole: bool,
    leaving: Sequence[Obj],
    waiting: Sequence[Obj],
    leaders_of: Callable[[str], Iterable[Obj]],
    partition: Partition | None,
) -> Seen:
    """What is seen of a child whose leader workload says `state`.

    `groups` are those of its pool in Hash mode, else those that the group index has; `ordinals` those that its workload
    wants. `leaving` are its pods that are being deleted, `waiting` those that find no node. `leaders_of` finds the
    leaders of a group in Hash mode by its name.
    """
    if isinstance(groups, PoolState):
        losing = _losing(leaving, leaders_of)
        counted, doomed, exchanges = readiness.by_key(groups, state.replicas, losing)
        leaders = groups.leaders
    else:
        # Those of a surge of the child's own are the last ones, and go when it is over.
        staying = ordinals[: child.replicas]
        counted = readiness.by_ordinal(of_revision(child.obj, groups, state), staying, _ordinals(leaving))
        doomed, exchanges = 0, False
        leaders = len(groups.flags) - groups.flags.count(0) + len(groups.strays)
    return Seen(
        workload=state,
        is_whole=is_whole,
        groups=counted,
        doomed=doomed,
        exchanges=exchanges,
        leaders=leaders,
        has_leaving=bool(leaving),
        parts=serving.counted(partition) if partition is not None else {},
        unschedulable=bool(waiting),
        unschedulable_parts=serving.unschedulable(partition, waiting) if partition else frozenset(),
    )


def of_revision(lws: Obj, groups: SetState, state: LeaderState) -> Groups:
    """The groups of a child in Ordinal mode against the revision of its leader workload."""
    return groups.groups(state.revision, spec.size(lws) == 1)


def is_divided(lws: Obj) -> bool:
    """Whether a child's groups are divided among sub-roles, as its annotations say."""
    return not annotations_of(lws).keys().isdisjoint(OWN_ANNOTATIONS)


def partition_of(
    lws: Obj,
    backend: LeaderBackend,
    workload: Obj | None,
    pods: Iterable[Obj],
    groups_of: Callable[[], SetState],
    is_member: Callable[[Obj], bool] = lambda leader: True,
) -> Partition:
    """The groups of a child that is divided among sub-roles, by its own workload and its pods.

    `groups_of` gives those that the group index has of it in Ordinal mode, `is_member` tells which leaders are of them.
    """
    if workload is None:
        return NO_PARTITION if spec.is_hashed(lws) else Partition(ordinals=())
    if spec.is_hashed(lws):
        return Partition(labelled.read(pods, _serves))
    groups = of_revision(lws, groups_of(), backend.observe(workload))

    def is_ready(leader: Obj) -> bool:
        return is_member(leader) and groups[parse_ordinal(leader["metadata"]["name"])[1]].ready

    return Partition(labelled.read(pods, is_ready), backend.ordinals(workload))


def _serves(leader: Obj) -> bool:
    """Whether the group of a leader in Hash mode is ready: its own condition waits for the workers."""
    return (leader.get("status") or {}).get("phase") == "Running" and is_true(leader, "Ready")


def _losing(leaving: Iterable[Obj], leaders_of: Callable[[str], Iterable[Obj]]) -> int:
    """How many sound groups in Hash mode have a worker that is being deleted."""
    losing = {group_name(pod) for pod in leaving if not is_leader(pod)}
    return sum(any(_is_sound(leader) for leader in leaders_of(group)) for group in losing)


def _is_sound(leader: Obj) -> bool:
    facts = facts_of(leader)
    return facts.ready and facts.alive and bool(facts.maker)


def _ordinals(pods: Iterable[Obj]) -> set[int]:
    """The ordinals of the groups that pods belong to."""
    found = (labels_of(pod).get(names.GROUP_INDEX_LABEL, "") for pod in pods)
    return {int(text) for text in found if text.isascii() and text.isdigit()}
