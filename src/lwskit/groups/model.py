"""What the decisions talk about: groups, the state of a set, plans for leaders and workers, snapshots. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from lwskit.groups.poolstate import NO_POOL, PoolState
from lwskit.groups.row import COUNTED as COUNTED
from lwskit.groups.row import EXHAUSTED as EXHAUSTED
from lwskit.groups.row import READY as READY
from lwskit.groups.row import UPDATED as UPDATED
from lwskit.groups.row import Groups as Groups
from lwskit.groups.row import GroupState as GroupState
from lwskit.groups.row import Row
from lwskit.runtime.errors import LwskitError
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Key, Obj


class DecisionError(LwskitError):
    """The cluster's state makes a decision impossible; the reconcile fails with this sentence and is retried."""


@dataclass(frozen=True, slots=True)
class GroupId:
    """Which group a leader pod stands for: the UID of the workload that made it, and the group's index as its label
    tells it (a decimal ordinal, or a group key in Hash mode)."""

    workload_uid: str
    index: str


@dataclass(frozen=True, slots=True)
class Group:
    """One group by identity: its leader pod and the workload that keeps its workers (`workers_uid` empty if none)."""

    id: GroupId
    leader: str
    leader_uid: str
    workers_uid: str = ""


# Bits of a leader and its workers in `SetState.flags`.
HAS_LEADER, LEADER_READY, HAS_WORKERS, WORKERS_READY, IS_EXHAUSTED = 1, 2, 4, 8, 16
OVERFLOW = 255
"""The revision number of groups whose revisions are in `SetState.overflow`: more of them live than fit in a byte."""


def _seen(flags: int, alone: bool) -> int:
    """Bits of one group from the facts about its leader and workers; `alone` for sets of size 1."""
    counted = bool(flags & HAS_LEADER) and (alone or bool(flags & HAS_WORKERS))
    ready = counted and bool(flags & LEADER_READY) and (alone or bool(flags & WORKERS_READY))
    exhausted = bool(flags & HAS_LEADER) and bool(flags & IS_EXHAUSTED)
    return counted * COUNTED | ready * READY | exhausted * EXHAUSTED


_SEEN: Mapping[bool, bytes] = {alone: bytes(_seen(flags, alone) for flags in range(256)) for alone in (True, False)}


class Views:
    """The groups of one set against the revisions that were asked for last, changed group by group."""

    __slots__ = ("_rows", "version")

    def __init__(self) -> None:
        self.version = 0
        """How often a group has changed."""
        self._rows: dict[tuple[str, bool], Row] = {}

    def put(self, ordinal: int, flags: int, pair: tuple[str, str], length: int) -> None:
        """One group as `SetState` has it, of `length` groups; no flags removes it."""
        self.version += 1
        for (revision, alone), row in self._rows.items():
            row.put(ordinal, _SEEN[alone][flags] | UPDATED * (bool(flags) and _same(pair, revision, alone)), length)

    def get(self, revision: str, alone: bool) -> Groups | None:
        """The groups against that revision as they are now, None if they are not kept."""
        row = self._rows.get((revision, alone))
        return row.groups() if row is not None else None

    def keep(self, revision: str, alone: bool, states: bytes) -> Groups:
        """Keep the groups against a revision from now on, `states` being theirs; that of longest ago is let go."""
        if len(self._rows) >= _KEPT:
            del self._rows[next(iter(self._rows))]
        row = self._rows[revision, alone] = Row(states)
        return row.groups()


_KEPT = 2
"""Revisions of a set whose groups are kept: while the first decision after an edit is under way there may be two."""


def _same(pair: tuple[str, str], revision: str, alone: bool) -> bool:
    return pair[0] == revision and (alone or pair[1] == revision)


@dataclass(frozen=True, slots=True)
class SetState:
    """What is known of all groups of a set, by ordinal, without reference to any particular revision or size.

    `flags` has a byte per group (`HAS_LEADER`…). `revisions` has a byte per group: a number of `pairs`, the revision
    keys of a leader and of its workers, interned; `OVERFLOW` where `overflow` has the pair of that ordinal.
    `strays` are leader pods whose group-index label does not say which group they are.
    Specification: architecture, part 4.
    """

    flags: bytes = b""
    revisions: bytes = b""
    pairs: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    overflow: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    strays: tuple[str, ...] = ()

    views: Views | None = field(default=None, compare=False, repr=False)
    """Where `groups` may find its answer ready, and keeps it; it speaks of this state while `version` is its own."""
    version: int = field(default=0, compare=False, repr=False)

    def groups(self, revision: str, alone: bool) -> Groups:
        """The groups against the revision with that key; `alone` if the set's size is 1: leaders only."""
        views = self.views
        if views is None or views.version != self.version:
            return Groups(self._states(revision, alone))
        found = views.get(revision, alone)
        return found if found is not None else views.keep(revision, alone, self._states(revision, alone))

    def _states(self, revision: str, alone: bool) -> bytes:
        seen = self.flags.translate(_SEEN[alone])
        numbers = bytearray(256)
        for number, pair in self.pairs.items():
            numbers[number] = UPDATED * _same(pair, revision, alone)
        updated = bytearray(self.revisions.translate(bytes(numbers)))
        for ordinal, pair in self.overflow.items():
            updated[ordinal] = UPDATED * _same(pair, revision, alone)
        merged = int.from_bytes(seen, "little") | int.from_bytes(updated, "little")
        return merged.to_bytes(len(seen), "little")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderState:
    """What the leader workload says of itself, whatever its kind. Specification: 20 §2, §6.1, §8.1."""

    uid: str
    replicas: int
    """Asked for in its spec, surge included."""
    status_replicas: int
    """Leaders that exist, as its status counts them."""
    partition: int
    revision: str
    """Key of the revision that its template is made from; empty if its label is missing."""
    recorded: str | None
    """`spec.replicas` of the set when it was last written, as its annotation has it."""
    generation: int
    observed_generation: int
    deleting: bool
    settled: bool = True
    """False while a leader that gets lost would be made of an older template, although none of the others is."""
    status_ready: int = 0
    """Ready leaders, as its status counts them; only for kinds that roll out by themselves."""
    status_updated: int = 0
    """Leaders of its current template, as its status counts them; only for kinds that roll out by themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerState:
    """What the workload of one group's workers says of itself. Specification: 20 §6.2 item 4."""

    uid: str
    name: str
    ready: bool
    revision: str
    deleting: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderPlan:
    """All that a backend renders into the workload of a set's leaders. Labels, annotations and template are complete.

    Specification: 20 §5.
    """

    name: str
    namespace: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    owner: Obj
    """The controller reference to the set."""
    replicas: int
    partition: int
    strategy: str
    max_unavailable: int
    """Of leaders, with surge added: what the workload's own update may take down."""
    max_surge: int
    service_name: str
    selector: Mapping[str, str]
    template: Obj
    claims: tuple[Obj, ...] = ()
    retention: Obj | None = None
    revision: str = ""
    pace: Mapping[str, int | str] = field(default_factory=dict)
    """`maxUnavailable` and `maxSurge` as the set has them, for kinds that roll out by themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlan:
    """All that a backend renders into the workload of one group's workers. Specification: 20 §10.4."""

    name: str
    namespace: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    owner: Obj
    """The controller reference to the leader pod."""
    replicas: int
    first_ordinal: int
    service_name: str
    selector: Mapping[str, str]
    template: Obj
    claims: tuple[Obj, ...] = ()
    retention: Obj | None = None


