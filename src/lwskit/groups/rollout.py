"""The rolling update: which partition and how many leaders. One formula, pure.

Specification: 20 §6; the functions are named after its sections, the tables of §7 are its tests.
"""

from __future__ import annotations

from dataclasses import dataclass

from lwskit.groups import spec
from lwskit.groups.model import READY, UPDATED, DecisionError, Groups, LeaderState
from lwskit.runtime.objects import Obj


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user wants of a rollout, in groups: percentages are already counted out against `replicas`."""

    replicas: int
    max_unavailable: int
    max_surge: int
    partition: int

    @classmethod
    def of(cls, lws: Obj) -> Settings:
        """From a set's spec. Raises DecisionError for a value that is neither an integer nor a percentage."""
        return cls(spec.replicas(lws), spec.max_unavailable(lws), spec.max_surge(lws), spec.partition(lws))

    @property
    def burst(self) -> int:
        """Leaders with the full surge present."""
        return self.replicas + self.max_surge


@dataclass(frozen=True, slots=True)
class Target:
    """What the leader workload shall have, and why."""

    partition: int
    replicas: int
    why: str
    reclaimed: range = range(0)
    """Ordinals of surge groups that are given up."""


def target(now: LeaderState | None, groups: Groups, settings: Settings, *, new_revision: bool) -> Target:
    """The next partition and replicas; the first case of the table in §6.4 that fits.

    `groups` are the leaders that `now` asks for, in order, against the current revision. Raises UnrecordedReplicas
    where that has to be known.
    """
    found = _by_case(now, groups, settings, new_revision)
    return Target(max(found.partition, settings.partition), found.replicas, found.why, found.reclaimed)


def _by_case(now: LeaderState | None, groups: Groups, settings: Settings, new_revision: bool) -> Target:
    wanted = settings.replicas
    if now is None:
        return Target(0, wanted, "the set has no leaders yet")
    if new_revision:
        partition = min(wanted, now.replicas)
        why = "the template changed: no group is touched before the rollout starts from the end"
        if now.replicas < wanted:
            return Target(partition, wanted, why)
        return _with_surge(Target(partition, 0, why), now, settings, unfinished=wanted)
    if now.partition == 0 and now.replicas == wanted:
        return Target(0, wanted, "no rollout is going on")
    if now.replicas < wanted:
        return Target(now.partition, wanted, "groups are added before anything else")
    left = unfinished(groups, wanted)
    if recorded_replicas(now) != wanted:
        kept = Target(min(now.partition, settings.burst), 0, "the number of replicas changed")
        return _with_surge(kept, now, settings, unfinished=left)
    partition, why = next_partition(now, groups, settings)
    return _with_surge(Target(partition, 0, why), now, settings, unfinished=left)


def adopted(settings: Settings, standing: int, *, outdated: bool) -> Target:
    """The first target of a leader workload that takes over leaders in the middle of a rollout.

    They were left behind by a workload that was deleted without them: no group is touched before they are known, if one
    is of an older revision, and surge that is there stays. `standing` is one more than the highest ordinal of them.
    """
    replicas = max(settings.replicas, min(standing, settings.burst))
    partition = max(settings.partition, settings.replicas if outdated else 0)
    return Target(partition, replicas, "leaders that are there are taken over before the rollout goes on with them")


class UnrecordedReplicas(DecisionError):
    """The leader workload does not say for how many replicas of the set it was last written."""


def recorded_replicas(now: LeaderState) -> int:
    """`spec.replicas` of the set when the leader workload was last written. Raises UnrecordedReplicas."""
    text = now.recorded
    if text is None or not spec.is_count(text):
        told = f"the leader workload's replicas annotation is {text and text[:20]!r}; it must be the number of replicas"
        raise UnrecordedReplicas(told)
    return int(text)


def unfinished(groups: Groups, wanted: int) -> int:
    """u of §6.3: how many of the groups that stay are not both ready and updated."""
    return wanted - groups.first(wanted).count(READY | UPDATED)


def surged(settings: Settings, left: int) -> int:
    """R(u) of §6.3: leaders while `left` groups are unfinished. Surge goes when the budget covers what is missing."""
    if left <= settings.max_surge:
        return settings.replicas + max(0, left - settings.max_unavailable)
    return settings.burst


def _with_surge(base: Target, now: LeaderState, settings: Settings, *, unfinished: int) -> Target:
    replicas = surged(settings, unfinished)
    return Target(base.partition, replicas, base.why, range(replicas, now.replicas))


def next_partition(now: LeaderState, groups: Groups, settings: Settings) -> tuple[int, str]:
    """The partition of §6.5 and the reason for it; never above the present one."""
    tail = groups.finished_tail()
    step = settings.max_unavailable + settings.max_surge - (settings.burst - now.replicas)
    base = max(0, now.replicas - tail - step)
    below = base - groups.count(READY, stop=base)
    start = base + below
    found = skip_broken(groups, start, base)
    partition = min(found, now.partition)
    why = f"{tail} groups at the end are done and {step} may be down: the update may reach down to group {base}"
    if below:
        why += f", less {below} for groups below it that are not ready"
    if partition == now.partition:
        why += f"; group {partition} and those after it are already being updated"
    return partition, why


def skip_broken(groups: Groups, start: int, base: int) -> int:
    """§6.5 step 5: go on past groups that lose nothing by an update, being down or updated already."""
    top = min(start, len(groups) - 1)
    last = groups.last_outdated(base, top + 1)
    return start if last >= top else last + 1


def unrecorded(now: LeaderState, settings: Settings) -> Target:
    """The target of leaders that have lost their record of replicas: as they are, so that it is put back."""
    why = "the record of replicas is put back first, for without it no step of the rollout can be decided"
    replicas = max(settings.replicas, min(now.replicas, settings.burst))
    return Target(max(now.partition, settings.partition), replicas, why)


BROKEN_WATCH = "a watch is broken: nothing is taken down until the state of the groups is known again"
UNKNOWN_LEADERS = (
    "the leader workload or its leaders are put right first: nothing is taken down until its groups are known again"
)


def held(found: Target, now: LeaderState | None, settings: Settings, why: str) -> Target:
    """The target while the state of the groups cannot be trusted: nothing is taken down but what the user gave up."""
    if now is None:
        return found
    replicas = found.replicas
    if now.recorded == str(settings.replicas):
        replicas = max(replicas, now.replicas)
    return Target(max(found.partition, now.partition), replicas, why)
