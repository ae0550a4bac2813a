"""The groups of sets in Hash mode, which have no order: kept up to date as pods change. Pure.

Specification: 30 §7, §12. What the pool holds is a function of the pods it was told of, not of the order in which they
came.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from lwskit.api import names
from lwskit.groups import budget, gates, ownership
from lwskit.groups.identity import has_hash_identity, is_leader, parse_ordinal
from lwskit.groups.poolstate import NO_POOL, LeaderFacts, Line, Made, Place, PoolState, Tally
from lwskit.runtime.kinds import POD, Kind
from lwskit.runtime.objects import Key, Obj, controller_of, is_deleting, is_true, key_of, labels_of, uid_of

K = TypeVar("K", bound=Hashable)
_ENDED = ("Succeeded", "Failed")


@dataclass(slots=True)
class _Group:
    """The pods of one group: how many there are, and how many of them are living leaders."""

    pods: int = 0
    alive: int = 0

    @property
    def is_torn_down(self) -> bool:
        """Whether it still takes its place although its leader is gone or going."""
        return self.pods > 0 and not self.alive


class _Set:
    """The groups of one set."""

    __slots__ = (
        "ended",
        "exhausted",
        "gated",
        "groups",
        "leaders",
        "lines",
        "made",
        "state",
        "taken",
        "tallies",
        "torn_down",
    )

    def __init__(self) -> None:
        self.groups: dict[str, _Group] = {}
        self.leaders: dict[str, LeaderFacts] = {}
        self.tallies: dict[str, list[int]] = {}
        self.gated: dict[str, list[Place]] = {}
        self.exhausted: dict[str, list[Place]] = {}
        self.lines: dict[tuple[str, str], list[Place]] = {}
        self.taken: Counter[tuple[str, str]] = Counter()
        self.made: dict[str, list[int]] = {}
        self.torn_down = self.ended = 0
        self.state: PoolState | None = None

    def add(self, pod: _Pod) -> None:
        """Take in a pod."""
        self._move(pod, 1)
        if pod.leader is not None:
            self.leaders[pod.leader.place.uid] = pod.leader

    def remove(self, pod: _Pod) -> None:
        """Take a pod out again."""
        self._move(pod, -1)
        if pod.leader is not None:
            del self.leaders[pod.leader.place.uid]

    def _move(self, pod: _Pod, step: int) -> None:
        self.state = None
        group = self.groups.setdefault(pod.group, _Group())
        self.torn_down -= group.is_torn_down
        group.pods += step
        group.alive += step * (pod.leader is not None and pod.leader.alive)
        self.torn_down += group.is_torn_down
        if not group.pods:
            del self.groups[pod.group]
        leader = pod.leader
        if leader is None:
            return
        self.ended += step * (leader.ended and not leader.exhausted)
        if leader.exhausted:
            _place_in(self.exhausted, leader.revision, leader.place, step)
        if not leader.maker:
            return
        tally = self.tallies.setdefault(leader.revision, [0, 0, 0, 0])
        tally[0] += step
        tally[1] += step * (not leader.leaving)
        tally[2] += step * (leader.alive and not leader.gated)
        tally[3] += step * (leader.exhausted and leader.ready and not leader.leaving)
        if not tally[0]:
            del self.tallies[leader.revision]
        made = self.made.setdefault(leader.maker, [0, 0, 0, 0])
        made[0] += step
        made[1] += step * (not leader.leaving)
        made[2] += step * leader.ready
        made[3] += step * (leader.ready and leader.alive)
        if not made[0]:
            del self.made[leader.maker]
        line = (leader.revision, leader.maker)
        self.taken[line] += step * (leader.exhausted or (leader.alive and not leader.gated))
        if not self.taken[line]:
            del self.taken[line]
        if leader.waits:
            _place_in(self.gated, leader.revision, leader.place, step)
            _place_in(self.lines, line, leader.place, step)

    def read(self) -> PoolState:
        """The state as it is now; made once for each change."""
        if self.state is None:
            self.state = PoolState(
                {key: Tally(*counts) for key, counts in self.tallies.items()},
                {key: tuple(row) for key, row in self.gated.items()},
                {key: tuple(row) for key, row in self.exhausted.items()},
                {key: Line(tuple(self.lines.get(key, ())), self.taken[key]) for key in {*self.lines, *self.taken}},
                self.torn_down,
                self.ended,
                {key: Made(*counts[1:]) for key, counts in self.made.items()},
            )
        return self.state


def _place_in(rows: dict[K, list[Place]], key: K, place: Place, step: int) -> None:
    """Put a leader into a row, or with -1 take it out."""
    row = rows.setdefault(key, [])
    at = bisect.bisect_left(row, place)
    if step > 0:
        row.insert(at, place)
    else:
        del row[at]
    if not row:
        del rows[key]


@dataclass(frozen=True, slots=True)
class _Pod:
    """What is remembered of a pod: its set, its group, and for a leader what counts of it."""

    set: Key
    group: str
    leader: LeaderFacts | None


class GroupPool:
    """A view on the informer of pods that answers for all groups of a set at once.

    Sets are known by namespace and name: the pods of an earlier set of the same name take places too. Its methods are
    called inside the informer's store step, so a decision never sees a state older than the event it is made for.
    """

    def __init__(self) -> None:
        self._pods: dict[str, _Pod] = {}
        self._sets: dict[Key, _Set] = {}

    def apply(self, kind: Kind, old: Obj | None, new: Obj | None) -> None:
        """Take in one change of an object: added (no `old`), changed, or removed (no `new`). Only pods count."""
        if kind != POD:
            return
        if old is not None and (new is None or uid_of(old) != uid_of(new)):
            self._forget(uid_of(old))
        if new is not None:
            self._learn(new)

    def replace(self, kind: Kind, objects: Iterable[Obj]) -> None:
        """Take in that these are all pods there are."""
        if kind != POD:
            return
        there = {uid_of(pod): pod for pod in objects}
        for uid in [u for u in self._pods if u not in there]:
            self._forget(uid)
        for pod in there.values():
            self._learn(pod)

    def state_of(self, key: Key) -> PoolState:
        """The state of the groups of the set with that namespace and name."""
        found = self._sets.get(key)
        return found.read() if found is not None else NO_POOL

    def owned(self, key: Key, revision: str) -> frozenset[str]:
        """The groups of a set and revision whose leaders are alive, or kept without a restart left. A walk over all
        leaders of the set, for sets whose restarts are counted.
        """
        found = self._sets.get(key)
        leaders = found.leaders.values() if found is not None else ()
        return frozenset(f.place.group for f in leaders if f.revision == revision and (f.alive or f.exhausted))

    def _learn(self, pod: Obj) -> None:
        uid = uid_of(pod)
        known, seen = self._pods.get(uid), _read(pod)
        if known == seen:
            return
        if known is not None:
            self._forget(uid)
        if seen is not None:
            self._pods[uid] = seen
            self._sets.setdefault(seen.set, _Set()).add(seen)

    def _forget(self, uid: str) -> None:
        known = self._pods.pop(uid, None)
        if known is None:
            return
        groups = self._sets[known.set]
        groups.remove(known)
        if not groups.groups:
            del self._sets[known.set]


def _read(pod: Obj) -> _Pod | None:
    name = ownership.set_name(pod)
    if not name:
        return None
    key = Key(key_of(pod).namespace, name)
    return _Pod(key, group_name(pod), facts_of(pod) if is_leader(pod) else None)


def facts_of(leader: Obj) -> LeaderFacts:
    """What counts of a leader pod."""
    owner = controller_of(leader) if has_hash_identity(leader) else None
    deleting = is_deleting(leader)
    return LeaderFacts(
        revision=ownership.revision_key(leader),
        place=place_of(leader),
        maker=owner["uid"] if owner is not None else "",
        gated=gates.is_gated(leader),
        deleting=deleting,
        ended=has_ended(leader) and not deleting,
        exhausted=budget.is_exhausted(leader),
        ready=is_true(leader, "Ready"),
    )


def has_ended(pod: Obj) -> bool:
    """Whether a pod's containers are over for good. No ReplicaSet counts such a pod, nor removes it."""
    return (pod.get("status") or {}).get("phase") in _ENDED


def group_name(pod: Obj) -> str:
    """What tells a pod's group from others: its label; without one the workload of workers, or the leader itself."""
    label = labels_of(pod).get(names.GROUP_INDEX_LABEL) or labels_of(pod).get(names.GROUP_KEY_LABEL)
    if label:
        return label
    owner = controller_of(pod)
    if is_leader(pod) or owner is None:
        return pod["metadata"]["name"]
    return owner["name"] or parse_ordinal(pod["metadata"]["name"])[0]


def place_of(leader: Obj) -> Place:
    """Where a leader stands among others."""
    meta = leader["metadata"]
    return Place(meta.get("creationTimestamp", ""), meta["name"], uid_of(leader), group_name(leader))