@dataclass(frozen=True, slots=True)
class Victim:
    """A pod that the leader workload would remove next when it shrinks, and why it comes in this place."""

    name: str
    uid: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSnapshot:
    """What the decision about a set is made from (`ordinal.decide`)."""

    now: datetime
    lws: Obj | None
    """The set; None if it is gone."""
    workload: Obj | None = None
    """The leader workload: the object of the backend's kind with the set's name."""
    revisions: Sequence[Obj] = ()
    """ControllerRevisions of the namespace with the set's name label; those of others are sorted out here."""
    shared_service: Obj | None = None
    """The Service with the set's name."""
    state: SetState = SetState()
    """The groups of a set in Ordinal mode."""
    pool: PoolState = NO_POOL
    """The groups of a set in Hash mode."""
    owned: frozenset[str] = frozenset()
    """In Hash mode, where restarts have been counted: keys of the groups of the leader workload's revision that are
    alive or kept without a restart left."""
    unclaimed: int = 0
    """In Hash mode, where restarts have been counted: leaders that are not at their gate any more and may still take
    over the count of a group that is gone."""
    led_by: str = ""
    """The kind that leads the set if it is none of this manager's; looked for only where there is no `workload`."""
    healthy: bool = True
    """False while a watch that feeds `state` is known to be broken: then nothing is taken down."""
    known: bool = True
    """False where `workload` is there and `state` does not know all of its groups: labels or owners, its own or those
    of its leaders, are not what they were."""
    left: Sequence[Obj] = ()
    """Leader pods with the set's label that are not being deleted; looked for only where there is no `workload`."""
    live: frozenset[tuple[Kind, Key]] = frozenset()
    """What was read live for this snapshot, found or not: the keys of earlier NeedFresh answers."""
    status_age: float = math.inf
    """Seconds since this process last wrote the status of the set; infinity if it never has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSnapshot:
    """What the decision about a pod is made from (`member.decide`)."""

    now: datetime
    pod: Obj | None
    """The pod; with `deleted`, as it was last seen. None if it is gone and nothing is known of it."""
    deleted: bool = False
    lws: Obj | None = None
    """The set that the pod's name label names."""
    leader: Obj | None = None
    """The pod that `ownership.leader_name(pod)` names; for a leader the pod itself."""
    owner: Obj | None = None
    """For a worker: the workload that its controller reference names, whatever its UID is now."""
    workers: Obj | None = None
    """The workload of workers with the name `ownership.workers_name(leader)`."""
    workload: Obj | None = None
    """The leader workload: the object of the backend's kind with the set's name."""
    service: Obj | None = None
    """For a leader: the Service with the name `ownership.service_name(pod)`."""
    revisions: Sequence[Obj] = ()
    """ControllerRevisions of the namespace with the set's name label."""
    group_pods: Sequence[Obj] = ()
    """Pods with the pod's name and group-index labels, itself included."""
    namespace: Obj | None = None
    """The pod's Namespace."""
    set_pods: Sequence[Obj] = ()
    """For a leader at its gate in Ordinal mode: all pods with the set's name label."""
    pool: PoolState = NO_POOL
    """For a leader in Hash mode: all groups of the set."""
    owned: frozenset[str] = frozenset()
    """For a leader in Hash mode, where restarts have been counted: keys of the groups of its revision that
    are alive or kept without a restart left."""
    told: bool = False
    """Whether it was told already that this leader waits at its gate."""
    node: Obj | None = None
    """The leader's Node, once a NeedFresh has asked for it."""
    bereft: str = ""
    """UID of the leader whose workers or Service have just gone, where that is why the decision is made."""
    live: frozenset[tuple[Kind, Key]] = frozenset()
    """What was read live for this snapshot, found or not: the keys of earlier NeedFresh answers."""
