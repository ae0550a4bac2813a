"""Divided children in small worlds: pods that break and recover, targets that change, in every order.

Specification: 50 §13. The world plays the StatefulSet or the ReplicaSet; the decisions are the product's.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lwskit.api import disaggregated_names as names
from lwskit.api import names as base
from lwskit.disaggregated.model import Child, Write
from lwskit.disaggregated.subroles import division, tally
from lwskit.disaggregated.subroles.groups import label_of
from lwskit.groups.identity import is_leader
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import Obj, annotations_of, labels_of, uid_of
from lwskit.runtime.ranking import ranked
from tests.unit.disaggregated.divided import (
    OLD,
    after,
    child_after,
    child_of,
    divided,
    divided_scene,
    partition,
    patches,
    pod,
)
from tests.unit.disaggregated.scenes import NOW, REVISION

Counts = Mapping[str, int]
ROUNDS = 40


class World:
    """One child of groups of two pods, and its pods; a step of the controller at a time."""

    def __init__(self, counts: Counts, *, hashed: bool = False, revision: str = REVISION) -> None:
        self.hashed = hashed
        self.wanted = dict(counts)
        self.obj = divided(counts, hashed=hashed, revision=revision)
        self.pods: list[Obj] = []
        self.made = 0
        self.broken: set[str] = set()
        self.watch_floor = False
        self.follow()

    @property
    def replicas(self) -> int:
        return self.obj["spec"]["replicas"]

    def leaders(self) -> list[Obj]:
        return [one for one in self.pods if is_leader(one)]

    def follow(self) -> None:
        """The workload makes the groups and workers that are missing, and removes the groups that are too many."""
        for leader in self.leaders():
            if sum(_group(one) == _group(leader) for one in self.pods) == 1:
                self.add(_group(leader), range(1, 2))
        if self.hashed:
            order = [found.pod for found in ranked(self.leaders(), self.leaders(), NOW)]
            for leader in order[: max(0, len(order) - self.replicas)]:
                self.remove(_group(leader))
            while len(self.leaders()) < self.replicas:
                self.made += 1
                self.add(f"g{self.made:03}")
            return
        there = {_group(one) for one in self.pods}
        for group in there:
            if int(group) >= self.replicas:
                self.remove(group)
        for ordinal in range(self.replicas):
            if str(ordinal) not in there:
                self.add(str(ordinal))

    def add(self, group: str, indices: range = range(2)) -> None:
        self.made += 1
        for index in indices:
            name = f"child-{group}-{index}" if index else f"child-{group}"
            one = pod(name, group, index, hashed=self.hashed)
            one["metadata"]["uid"] = f"{name}-{self.made}"
            self.pods.append(one)

    def remove(self, group: str) -> None:
        self.pods = [one for one in self.pods if _group(one) != group]

    def is_ready(self, group: str) -> bool:
        return group not in self.broken and sum(_group(one) == group for one in self.pods) == 2

    def step(self) -> Write:
        """One pass of the controller."""
        for one in self.pods:
            one["status"]["conditions"][0]["status"] = str(self.is_ready(_group(one)))
        scene = divided_scene(self.wanted, self.obj, self.pods)
        write = division.prepare(scene)
        if not write.pending:
            write = Write((*write.actions, *division.change(scene, child_of(scene), self.wanted).actions))
        self.check_order(write)
        if self.watch_floor:
            self.check_floor(write)
        self.pods = after(self.pods, write)
        self.obj = child_after(self.obj, write)
        issued = tally.issued(Child.of(self.obj))
        assert issued is not None
        assert sum(issued.values()) == self.replicas
        return write

    def check_order(self, write: Write) -> None:
        """Leaders last; and those that go have no label when the size becomes smaller."""
        seen: set[str] = set()
        for action in patches(write):
            if action.kind == POD:
                group = _group(next(one for one in self.pods if uid_of(one) == action.uid))
                assert group not in seen, "the leader was written before one of its workers"
                if action.key.name == f"child-{group}":
                    seen.add(group)
            elif (size := action.body.get("spec", {}).get("replicas", self.replicas)) < self.replicas:
                labelled = [one for one in self.leaders() if label_of(one)]
                assert len(labelled) <= size
                if not self.hashed:
                    assert all(int(_group(one)) < size for one in labelled)

    def check_floor(self, write: Write) -> None:
        """With every write, however few of them are made, no sub-role has fewer groups than before and afterwards."""
        issued = tally.issued(Child.of(self.obj))
        assert issued is not None
        planned = annotations_of(self.obj).get(names.SUBROLE_PLAN_ANNOTATION)
        target = tally.planned(Child.of(self.obj)) if planned else issued
        assert target is not None
        least = {name: min(count, target.get(name, 0)) for name, count in issued.items()}
        for count in range(len(write.actions) + 1):
            there = self.counted(after(self.pods, Write(write.actions[:count])))
            before = self.counted(self.pods)
            assert all(there[name] >= min(before[name], most) for name, most in least.items())

    def counted(self, pods: list[Obj] | None = None) -> Counter[str]:
        groups = partition(self.pods if pods is None else pods, None if self.hashed else self.replicas).groups
        return Counter(group.subrole for group in groups if group.subrole)

    def settle(self, rounds: int = ROUNDS) -> None:
        """Go on until nothing is written any more."""
        for _ in range(rounds):
            before = self.replicas
            write = self.step()
            self.follow()
            if not write.actions and before == self.replicas and not self.step().actions:
                return
        raise AssertionError(f"still writing after {rounds} rounds")


def _group(one: Obj) -> str:
    return labels_of(one)[base.GROUP_INDEX_LABEL]


_COUNTS = st.fixed_dictionaries({"a": st.integers(0, 5), "b": st.integers(0, 4), "c": st.integers(0, 2)})


@pytest.mark.parametrize("hashed", [False, True])
@settings(max_examples=40, deadline=None)
@given(st.lists(_COUNTS, min_size=2, max_size=4))
def test_whatever_is_wanted_is_reached_and_no_sub_role_falls_below_both_counts(
    hashed: bool, wanted: list[dict[str, int]]
) -> None:
    world = World(wanted[0], hashed=hashed)
    world.settle()
    world.watch_floor = True
    for counts in wanted[1:]:
        world.wanted = counts
        world.settle()
        assert world.counted() == Counter({name: count for name, count in counts.items() if count})
        assert names.SUBROLE_PLAN_ANNOTATION not in annotations_of(world.obj)


@pytest.mark.parametrize("hashed", [False, True])
@pytest.mark.parametrize("revision", [REVISION, OLD])
@settings(max_examples=40, deadline=None)
@given(st.lists(_COUNTS, min_size=1, max_size=3), st.integers(0, 2**32))
def test_groups_that_break_and_go_meanwhile_end_well(
    hashed: bool, revision: str, wanted: list[dict[str, int]], seed: int
) -> None:
    rng, world = random.Random(seed), World(wanted[0], hashed=hashed, revision=revision)
    for counts in wanted:
        if revision == REVISION or all(counts[name] <= world.wanted[name] for name in counts):
            world.wanted = counts
        for _ in range(rng.randrange(12)):
            _disturb(world, rng)
            world.step()
            if rng.random() < 0.7:
                world.follow()
    world.broken.clear()
    world.follow()
    world.settle(60)
    assert world.counted() == Counter({name: count for name, count in world.wanted.items() if count})


def _disturb(world: World, rng: random.Random) -> None:
    groups = sorted({_group(one) for one in world.pods})
    if not groups:
        return
    group = rng.choice(groups)
    match rng.randrange(6):
        case 0:
            world.broken ^= {group}
        case 1:
            world.remove(group)
        case 2:
            world.pods = [one for one in world.pods if _group(one) != group or is_leader(one)]
        case 3:
            chosen = rng.choice(world.pods)
            chosen["metadata"]["labels"].pop(names.SUBROLE_LABEL, None)
        case _:
            pass
