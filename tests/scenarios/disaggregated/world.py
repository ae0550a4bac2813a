"""A DisaggregatedSet and all that belongs to it, as the changes told by watches of a test's own make it (50 §1–3)."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from lwskit.api import disaggregated_names as names
from lwskit.api import names as lws_names
from lwskit.disaggregated.kinds import DISAGGREGATED_SET, ROLE_SCALER
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import EVENT, POD, Kind
from lwskit.runtime.objects import Obj, annotations_of, controller_of, is_deleting, is_true, labels_of, uid_of
from lwskit.testing.observer import Change
from tests.scenarios.world import counted, is_leader

KINDS = (DISAGGREGATED_SET, LEADER_WORKER_SET, ROLE_SCALER, POD, EVENT)


@dataclass(frozen=True, slots=True)
class Role:
    """What the set says of one role; `replicas` is None where a scaler says how many groups there are to be."""

    name: str
    replicas: int | None
    unavailable: int | str
    surge: int | str
    spec: Obj

    @classmethod
    def of(cls, role: Obj) -> Role:
        spec = role["spec"]
        pace = (spec.get("rolloutStrategy") or {}).get("rollingUpdateConfiguration") or {}
        external = (role.get("scaling") or {}).get("mode") == names.SCALING_EXTERNAL
        replicas = None if external else spec.get("replicas", 1)
        return cls(role["name"], replicas, pace.get("maxUnavailable", 1), pace.get("maxSurge", 0), spec)

    def limits(self, desired: int) -> tuple[int, int]:
        """How many groups may come on top and how many may be missing of so many; one more where neither may be."""
        more, fewer = counted(self.surge, desired, math.ceil), counted(self.unavailable, desired, math.floor)
        return (more, fewer) if more or fewer else (1, 0)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What one generation of the set asks for."""

    generation: int
    revision: str
    roles: Mapping[str, Role]
    slices: int
    advances: bool

    @classmethod
    def of(cls, ds: Obj, revision: str) -> Wanted:
        spec = ds["spec"]
        policy = (spec.get("scalingPolicy") or {}).get("duringRollout")
        roles = {role["name"]: Role.of(role) for role in spec["roles"]}
        advances = policy == names.ADVANCE_ROLLOUT
        return cls(ds["metadata"]["generation"], revision, roles, spec.get("slices", 1), advances)


@dataclass(frozen=True, slots=True)
class Child:
    """One LeaderWorkerSet of the set's, as it was at a moment."""

    name: str
    uid: str
    slice: int
    revision: str
    role: str
    spec: int
    noted: int | None
    """What its note of the initial count says; None if it says nothing of use."""
    going: bool
    by_index: bool

    @classmethod
    def of(cls, lws: Obj) -> Child:
        labels, note = labels_of(lws), annotations_of(lws).get(names.INITIAL_REPLICAS_ANNOTATION, "")
        return cls(
            lws["metadata"]["name"],
            uid_of(lws),
            int(labels[names.SLICE_LABEL]),
            labels[names.REVISION_LABEL],
            labels[names.ROLE_LABEL],
            lws["spec"]["replicas"],
            int(note) if note.isdigit() else None,
            is_deleting(lws),
            lws["spec"].get("groupIdentity") != lws_names.IDENTITY_HASH,
        )

    @property
    def initial(self) -> int:
        """What its role was to have while its revision was current, and at least what it is asked to have."""
        return max(self.noted or 0, self.spec)


class Readiness:
    """Which groups of one child are ready, now and before."""

    def __init__(self) -> None:
        self._times: list[float] = [0.0]
        self._staying: list[frozenset[str]] = [frozenset()]
        """Ready groups whose leader is not being deleted, by what they are known by."""
        self._all: list[int] = [0]
        self.terminating: list[tuple[float, bool]] = [(0.0, False)]
        """Whether pods of it are on their way out."""

    def put(self, at: float, staying: frozenset[str], seen: int, terminating: bool) -> None:
        if (staying, seen) != (self._staying[-1], self._all[-1]):
            self._times.append(at)
            self._staying.append(staying)
            self._all.append(seen)
        if terminating != self.terminating[-1][1]:
            self.terminating.append((at, terminating))

    def committed(self, child: Child, since: float) -> int:
        """The most groups that were ready at some time since then and outlive what is ordered now."""
        first = max(0, bisect_right(self._times, since) - 1)
        return max(_surviving(child, staying) for staying in self._staying[first:])

    def raw(self, since: float) -> int:
        """The fewest groups that were ready at some time since then."""
        return min(self._all[max(0, bisect_right(self._times, since) - 1) :])

    def was_still(self, since: float) -> bool:
        """Whether at some time since then none of its pods was on its way out."""
        first = max(0, bisect_right([at for at, _ in self.terminating], since) - 1)
        return any(not going for _, going in self.terminating[first:])


