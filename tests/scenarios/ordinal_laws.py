"""What has to hold of a set in Ordinal mode, beside what holds in both (20 §6)."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from lwskit.api import names
from lwskit.runtime.kinds import STATEFUL_SET, Kind
from lwskit.runtime.objects import Obj, is_deleting, labels_of, version_of
from lwskit.testing.observer import Change
from tests.scenarios.laws import UNREADY, Break, Cause, Groups, Laws
from tests.scenarios.ordinals import Asked, OrdinalWorld, asked, ordinal_of, unfinished
from tests.scenarios.sight import LATE
from tests.scenarios.world import Wanted, key_of


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


class OrdinalLaws(Laws[OrdinalWorld]):
    """Follows one set in Ordinal mode."""

    def __init__(self, name: str) -> None:
        super().__init__(OrdinalWorld(name))
        self.rollout = Rollout("")
        self._asked: list[Asked] = []
        self._failed: set[int] = set()
        """Groups that are down for a cause of their own."""
        self._growing: set[int] = set()
        """Groups that the set was given and that have not been ready yet."""
        self._resized: set[int] = set()
        """Groups that do not count as ready since the set's size is no longer 1."""

    def _asks_for(self, wanted: Wanted, last: Wanted | None) -> None:
        grown = range(last.replicas if last else 0, wanted.replicas)
        self._growing |= set(grown) - self._ready(self.world.groups())
        if last is not None and wanted.replicas < last.replicas:
            self.rollout.shrunk = True

    def _written(self, change: Change, before: Groups) -> None:
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

    def _is_asked_for(self, leader: Obj, at: float) -> bool:
        ordinal, key = ordinal_of(leader), key_of(leader)
        return any(ordinal >= now.replicas or (ordinal >= now.partition and key != now.key) for now in self._asked)

    def _has_its_names(self, kind: Kind, obj: Obj, leader: Obj) -> None:
        assert labels_of(obj)[names.GROUP_INDEX_LABEL] == str(ordinal_of(leader))
        if kind is STATEFUL_SET:
            assert obj["metadata"]["name"] == leader["metadata"]["name"]

    # The floor --------------------------------------------------------------------------------------------------

    def _keeps_the_floor(self, before: Groups, after: Groups, change: Change) -> None:
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

    def _case(self, before: Groups, ready: set[int], taken: set[int], floor: int) -> str:
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
