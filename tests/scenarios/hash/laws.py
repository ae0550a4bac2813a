"""What has to hold of a set in Hash mode, beside what holds in both (30 §7, §13)."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from itertools import pairwise

from lwskit.api import names
from lwskit.runtime.kinds import POD, REPLICA_SET, STATEFUL_SET, Kind
from lwskit.runtime.objects import Obj, annotations_of, controller_of, is_deleting, is_true, labels_of, version_of
from lwskit.testing.observer import Change
from tests.scenarios.hash.keyed import Asked, HashWorld, asked, group_key
from tests.scenarios.hash.support import is_gated
from tests.scenarios.laws import UNREADY, Break, Cause, Groups, Laws
from tests.scenarios.sight import LATE, Sight
from tests.scenarios.world import is_leader, is_whole, key_of

KEY = re.compile(r"[0-9a-f]{40}")


class HashLaws(Laws[HashWorld]):
    """Follows one set in Hash mode."""

    def __init__(self, name: str) -> None:
        super().__init__(HashWorld(name))
        self.sight = Sight()
        self._asked: list[Asked] = []
        self._gone: float | None = None
        """Until when there was no Deployment, though there had been one."""
        self._sizes: dict[str, list[tuple[float, int]]] = defaultdict(list)
        """What each ReplicaSet was asked for, and when."""
        self._totals: list[tuple[float, int]] = [(0.0, 0)]
        """How many leaders all of them together were asked for, and when."""
        self._keys: dict[str, str] = {}
        """The leader of each key that there ever was."""
        self._left: deque[tuple[float, str]] = deque(maxlen=20)
        """Leaders that have gone last, and their ReplicaSets."""
        self._lost: deque[float] = deque(maxlen=20)
        """When ready groups have gone down for causes of their own."""
        self._whole: dict[str, float] = {}
        """When the workers of each leader were last all there and ready."""
        self._most_down = 0
        """How many groups might be down at some time of the rollout that goes on."""
        self._ready_before: set[str] = set()

    # What is asked for ------------------------------------------------------------------------------------------

    def _written(self, change: Change, before: Groups) -> None:
        if change.type == "DELETED":
            self._gone = float("inf")
            return
        if self._gone == float("inf"):
            self._gone = change.at
        new, last = asked(change.obj, change.at), self._asked[-1] if self._asked else None
        if last is not None and last == Asked(last.at, *_fields(new)):
            return
        self._asked = [*self._recent(change.at), new]
        self.trail.append(f"{change.at:.3f} {new}")
        if last is not None and last.key != new.key:
            self.counts["rollouts"] += 1
            self._most_down = 0
        self._most_down = max(self._most_down, new.unavailable)
        if version_of(change.obj) in self.foreign:
            for group in before.values():
                self.causes[group.uid].append(Cause(UNREADY, change.at, "interference"))
            return
        fits = [w for w in self._candidates if str(w.replicas) == new.recorded and w.replicas == new.replicas]
        assert fits, f"the Deployment asks for what the set does not: {new}, wanted {self._candidates}"
        assert [w for w in fits if w.surge == new.surge], f"{new}, wanted {self._candidates}"

    def _recent(self, at: float, window: float = LATE) -> list[Asked]:
        """What the Deployment has asked for in the time for which somebody may still act on it."""
        return [a for a, after in pairwise(self._asked) if after.at >= at - window] + self._asked[-1:]

    def _size_of(self, maker: str, at: float) -> int:
        """The smallest size that a ReplicaSet was just asked for."""
        sizes = self._sizes[maker]
        recent = [size for (_, size), (later, _) in pairwise(sizes) if later >= at - LATE]
        return min([*recent, *(size for _, size in sizes[-1:])], default=0)

    def _notice(self, kind: Kind, old: Obj | None, change: Change) -> None:
        if kind is REPLICA_SET and change.type != "DELETED":
            self._resized(old, change)
        if kind is POD and is_leader(change.obj):
            self._is_let_in(old, change)
            self._is_ready_with_its_group(old, change)
            leaves = change.type == "DELETED" or is_deleting(change.obj)
            if leaves and not (old is not None and is_deleting(old)):
                self._left.append((change.at, _maker(change.obj)))
        if kind is STATEFUL_SET and change.type == "ADDED":
            leader = self.world.pods.get(_maker(change.obj))
            assert leader is None or not is_gated(leader), f"{change.name} is made for a leader at its gate"
        if kind is STATEFUL_SET and ((old is not None and is_whole(old)) or is_whole(change.obj)):
            self._whole[_maker(change.obj)] = change.at

    def _resized(self, old: Obj | None, change: Change) -> None:
        """30 §13: no ReplicaSet grows beyond replicas + maxSurge in all."""
        before, after = old["spec"]["replicas"] if old is not None else 0, change.obj["spec"]["replicas"]
        if before == after and self._sizes[change.uid]:
            return
        self._sizes[change.uid].append((change.at, after))
        total = self.total()
        self._totals.append((change.at, total))
        self.trail.append(f"{change.at:.3f} {change.name} is to have {after} of {total}")
        if after > before:
            most = max((a.most for a in self._recent(change.at)), default=0)
            assert total <= most, f"{change.name} grows to {after}: {total} leaders, more than {most}"

    def total(self) -> int:
        """How many leaders the ReplicaSets are to have."""
        return sum(one["spec"]["replicas"] for one in self.world.makers.values())

    # The gate ---------------------------------------------------------------------------------------------------

    def _is_let_in(self, old: Obj | None, change: Change) -> None:
        """30 §7: leaders come gated; they are let in while there is room, and only those of the wanted revision."""
        pod, name = change.obj, change.name
        if old is None and change.type == "ADDED":
            key = group_key(pod)
            assert is_gated(pod), f"{name} has come without a gate"
            assert annotations_of(pod)[names.POD_DELETION_COST_ANNOTATION] == "-100"
            assert KEY.fullmatch(key)
            assert self._keys.setdefault(key, change.uid) == change.uid, f"{name} has a key that another group had"
            return
        if old is None or change.type == "DELETED" or not is_gated(old) or is_gated(pod):
            return
        self.counts["leaders let in"] += 1
        self.trail.append(f"{change.at:.3f} {name} is let in: {len(self.world.taking_places())} places are taken")
        assert names.POD_DELETION_COST_ANNOTATION not in annotations_of(pod)
        window = change.at - self.sight.since(change.at)
        recent = self._recent(change.at, window)
        if self._gone is None or self._gone < self.sight.since(change.at):
            # Without a Deployment nobody knows which revision is wanted.
            assert key_of(pod) in {a.key for a in recent}, f"{name} is let in, of revision {key_of(pod)}: {recent}"
        mine = [p for p in self.world.mine() if key_of(p) == key_of(pod) and not is_gated(p) and not is_deleting(p)]
        most = max(a.replicas for a in recent)
        assert len(mine) <= most, f"{name} is let in as one of {len(mine)} of its revision, more than {most}"
        if any(w.immediate for w in self._candidates):
            self.counts["leaders let in at once"] += 1
            return
        taken = self.world.taking_places()
        asked_for = [count for (_, count), (later, _) in pairwise(self._totals) if later >= change.at - window]
        room = max([a.most for a in recent] + asked_for + [self.total()])
        assert len(taken) <= room, f"{name} is let in, and {len(taken)} groups have pods, more than {room}: {recent}"
        if len(taken) > self._asked[-1].replicas:
            self.counts["leaders let in as surge"] += 1

    def _is_ready_with_its_group(self, old: Obj | None, change: Change) -> None:
        """30 §9: a leader becomes ready when its workers are, as far as the manager knows."""
        pod = change.obj
        if is_deleting(pod) or not is_true(pod, "Ready") or (old is not None and is_true(old, "Ready")):
            return
        if self.world.is_alone(pod):
            return
        workers = self.world.workers_of(pod)
        whole = change.at if workers is not None and is_whole(workers) else self._whole.get(change.uid)
        assert whole is not None, f"{change.name} is ready, and its workers never were"
        assert whole >= self.sight.since(change.at), (
            f"{change.name} becomes ready {change.at - whole:g} s after its workers"
        )

    # What there is ----------------------------------------------------------------------------------------------

    def _is_asked_for(self, leader: Obj, at: float) -> bool:
        """Whether its ReplicaSet has more pods than it was asked for; it may not know yet of those that have gone."""
        maker = _maker(leader)
        gone = sum(made == maker and since >= at - LATE for since, made in self._left)
        return len(self.world.active_of(maker)) + gone > self._size_of(maker, at)

    def _has_its_names(self, kind: Kind, obj: Obj, leader: Obj) -> None:
        host = leader["spec"]["hostname"]
        assert labels_of(obj)[names.GROUP_INDEX_LABEL] == group_key(leader)
        assert host == f"{self.world.name}-{group_key(leader)[:8]}"
        name = obj["metadata"]["name"]
        assert (name if kind is STATEFUL_SET else name.rpartition("-")[0]) == host

    # The floor --------------------------------------------------------------------------------------------------

    def _keeps_the_floor(self, before: Groups, after: Groups, change: Change) -> None:
        """Of what the Deployment counts as available: the pods' own condition, which follows the workers."""
        if self.world.lws is None or is_deleting(self.world.lws) or not self._asked:
            return
        ready = self.world.serving()
        lost, self._ready_before = self._ready_before - ready, ready
        if not lost:
            return
        by_themselves = {uid for uid in lost if self.causes[uid]}
        self._lost.extend(change.at for _ in by_themselves)
        floor = min(a.floor for a in self._recent(change.at))
        if lost == by_themselves or len(ready) >= floor:
            return
        case = self._case(len(ready), floor, change.at)
        assert case, (
            f"{len(ready)} groups are ready after {sorted(lost - by_themselves)} were taken down, fewer than {floor}: "
            f"asked {self._recent(change.at)}, ReplicaSets {self._sizes}"
        )
        self.counts[f"below the floor: {case}"] += 1
        self.breaks.append(Break(change.at, case))

    def _case(self, ready: int, floor: int, at: float) -> str:
        """Which of the closed list it is, empty if none; or that groups have just gone down for causes of their own.

        A smaller size is shared out among ReplicaSets whatever is ready of each. That leaves as many groups ready as
        have to be, unless fewer may be down now than when the rollout took them down.
        """
        ready += sum(since >= at - LATE for since in self._lost)
        if ready >= floor:
            return "failures"
        recent = self._recent(at)
        smaller = any(later.replicas < earlier.replicas for earlier, later in pairwise(recent))
        fewest = min(a.replicas for a in recent) - self._most_down
        if smaller and ready >= fewest and any(a.unavailable < self._most_down for a in recent):
            return "scale-down"
        return ""


def _fields(item: Asked) -> tuple[str, int, int, int, str, str]:
    return item.uid, item.replicas, item.unavailable, item.surge, item.key, item.recorded


def _maker(obj: Obj) -> str:
    return (controller_of(obj) or {}).get("uid", "")
