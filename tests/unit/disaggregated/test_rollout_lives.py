"""Rollouts with groups that come and go as they like, edits in the middle, and a controller that dies between any two
writes: what has to hold in each pass, and that it ends (specification: 50 §7, §8.8, §10)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated import children
from lwskit.disaggregated.model import Child, Readiness, Ready
from lwskit.runtime.objects import Obj, labels_of
from lwskit.runtime.plan import AnyAction, Create, Delete, Patch
from tests.unit.disaggregated.played import World, limited

MOST_PASSES = 600
REVISIONS = ("aaaaaaaa", "bbbbbbbb", "cccccccc")


@dataclass
class Life:
    """A slice whose children have `ready` groups that stay and `doomed` ones that are still Ready on their way out."""

    rng: random.Random
    world: World
    templates: dict[str, Sequence[Obj]]
    """The roles of each revision."""
    ready: dict[str, int] = field(default_factory=dict)
    doomed: dict[str, int] = field(default_factory=dict)
    broken: frozenset[str] = frozenset()
    """Revisions whose groups never get Ready."""

    def observe(self, child: Child) -> Readiness:
        """What is ready of a child, now and then not known."""
        staying = min(self.ready.get(child.uid, 0), child.replicas)
        lost = self.ready.get(child.uid, 0) - staying
        doomed = self.doomed.get(child.uid, 0) + lost
        known = self.rng.random() > 0.05
        return Readiness(Ready(staying + doomed, staying), known=known, settled=not doomed)

    def pass_time(self) -> None:
        """Some groups get Ready, some that are to go are gone."""
        for obj in self.world.objects.values():
            child = Child.of(obj)
            had = self.ready.get(child.uid, 0)
            lost = max(0, had - child.replicas)
            doomed = self.doomed.get(child.uid, 0) + lost
            self.doomed[child.uid] = self.rng.randint(0, doomed)
            staying = had - lost
            most = staying if child.revision in self.broken else child.replicas
            self.ready[child.uid] = self.rng.randint(staying, max(staying, most))

    def live_one_pass(self, *, dies: bool) -> None:
        """One pass; a controller that dies has written only some of what it decided."""
        before = dict(self.world.objects)
        actions = self.decided()
        self.judge(actions, before)
        self.world.carry_out(actions[: self.rng.randint(0, len(actions))] if dies else actions)
        self.pass_time()

    def decided(self) -> Sequence[AnyAction]:
        """What the next pass does; one that would break a promise fails."""
        found = self.world.decided()
        assert found.error == ""
        assert found.plan.result.after == 1.0
        return found.plan.actions

    def judge(self, actions: Sequence[AnyAction], before: dict[str, Obj]) -> None:
        """What holds of every pass."""
        grown = False
        for action in actions:
            if isinstance(action, Create):
                assert action.obj["spec"]["replicas"] == 0
            elif isinstance(action, Delete):
                revision = labels_of(before[action.key.name])[names.REVISION_LABEL]
                assert revision != self.world.revision
                assert not any(self.world.spec(revision).values())
            elif isinstance(action, Patch) and "replicas" in action.body.get("spec", {}):
                child = Child.of(before[action.key.name])
                grows = action.body["spec"]["replicas"] > child.replicas
                grown = grown or grows
                is_target = child.revision == self.world.revision
                assert grows <= is_target, "an old revision grows"
                assert grows or not grown, "something shrinks after something grew"
                assert grows or not is_target or self.world.policy == names.ADVANCE_ROLLOUT, "the target shrinks"

    def edit(self) -> None:
        """Another template, perhaps with other roles, or one that was there before; or other counts."""
        rng, world = self.rng, self.world
        if rng.random() < 0.6:
            world.revision = rng.choice([r for r in REVISIONS if r != world.revision])
        world.roles = self.templates.setdefault(world.revision, some_roles(rng))
        if rng.random() < 0.5:
            paused = rng.random() < 0.1
            world.counts = {role["name"]: 0 if paused else rng.randint(1, 7) for role in world.roles}
        elif world.counts is not None and world.counts.keys() != {role["name"] for role in world.roles}:
            world.counts = None


def some_roles(rng: random.Random) -> list[Obj]:
    """One to three roles with limits of all kinds."""
    limits = [(1, 0), (0, 1), (1, 1), (2, 1), ("30%", "25%"), ("100%", 0)]
    picked = rng.sample(["prefill", "decode", "encode"], rng.randint(1, 3))
    return [limited(name, rng.randint(1, 6), *rng.choice(limits)) for name in picked]


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32))
def test_a_rollout_ends_whatever_happens_on_the_way(seed: int) -> None:
    """50 §23 lines 28, 30, 31: every step is legal, only whole drained revisions go, and the target is what remains."""
    rng = random.Random(seed)
    policy = rng.choice([names.ROLLOUT_COUPLED, names.ADVANCE_ROLLOUT])
    world = World(some_roles(rng), policy=policy, revision=REVISIONS[0])
    life = Life(rng, world, {REVISIONS[0]: world.roles})
    world.ready = life.observe
    scene = world.seen()
    world.carry_out([children.create(scene, role) for role in scene.spec.roles])
    for _ in range(rng.randint(1, 60)):
        if rng.random() < 0.1:
            life.edit()
        if rng.random() < 0.05:
            life.broken = frozenset(rng.sample(REVISIONS, rng.randint(0, 2)))
        if world.has_old:
            life.live_one_pass(dies=rng.random() < 0.3)
        else:
            life.pass_time()
    life.broken = frozenset()
    if not world.has_old:
        return
    told = world.reasons().count(names.EVENT_ROLLING_UPDATE_COMPLETED)
    for _ in range(MOST_PASSES):
        if not world.has_old:
            break
        life.live_one_pass(dies=False)
    assert not world.has_old, world.stand()
    assert world.reasons().count(names.EVENT_ROLLING_UPDATE_COMPLETED) == told + 1
    wanted, stand = world.seen().targets.roles, world.spec(world.revision)
    assert stand.keys() == wanted.keys()
    if policy == names.ADVANCE_ROLLOUT:
        assert stand == wanted
    assert all(stand[name] >= count for name, count in wanted.items())
