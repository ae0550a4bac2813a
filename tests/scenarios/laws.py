"""What has to hold of a set whatever happens to it, looked at after every single change in the cluster (20 §6, §11)."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from itertools import pairwise

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
    version_of,
)
from lwskit.testing.observer import Change
from tests.scenarios.world import (
    Asked,
    Group,
    Wanted,
    World,
    asked,
    image_of,
    is_leader,
    key_of,
    ordinal_of,
    unfinished,
)

LATE = 1.0
"""Seconds for which a controller may still act on what the leader workload asked for before."""

LEADER, WORKER, RESTART, UNREADY = "leader", "worker", "restart", "unready"
"""Causes: a leader is lost, a worker is lost, a container has restarted, a pod was not ready without being lost."""


@dataclass(frozen=True, slots=True)
class Cause:
    """What has befallen a group. `sure` where the manager has to learn of it: it ran when it happened."""

    kind: str
    at: float
    what: str
    sure: bool = False


@dataclass(slots=True)
class Rollout:
    """The rollout that is going on or was the last: what its start found."""

    key: str
    before: str = ""
    """The revision before."""
    unfinished: bool = False
    """The rollout before had not ended."""
    unready: set[int] = field(default_factory=set)
    """Groups that were not ready at its start and have not become ready since."""
    shrunk: bool = False
    """The set has been given fewer groups since."""


@dataclass(frozen=True, slots=True)
class Break:
    """Fewer groups are ready than the floor, and which of the documented cases it is."""

    at: float
    case: str


class Laws:
    """Follows one set. `see` raises AssertionError for what must not be. Causes are told by whoever makes them."""

    def __init__(self, name: str) -> None:
        self.world = World(name)
        self.counts: Counter[str] = Counter()
        self.trail: deque[str] = deque(maxlen=40)
        """What has happened last, a line each."""
        self.breaks: list[Break] = []
        self.foreign: set[str] = set()
        """resourceVersions of the leader workload that somebody other than the manager has written."""
        self.causes: dict[str, list[Cause]] = defaultdict(list)
        self.rollout = Rollout("")
        self.wanted: dict[int, Wanted] = {}
        self.policies: list[tuple[float, str]] = []
        self.acted_on = 0
        """The newest generation that the manager is known to have acted on."""
        self._asked: list[Asked] = []
        self._failed: set[int] = set()
        """Groups that are down for a cause of their own."""
        self._growing: set[int] = set()
        """Groups that the set was given and that have not been ready yet."""
        self._resized: set[int] = set()
        """Groups that do not count as ready since the set's size is no longer 1."""

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
        elif kind is STATEFUL_SET and change.name == self.world.name:
            self._written(change, before)
        elif kind in (STATEFUL_SET, POD) and change.type == "ADDED":
            self._is_of_one_revision(kind, change.obj)
        if kind is POD and is_leader(change.obj):
            self._has_a_cause(old, change)
        after = self.world.groups()
        self._remember(kind, change, old, before, after)
        self._keeps_the_floor(before, after, change)

    def _remember(
        self, kind: Kind, change: Change, old: Obj | None, before: dict[int, Group], after: dict[int, Group]
    ) -> None:
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
            self._growing |= set(range(last.replicas if last else 0, wanted.replicas)) - self._ready(
                self.world.groups()
            )
            if last is not None and wanted.replicas < last.replicas:
                self.rollout.shrunk = True
            if last is None or last.policy != wanted.policy:
                self.policies.append((change.at, wanted.policy))
        self.acted_on = max(self.acted_on, (lws.get("status") or {}).get("observedGeneration", 0))

    @property
    def _candidates(self) -> list[Wanted]:
        """What the manager may go by: the newest generation that it has acted on, and those after it."""
        return [w for g, w in self.wanted.items() if g >= self.acted_on]

    def _written(self, change: Change, before: dict[int, Group]) -> None:
        if change.type == "DELETED":
            return
        new = asked(change.obj, change.at)
        last = self._asked[-1] if self._asked else None
        if last is not None and (last.uid, last.replicas, last.partition, last.key, last.recorded) == (
            new.uid,
            new.replicas,
            new.partition,
            new.key,
            new.recorded,
        ):
            return
        recent = [a for a, after in pairwise(self._asked) if after.at >= change.at - LATE]
        self._asked = [*recent, *self._asked[-1:], new]
        self.trail.append(f"{change.at:.3f} {new}")
        if version_of(change.obj) in self.foreign:
            for group in before.values():
                self.causes[group.uid].append(Cause(UNREADY, change.at, "interference"))
            return
        self._asks_for_no_more(new)
        if last is not None and last.key != new.key:
            ready = self._ready(before)
            left = any(unfinished(before, last.key, self.wanted[max(self.acted_on, min(self.wanted))]))
            self.rollout = Rollout(
                new.key,
                last.key,
                left or last.partition > 0 or last.replicas > int(last.recorded or 0),
                {i for i in range(last.replicas) if i not in ready},
            )
            self.counts["rollouts"] += 1
            self.counts["rollouts before the last had ended"] += self.rollout.unfinished

    def _asks_for_no_more(self, new: Asked) -> None:
        """20 §6.3: from the first reconcile after an edit on never more than replicas + maxSurge."""
        fits = [w for w in self._candidates if str(w.replicas) == new.recorded and new.replicas <= w.most]
        assert fits, f"the leader workload asks for too many: {new}, wanted {self._candidates}"

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
        ordinal = str(ordinal_of(leader))
        assert key_of(obj) == key_of(leader), f"{name} and its leader are of two revisions"
        assert labels[names.GROUP_INDEX_LABEL] == labels_of(leader)[names.GROUP_INDEX_LABEL] == ordinal
        assert labels[names.GROUP_KEY_LABEL] == labels_of(leader)[names.GROUP_KEY_LABEL]
        recorded = self.world.recorded(key_of(leader))
        if recorded is None:
            # A rollout is done without the groups that are on their way out; a lost node may keep them for long.
            assert is_deleting(leader), f"{name} is made after its revision has gone"
            return
        if kind is STATEFUL_SET:
            assert name == leader["metadata"]["name"]
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
        owner, ordinal, key = controller_of(pod), ordinal_of(pod), key_of(pod)
        if self.world.workload is None or owner is None or owner["uid"] != uid_of(self.world.workload):
            return
        for now in self._asked:
            if ordinal >= now.replicas or (ordinal >= now.partition and key != now.key):
                return
        found = self.causes[uid_of(pod)]
        name = f"{pod['metadata']['name']} ({uid_of(pod)})"
        assert found, f"{name} goes without a cause; asked for {self._asked}"
        assert any(self._explains(c) for c in found), f"{name} goes, but {found} are no causes for that"

    def _explains(self, cause: Cause) -> bool:
        if cause.kind == LEADER:
            return True
        return cause.kind != UNREADY and self.policy_since(cause.at) != {names.RESTART_NONE}

    def policy_since(self, at: float) -> set[str]:
        """The restart policies that have applied since then."""
        later = [(since, policy) for since, policy in self.policies if since > at]
        return {p for _, p in later} | {[p for since, p in self.policies if since <= at][-1]}

    # The floor --------------------------------------------------------------------------------------------------

    @staticmethod
    def _ready(groups: dict[int, Group]) -> set[int]:
        return {i for i, group in groups.items() if group.stands}

    def _keeps_the_floor(self, before: dict[int, Group], after: dict[int, Group], change: Change) -> None:
        """Groups that controllers take down leave at least replicas − maxUnavailable ready, but for the closed list."""
        if self.world.lws is None or is_deleting(self.world.lws) or not self._asked:
            return
        was, ready = self._ready(before), self._ready(after)
        for known in (self._failed, self._growing, self._resized, self.rollout.unready):
            known -= ready
        lost = was - ready
        if not lost:
            return
        by_themselves = {i for i in lost if self.causes[before[i].uid]}
        self._failed |= by_themselves
        taken = lost - by_themselves
        replicas = self._asked[-1].replicas
        self._failed &= set(range(replicas))
        self._growing = (self._growing | {i for i in taken if i >= min(a.replicas for a in self._asked)}) & set(
            range(self.now.replicas)
        )
        if change.name == self.world.name and "leaderWorkerTemplate" in change.obj.get("spec", {}):
            self._resized |= taken
        floor = min(w.floor for w in self._candidates)
        if not taken or len(ready) >= floor:
            return
        case = self._case(before, ready, taken, floor)
        known = {"failed": self._failed, "growing": self._growing, "resized": self._resized}
        assert case, (
            f"{len(ready)} groups are ready after {sorted(taken)} were taken down, fewer than {floor}: "
            f"{self.rollout}, {known}, wanted {self._candidates}"
        )
        self.counts[f"below the floor: {case}"] += 1
        self.breaks.append(Break(change.at, case))

    def _case(self, before: dict[int, Group], ready: set[int], taken: set[int], floor: int) -> str:
        """Which case it is, empty if none: one of the closed list, or that groups are down for causes of their own."""
        excused = (self._failed | self._growing) - ready
        unready = self.rollout.unready - ready
        if len(ready | (excused - unready)) < floor <= len(ready | excused | unready):
            return "unready-at-start"
        if len(ready | excused) < floor <= len(ready | excused | self._resized):
            return "size-from-one"
        wanted = min(w.replicas for w in self._candidates)
        if all(i >= wanted for i in taken):
            if self.rollout.shrunk and any(unfinished(before, self._asked[-1].key, self.now)):
                return "scale-down"
            if any(i not in ready for i in range(wanted, self._asked[-1].replicas)):
                return "surge-reclaimed"
        if self._gives_up_surge():
            return "surge-reclaimed"
        if len(ready | excused) >= floor:
            return "failures"
        if self.rollout.unfinished and all(before[i].key == self.rollout.before or i >= wanted for i in taken):
            return "new-template"
        return ""

    def _gives_up_surge(self) -> bool:
        """Whether groups beyond replicas + maxSurge, which was lowered, have just been given up (20 §6.5 item 1)."""
        return len(self._asked) > 1 and self._asked[-1].replicas < self._asked[-2].replicas > self.now.most
