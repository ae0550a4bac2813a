"""What has to hold of a set whatever happens to it, looked at after every single change in the cluster (20 §6, §11)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, defaultdict, deque
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from lwskit.api import names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import POD, STATEFUL_SET, Kind
from lwskit.runtime.objects import (
    Obj,
    annotations_of,
    controller_of,
    generation_of,
    is_deleting,
    labels_of,
    uid_of,
)
from lwskit.testing.observer import Change
from tests.scenarios.world import Group, Wanted, World, image_of, is_leader, key_of

W = TypeVar("W", bound=World)
Groups = dict[Any, Group]

LEADER, WORKER, RESTART, UNREADY = "leader", "worker", "restart", "unready"
"""Causes: a leader is lost, a worker is lost, a container has restarted, a pod was not ready without being lost."""


@dataclass(frozen=True, slots=True)
class Cause:
    """What has befallen a group. `sure` where the manager has to learn of it: it ran when it happened."""

    kind: str
    at: float
    what: str
    sure: bool = False


@dataclass(frozen=True, slots=True)
class Break:
    """Fewer groups are ready than the floor, and which of the documented cases it is."""

    at: float
    case: str


class Laws(ABC, Generic[W]):
    """Follows one set. `see` raises AssertionError for what must not be. Causes are told by whoever makes them."""

    def __init__(self, world: W) -> None:
        self.world = world
        self.counts: Counter[str] = Counter()
        self.trail: deque[str] = deque(maxlen=40)
        """What has happened last, a line each."""
        self.breaks: list[Break] = []
        self.foreign: set[str] = set()
        """resourceVersions of the leader workload that somebody other than the manager has written."""
        self.causes: dict[str, list[Cause]] = defaultdict(list)
        self.wanted: dict[int, Wanted] = {}
        self.policies: list[tuple[float, str]] = []
        self.acted_on = 0
        """The newest generation that the manager is known to have acted on."""

    def cause(self, uid: str, kind: str, at: float, what: str, *, sure: bool = False) -> None:
        """Something befalls the group with that leader."""
        self.causes[uid].append(Cause(kind, at, what, sure))
        self.counts[f"cause: {what}"] += 1

    @property
    def now(self) -> Wanted:
        """What the set asks for."""
        return self.wanted[max(self.wanted)]

    def see(self, kind: Kind, change: Change) -> None:
        """A change has happened; all that came before it has been seen."""
        before = self.world.groups()
        old = self.world.put(kind, change)
        self.counts["changes"] += 1
        if kind is LEADER_WORKER_SET and change.type != "DELETED":
            self._edited(change)
        elif kind is self.world.leaders and change.name == self.world.name:
            self._written(change, before)
        elif kind in (STATEFUL_SET, POD) and change.type == "ADDED":
            self._is_of_one_revision(kind, change.obj)
        self._notice(kind, old, change)
        if kind is POD and is_leader(change.obj):
            self._has_a_cause(old, change)
        after = self.world.groups()
        self._remember(kind, change, old, before, after)
        self._keeps_the_floor(before, after, change)

    @abstractmethod
    def _written(self, change: Change, before: Groups) -> None:
        """The leader workload was written, or has gone."""

    def _notice(self, kind: Kind, old: Obj | None, change: Change) -> None:
        """A change of any object, for what holds in one mode only."""

    @abstractmethod
    def _is_asked_for(self, leader: Obj, at: float) -> bool:
        """Whether the leader workload has just had a reason to remove that leader."""

    @abstractmethod
    def _has_its_names(self, kind: Kind, obj: Obj, leader: Obj) -> None:
        """A worker or a workload of workers is called and labelled as its group is."""

    @abstractmethod
    def _keeps_the_floor(self, before: Groups, after: Groups, change: Change) -> None:
        """Groups that controllers take down leave at least replicas − maxUnavailable ready, but for the closed list."""

    def _remember(self, kind: Kind, change: Change, old: Obj | None, before: Groups, after: Groups) -> None:
        """One line for what is worth telling of a change."""
        what = ""
        if kind is LEADER_WORKER_SET and (old is None or generation_of(old) != generation_of(change.obj)):
            what = f"edit {generation_of(change.obj)}: {self.now}"
        elif kind is POD and (old is None or change.type == "DELETED" or is_deleting(old) != is_deleting(change.obj)):
            gone = "gone" if change.type == "DELETED" else "deleting" if is_deleting(change.obj) else "made"
            what = f"pod {change.name} {gone}, of {key_of(change.obj)}"
        if self._ready(before) != self._ready(after):
            what += f" ready: {sorted(self._ready(after))} of {sorted(after)}"
        if what:
            self.trail.append(f"{change.at:.3f} {what.strip()}")

    # What is asked for ------------------------------------------------------------------------------------------

    def _edited(self, change: Change) -> None:
        lws = change.obj
        generation = generation_of(lws)
        wanted = Wanted.of(lws)
        if generation not in self.wanted:
            last = self.now if self.wanted else None
            self.wanted[generation] = wanted
            self._asks_for(wanted, last)
            if last is None or last.policy != wanted.policy:
                self.policies.append((change.at, wanted.policy))
        self.acted_on = max(self.acted_on, (lws.get("status") or {}).get("observedGeneration", 0))

    def _asks_for(self, wanted: Wanted, last: Wanted | None) -> None:
        """The set has been edited."""

    @property
    def _candidates(self) -> list[Wanted]:
        """What the manager may go by: the newest generation that it has acted on, and those after it."""
        return [w for g, w in self.wanted.items() if g >= self.acted_on]

    # What there is ----------------------------------------------------------------------------------------------

    def _is_of_one_revision(self, kind: Kind, obj: Obj) -> None:
        """20 §3.8: what one leader owns is made from the revision that the leader names."""
        labels, name = labels_of(obj), obj["metadata"]["name"]
        if kind is POD and is_leader(obj):
            recorded = self.world.recorded(key_of(obj))
            assert recorded is not None, f"{name} is of revision {key_of(obj)}, which does not exist"
            template = recorded.get("leaderTemplate") or recorded["workerTemplate"]
            assert image_of(obj) == image_of(template), f"{name} is not as revision {key_of(obj)} has it"
            assert annotations_of(obj)[names.SIZE_ANNOTATION] == str(recorded["size"])
            return
        owner = controller_of(obj)
        assert owner is not None, f"{name} belongs to nobody"
        leader = self.world.pods.get(owner["uid"] if kind is STATEFUL_SET else self.world.leader_of(obj))
        if leader is None:
            # Its leader has gone, and what is left of the group goes after it.
            return
        assert key_of(obj) == key_of(leader), f"{name} and its leader are of two revisions"
        for label in (names.GROUP_INDEX_LABEL, names.GROUP_KEY_LABEL):
            assert labels[label] == labels_of(leader)[label]
        self._has_its_names(kind, obj, leader)
        recorded = self.world.recorded(key_of(leader))
        if recorded is None:
            # A rollout is done without the groups that are on their way out; a lost node may keep them for long.
            assert is_deleting(leader), f"{name} is made after its revision has gone"
            return
        if kind is STATEFUL_SET:
            assert obj["spec"]["replicas"] == recorded["size"] - 1
        else:
            assert image_of(obj) == image_of(recorded["workerTemplate"])

    def _has_a_cause(self, old: Obj | None, change: Change) -> None:
        """A leader goes only for a cause: its own, or what the leader workload asks for. So no cause counts twice."""
        pod = change.obj
        if not (is_deleting(pod) or change.type == "DELETED") or (old is not None and is_deleting(old)):
            return
        self.counts["leaders gone"] += 1
        if self.world.lws is None or is_deleting(self.world.lws):
            return
        if self.world.workload is None or controller_of(pod) is None or not self.world.is_mine(pod):
            return
        if self._is_asked_for(pod, change.at):
            return
        found = self.causes[uid_of(pod)]
        name = f"{pod['metadata']['name']} ({uid_of(pod)})"
        assert found, f"{name} goes without a cause"
        assert any(self._explains(c) for c in found), f"{name} goes, but {found} are no causes for that"

    def _explains(self, cause: Cause) -> bool:
        if cause.kind == LEADER:
            return True
        return cause.kind != UNREADY and self.policy_since(cause.at) != {names.RESTART_NONE}

    def policy_since(self, at: float) -> set[str]:
        """The restart policies that have applied since then."""
        later = [(since, policy) for since, policy in self.policies if since > at]
        return {p for _, p in later} | {[p for since, p in self.policies if since <= at][-1]}

    @staticmethod
    def _ready(groups: Groups) -> set[Any]:
        return {i for i, group in groups.items() if group.stands}