def _surviving(child: Child, staying: frozenset[str]) -> int:
    if not child.by_index:
        return min(child.spec, len(staying))
    return sum(int(index) < child.spec for index in staying)


class DsWorld:
    """What there is now of one DisaggregatedSet, and what has been ready when."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ds: Obj | None = None
        self.sets: dict[str, Obj] = {}
        """LeaderWorkerSets by UID."""
        self.scalers: dict[str, Obj] = {}
        """By name."""
        self.pods: dict[str, Obj] = {}
        self.events: dict[str, Obj] = {}
        self.readiness: dict[str, Readiness] = defaultdict(Readiness)
        """Of children, by name."""
        self._asked: dict[str, list[tuple[float, int]]] = defaultdict(list)
        """What each scaler has asked for, and when."""

    @classmethod
    def kinds(cls) -> tuple[Kind, ...]:
        """All kinds that are looked at."""
        return KINDS

    def put(self, kind: Kind, change: Change) -> Obj | None:
        """Take in a change; returns the object as it was before."""
        obj, gone = change.obj, change.type == "DELETED"
        if kind is DISAGGREGATED_SET:
            old, self.ds = self.ds, None if gone else obj
            return old
        tables = {LEADER_WORKER_SET: self.sets, POD: self.pods, EVENT: self.events}
        table = self.scalers if kind is ROLE_SCALER else tables[kind]
        key = change.name if kind is ROLE_SCALER else change.uid
        old = table.get(key)
        if gone:
            table.pop(key, None)
        else:
            table[key] = obj
        if kind is ROLE_SCALER and not gone:
            self._asked[key].append((change.at, obj["spec"].get("replicas", 0)))
        if kind is POD:
            self._count(labels_of(obj).get(lws_names.NAME_LABEL, ""), change.at)
        return old

    # Children -----------------------------------------------------------------------------------------------------

    def is_mine(self, lws: Obj) -> bool:
        """Whether the set owns it."""
        owner = controller_of(lws)
        return self.ds is not None and owner is not None and owner["uid"] == uid_of(self.ds)

    def children(self) -> list[Child]:
        """All that the set owns and that are there to stay, by name."""
        mine = [Child.of(lws) for lws in self.sets.values() if self.is_mine(lws)]
        return sorted((c for c in mine if not c.going), key=lambda c: c.name)

    def in_slice(self, index: int) -> dict[str, dict[str, Child]]:
        """Those of one slice, by revision and role."""
        found: dict[str, dict[str, Child]] = defaultdict(dict)
        for child in self.children():
            if child.slice == index:
                found[child.revision][child.role] = child
        return found

    # What is wanted -----------------------------------------------------------------------------------------------

    def asked_of(self, role: Role, since: float) -> list[int]:
        """How many groups a role was to have at some time since then."""
        if role.replicas is not None:
            return [role.replicas]
        asked = self._asked.get(f"{self.name}-{role.name}") or []
        first = max(0, bisect_right([at for at, _ in asked], since) - 1)
        return sorted({count for _, count in asked[first:]})

    # Readiness ----------------------------------------------------------------------------------------------------

    def pods_of(self, child: str) -> list[Obj]:
        """The pods of one child, those on their way out too."""
        return [p for p in self.pods.values() if labels_of(p).get(lws_names.NAME_LABEL) == child]

    def _count(self, child: str, at: float) -> None:
        """Count the ready groups of a child anew."""
        pods, ready, sizes = self.pods_of(child), defaultdict[str, int](int), dict[str, int]()
        staying: set[str] = set()
        for pod in pods:
            group = labels_of(pod).get(lws_names.GROUP_INDEX_LABEL, "")
            ready[group] += is_ready(pod)
            if is_leader(pod) and is_ready(pod):
                sizes[group] = int(annotations_of(pod)[lws_names.SIZE_ANNOTATION])
                if not is_deleting(pod):
                    staying.add(group)
        whole = {group for group, size in sizes.items() if ready[group] >= size}
        self.readiness[child].put(at, frozenset(whole & staying), len(whole), any(is_deleting(p) for p in pods))


def is_ready(pod: Obj) -> bool:
    return (pod.get("status") or {}).get("phase") == "Running" and is_true(pod, "Ready")
