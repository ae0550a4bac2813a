"""What the decisions talk about: groups, the state of a set, plans for leaders and workers, snapshots. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

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


@dataclass(frozen=True, slots=True)
class GroupState:
    """One group's state as a rollout sees it (specification: 20 §6.2)."""

    counted: bool
    """Its leader exists and, where the set has workers, so does their workload."""
    ready: bool
    """Leader and workers are ready."""
    updated: bool
    """Leader and workers are of the revision asked for."""
    exhausted: bool = False
    """It has used up its restarts."""


# Bits of a group in `Groups`, and of a leader and its workers in `SetState.flags`.
COUNTED, READY, UPDATED, EXHAUSTED = 1, 2, 4, 8
HAS_LEADER, LEADER_READY, HAS_WORKERS, WORKERS_READY, IS_EXHAUSTED = 1, 2, 4, 8, 16
OVERFLOW = 255
"""The revision number of groups whose revisions are in `SetState.overflow`: more of them live than fit in a byte."""

_FINISHED = bytes(s for s in range(16) if s & (READY | UPDATED) == READY | UPDATED)


def _seen(flags: int, alone: bool) -> int:
    """Bits of one group from the facts about its leader and workers; `alone` for sets of size 1."""
    counted = bool(flags & HAS_LEADER) and (alone or bool(flags & HAS_WORKERS))
    ready = counted and bool(flags & LEADER_READY) and (alone or bool(flags & WORKERS_READY))
    exhausted = bool(flags & HAS_LEADER) and bool(flags & IS_EXHAUSTED)
    return counted * COUNTED | ready * READY | exhausted * EXHAUSTED


_SEEN = {alone: bytes(_seen(flags, alone) for flags in range(256)) for alone in (True, False)}


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of a set in ordinal order, against one revision; a byte each, so that counting costs next to nothing.

    Specification: 20 §6.2 and §8.2.
    """

    states: bytes

    def __len__(self) -> int:
        return len(self.states)

    def __getitem__(self, ordinal: int) -> GroupState:
        s = self.states[ordinal] if 0 <= ordinal < len(self.states) else 0
        return GroupState(bool(s & COUNTED), bool(s & READY), bool(s & UPDATED), bool(s & EXHAUSTED))

    def __iter__(self) -> Iterator[GroupState]:
        return (self[i] for i in range(len(self.states)))

    def first(self, count: int) -> Groups:
        """The first `count` groups; those that nothing is known about are neither ready nor updated."""
        return Groups(self.states[:count].ljust(count, b"\0"))

    def at(self, ordinals: Sequence[int]) -> Groups:
        """The groups of these ordinals, in this order."""
        if isinstance(ordinals, range) and ordinals.start == 0 and ordinals.step == 1:
            return self.first(len(ordinals))
        known = self.states
        return Groups(bytes(known[i] if 0 <= i < len(known) else 0 for i in ordinals))

    def arranged(self, ordinals: Sequence[int]) -> Groups:
        """The groups of these ordinals, in this order, and after them all others that are known of."""
        if isinstance(ordinals, range) and ordinals.start == 0 and ordinals.step == 1:
            return Groups(self.states.ljust(len(ordinals), b"\0"))
        asked = set(ordinals)
        others = bytes(s for i, s in enumerate(self.states) if s and i not in asked)
        return Groups(self.at(ordinals).states + others)

    def count(self, bits: int, without: int = 0, start: int = 0, stop: int | None = None) -> int:
        """How many of the groups from `start` to before `stop` have all of `bits` and none of `without`."""
        part = self.states[start:stop]
        return sum(part.count(s) for s in range(16) if s & bits == bits and not s & without)

    def finished_tail(self) -> int:
        """How many groups from the end backwards are ready and updated, up to the first that is not."""
        return len(self.states) - len(self.states.rstrip(_FINISHED))


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

    def groups(self, revision: str, alone: bool) -> Groups:
        """The groups against the revision with that key; `alone` if the set's size is 1: leaders only."""

        def same(pair: tuple[str, str]) -> bool:
            return pair[0] == revision and (alone or pair[1] == revision)

        seen = self.flags.translate(_SEEN[alone])
        numbers = bytearray(256)
        for number, pair in self.pairs.items():
            numbers[number] = UPDATED * same(pair)
        updated = bytearray(self.revisions.translate(bytes(numbers)))
        for ordinal, pair in self.overflow.items():
            updated[ordinal] = UPDATED * same(pair)
        merged = int.from_bytes(seen, "little") | int.from_bytes(updated, "little")
        return Groups(merged.to_bytes(len(seen), "little"))


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
    led_by: str = ""
    """The kind that leads the set if it is none of this manager's; looked for only where there is no `workload`."""
    healthy: bool = True
    """False while a watch that feeds `state` is known to be broken: then nothing is taken down."""


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
    """For a leader at its gate: all pods with the set's name label."""
    node: Obj | None = None
    """The leader's Node, once a NeedFresh has asked for it."""
    live: frozenset[tuple[Kind, Key]] = frozenset()
    """What was read live for this snapshot, found or not: the keys of earlier NeedFresh answers."""
