"""The restart budget of sets in Hash mode, whose next group has another key than the one before. Pure.

Specification: 30 §11. A count belongs to a group that is there; once it is not, the next group that comes takes over
the highest count that no group has.
"""

from __future__ import annotations

from collections.abc import Collection

from lwskit.api import names
from lwskit.groups import budget, counters, ownership, spec
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.model import DecisionError, LeaderState, MemberSnapshot, SetSnapshot
from lwskit.groups.pool import place_of
from lwskit.groups.poolstate import PoolState
from lwskit.groups.ports import LeaderBackend
from lwskit.runtime.objects import Obj, annotations_of, key_of, uid_of
from lwskit.runtime.plan import AnyAction, Modify, OnError, Plan


def claim(snapshot: MemberSnapshot, lws: Obj, leader: Obj) -> tuple[AnyAction, ...] | None:
    """What gives a leader that is admitted the count of a group that is gone; nothing where there is none.

    None for counters that cannot be read: the count is taken over once they can be.
    """
    if not budget.counts_restarts(lws):
        return ()
    key = counters.key_of_group(leader)
    try:
        found = counters.to_hand_over(counters.read(lws), key, snapshot.owned)
    except DecisionError:
        return None
    if not found:
        return ()
    return (
        Modify(
            why=f"leader {leader['metadata']['name']} takes the place of a group that was restarted before",
            kind=LEADER_WORKER_SET,
            key=key_of(lws),
            change=counters.handed_over(key, snapshot.owned, uid_of(lws)),
            errors={"NotFound": OnError.REQUEUE, "Conflict": OnError.REQUEUE},
        ),
    )


def pruned(snapshot: SetSnapshot, lws: Obj, now: LeaderState | None, plan: Plan, current: str) -> Plan:
    """The plan, and after it the counts that no group can take over any more are dropped (30 §11 item 4).

    `current` is the key of the only revision that is left, empty while there may be others. Counters that cannot be
    read hold up nothing else.
    """
    if now is None or not annotations_of(lws).get(names.GROUP_RESTART_COUNTS_ANNOTATION):
        return plan
    spare = _spare(lws, snapshot.pool, now.revision) + snapshot.unclaimed

    def gone(live: Obj) -> Collection[str]:
        found = counters.read(live)
        lost = counters.not_owned(found, now.revision, snapshot.owned)[spare:] if snapshot.healthy else []
        return [*lost, *(counters.of_other_revisions(found, current) if current else ())]

    return budget.uncounted(plan, lws, gone, "no group can take their place")


def _spare(lws: Obj, pool: PoolState, revision: str) -> int:
    """How many groups of a revision may still come and take over a count."""
    wanted, exhausted = spec.replicas(lws), len(pool.exhausted.get(revision, ()))
    occupied = pool.of(revision).admitted + exhausted
    pending = max(0, len(pool.gated.get(revision, ())) - exhausted)
    most = max(wanted, min(wanted + spec.max_surge(lws), occupied + pending))
    return max(0, most - occupied)


def unwanted(snapshot: MemberSnapshot, lws: Obj, leader: Obj, leaders: LeaderBackend) -> budget.Release:
    """Why a marked group of a set in Hash mode is not wanted any more (30 §11 item 5).

    Of a set with fewer groups those are let go that were made last; their counts would fall to other groups.
    """
    name, workload = leader["metadata"]["name"], snapshot.workload
    if budget.is_older(leader, lws):
        return budget.Release(f"leader {name} is of an earlier set of this name")
    if workload is None:
        return budget.WANTED
    revision, now = ownership.revision_key(leader), leaders.observe(workload)
    if now.revision not in ("", revision):
        return budget.Release(f"the set is updated to revision {now.revision}")
    row = snapshot.pool.exhausted.get(revision, ())
    waiting = max(0, len(snapshot.pool.gated.get(revision, ())) - len(row))
    room = max(0, spec.replicas(lws) - (snapshot.pool.of(revision).admitted + waiting))
    if place_of(leader) in row[room:]:
        return budget.Release(f"the group of leader {name} is not wanted any more", with_count=True)
    return budget.WANTED
