"""What holds a rollout where it is: the arithmetic of the partition, told in words. Pure.

Specification: 20 §6.5; the numbers are those that `rollout.next_partition` goes by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from lwskit.groups import rollout
from lwskit.groups.model import READY, UPDATED, Groups, LeaderState


class Cause(Enum):
    """Why the partition does not go down."""

    UPDATING = "updating"
    """A group that is being updated is not ready yet."""
    REPLACING = "replacing"
    """A group that the update has reached is still as it was: the StatefulSet controller takes no more leaders down."""
    FORMULA = "formula"
    """Groups that the update has not reached are not ready, and count against the budget (20 §6.5 step 4)."""
    BUDGET = "budget"
    """No group may be down, and there is no surge."""
    PARTITION = "partition"
    """The user's partition."""


@dataclass(frozen=True, slots=True)
class Hold:
    """What holds a rollout: the cause, the group that it is about, and the groups that are down below it.

    `group` is the highest that is not finished; for FORMULA the ready old group at which the update stops: once it is
    down, the update goes on with it. -1 where the cause is about no group. `below` is for FORMULA, and for REPLACING
    where groups that the update has not reached are alone as many as may be down: no update will make them ready.
    """

    cause: Cause
    group: int = -1
    below: tuple[int, ...] = ()


def told(hold: Hold, settings: rollout.Settings) -> str:
    """The hold in a sentence without a full stop."""
    match hold.cause:
        case Cause.UPDATING:
            return f"the set waits for group {hold.group}, which is not ready"
        case Cause.REPLACING:
            most = max(1, settings.max_unavailable + settings.max_surge)
            when = "once no leader is down" if most == 1 else f"once fewer than {most} leaders are down"
            if hold.below:
                are = "is" if len(hold.below) == 1 else "are"
                return (
                    f"the rollout is held by {numbered(hold.below)}, which the update has not reached and which {are} "
                    f"not ready: group {hold.group} is next and still of an older revision, and the StatefulSet "
                    f"controller replaces it {when}"
                )
            return (
                f"group {hold.group} is next and still of an older revision: the StatefulSet controller replaces it "
                f"{when}"
            )
        case Cause.FORMULA:
            are, they = ("is", "it is") if len(hold.below) == 1 else ("are", "they are")
            return (
                f"the rollout is held by {numbered(hold.below)}, which the update has not reached and which {are} not "
                f"ready: {they} counted among the groups that may be down, so the update does not go on to group "
                f"{hold.group}, which is ready"
            )
        case Cause.BUDGET:
            return (
                f"no group may be down: maxUnavailable comes to {settings.max_unavailable} of {settings.replicas} "
                f"groups and maxSurge to {settings.max_surge}, so the rollout never goes on"
            )
        case Cause.PARTITION:
            kept = range(min(settings.partition, settings.replicas))
            have = "it has" if len(kept) == 1 else "they have"
            return f"the partition {settings.partition} keeps {numbered(kept)} on the revision that {have}"


def advice(hold: Hold, name: str, namespace: str) -> tuple[str, ...]:
    """What a person can do about a hold, as sentences; commands stand in backquotes."""
    delete = f"kubectl -n {namespace} delete pod {name}-"
    mend: tuple[str, ...] = ()
    if hold.below:
        mend = (f"make {numbered(hold.below)} ready: `{delete}{hold.below[0]}` starts one anew, on the old revision",)
    match hold.cause:
        case Cause.FORMULA:
            return (
                *mend,
                f"if the old revision cannot become ready: `{delete}{hold.group}` lets the update go on with group "
                f"{hold.group}, though one more group is down meanwhile; or raise maxUnavailable",
            )
        case Cause.BUDGET:
            return ("set maxUnavailable to a number of at least 1, or maxSurge",)
        case Cause.PARTITION:
            return ("lower spec.rolloutStrategy.rollingUpdateConfiguration.partition to go on",)
        case Cause.REPLACING:
            return (
                *mend,
                f"`{delete}{hold.group}` makes it anew from the new revision at once, though one more group is down "
                "then",
            )
        case Cause.UPDATING:
            return ()


def numbered(ordinals: Sequence[int]) -> str:
    """Groups in words: `group 3`, `groups 0, 1 and 4`, `groups 0 to 9`."""
    found = sorted(ordinals)
    if len(found) == 1:
        return f"group {found[0]}"
    if len(found) > 2 and found[-1] - found[0] == len(found) - 1:
        return f"groups {found[0]} to {found[-1]}"
    return f"groups {', '.join(map(str, found[:-1]))} and {found[-1]}" if found else "no group"


def find(now: LeaderState, groups: Groups, settings: rollout.Settings) -> Hold | None:
    """What holds the rollout of the leaders that `now` asks for, None if nothing does or there is none."""
    wanted, groups = settings.replicas, groups.first(now.replicas)
    window = groups.first(wanted).count(UPDATED, start=settings.partition)
    tail = groups.finished_tail()
    unfinished = now.replicas - tail - 1
    if unfinished >= now.partition:
        return (
            replacing(now, groups, settings, unfinished)
            if _stops(groups, unfinished)
            else Hold(Cause.UPDATING, unfinished)
        )
    if window >= wanted - settings.partition:
        return Hold(Cause.PARTITION) if settings.partition and _is_old(groups, settings.partition) else None
    if now.partition <= settings.partition:
        return Hold(Cause.PARTITION)
    step = settings.max_unavailable + settings.max_surge - (settings.burst - now.replicas)
    if step <= 0:
        return Hold(Cause.BUDGET)
    base = max(0, now.replicas - tail - step)
    start = base + base - groups.count(READY, stop=base)
    if rollout.skip_broken(groups, start, base) < now.partition:
        return None
    below = tuple(i for i in range(base) if not groups[i].ready)
    stop = next((i for i in range(min(start, len(groups) - 1), -1, -1) if _stops(groups, i)), -1)
    return Hold(Cause.FORMULA, stop, below)


def replacing(now: LeaderState, groups: Groups, settings: rollout.Settings, group: int) -> Hold:
    """The hold at a group that the update has reached, and whose leader the StatefulSet controller is to replace."""
    below = tuple(i for i in range(now.partition) if not groups[i].ready)
    lasts = len(below) >= max(1, settings.max_unavailable + settings.max_surge)
    return Hold(Cause.REPLACING, group, below if lasts else ())


def _stops(groups: Groups, ordinal: int) -> bool:
    group = groups[ordinal]
    return group.ready and not group.updated


def _is_old(groups: Groups, partition: int) -> bool:
    """Whether a group below the partition is not of the current revision."""
    return groups.count(UPDATED, stop=partition) < min(partition, len(groups))
