"""What follows from an edit of a DisaggregatedSet, pass by pass: the manager's own decision on a simulated set. Pure.

Specification: 50 §5–§8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated import spec
from lwskit.disaggregated.model import Child, Part
from lwskit.disaggregated.revision import resolve
from lwskit.disaggregated.subroles import tally
from lwskit.groups.model import DecisionError
from lwskit.runtime.objects import Obj
from lwskit.runtime.plan import Event
from lwskit.simulate.disaggregated_world import Group, World, subrole_of
from lwskit.simulate.report import ENOUGH, THE_EDIT

Choose = Callable[[Sequence[Group]], Sequence[Group]]
"""From the groups that may become ready, those first that came first, to those that do next; none ends it."""

BOOTSTRAP: Final = "bootstrap surge"
FALLBACK: Final = "availability fallback"
_MARKS: Final = {names.EVENT_BOOTSTRAP_SURGE: BOOTSTRAP, names.EVENT_AVAILABILITY_FALLBACK: FALLBACK}
_IDLE: Final = 3
"""Passes in a row that change nothing, after which the manager only waits: what one writes, the next may go on from."""


class Count(NamedTuple):
    """The groups of one part in one slice: asked for of old revisions and of the set's, and how many are ready."""

    old: int = 0
    new: int = 0
    ready: int = 0


class Place(NamedTuple):
    """One part in one slice."""

    slice: int
    part: Part


@dataclass(frozen=True, slots=True)
class Deeds:
    """What one pass does in one slice beside what the counts say."""

    marks: tuple[str, ...] = ()
    """How it exceeds a limit on purpose."""
    made: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    """The children that it makes, and those that are deleted."""
    labelled: int = 0
    """Of how many groups it changes the sub-role."""


IDLE: Final = Deeds()


@dataclass(frozen=True, slots=True)
class Step:
    """What one pass has changed. `after` is what it followed from, empty for one that follows from the pass before.

    `deeds` are by slice; under None those of children whose slice is not known.
    """

    after: str
    counts: Mapping[Place, Count]
    groups: int
    pods: int
    deeds: Mapping[int | None, Deeds] = field(default_factory=dict)

    @property
    def marks(self) -> tuple[str, ...]:
        """How it exceeds a limit on purpose, in any slice."""
        return tuple(dict.fromkeys(mark for one in self.deeds.values() for mark in one.marks))

    @property
    def made(self) -> tuple[str, ...]:
        """The children that it makes."""
        return tuple(sorted(name for one in self.deeds.values() for name in one.made))

    @property
    def gone(self) -> tuple[str, ...]:
        """The children that are deleted."""
        return tuple(sorted(name for one in self.deeds.values() for name in one.gone))

    @property
    def labelled(self) -> int:
        """Of how many groups it changes the sub-role."""
        return sum(one.labelled for one in self.deeds.values())

    def of(self, index: int) -> Deeds:
        """What it does in a slice."""
        return self.deeds.get(index, IDLE)


@dataclass(slots=True)
class Play:
    """A simulation that is run to its end. `choose` says which groups become ready when nothing else happens."""

    world: World
    choose: Choose
    steps: list[Step]
    note: str = ""
    """Why nothing goes on at the end, empty if nothing has to."""
    error: str = ""
    """Why the manager cannot decide, empty if it can."""
    _seen: Mapping[Place, Count] = field(default_factory=dict)
    """The counts that were last told of."""

    @classmethod
    def of(cls, world: World, choose: Choose) -> Play:
        """A simulation that has not begun."""
        return cls(world, choose, [])

    def run(self) -> None:
        """Passes until none changes anything, then readiness, and again, to the end."""
        after = THE_EDIT
        self._seen = counts(self.world)
        while len(self.steps) < ENOUGH:
            self._settle(after)
            chosen = self.choose(self.world.pending()) if not self.error else ()
            if not chosen:
                return
            after = told(chosen)
            self.world.make_ready(chosen)

    def _settle(self, after: str) -> None:
        """Passes until nothing changes any more."""
        idle = 0
        while idle < _IDLE and len(self.steps) < ENOUGH:
            there = dict(self.world.children)
            try:
                found, changed = self.world.step()
            except DecisionError as error:
                self.error = str(error)
                return
            self.error = "; ".join(f"slice {one.slice}: {one.error}" for one in found.slices if one.error)
            waits = [one.plan.note or one.plan.result.reason for one in found.slices if one.plan.result.after]
            self.note = "; ".join(dict.fromkeys(filter(None, (*waits, found.status.result.reason))))
            now = self.world.children
            if (seen := counts(self.world)) != self._seen or now.keys() != there.keys():
                self._seen = seen
                self.steps.append(step(self.world, after, there))
                after = ""
            idle = 0 if changed else idle + 1


def step(world: World, after: str, before: Mapping[str, Obj] | None = None) -> Step:
    """How things stand after a pass; `before` are the children that there were before it, the same if not given."""
    groups = [group for groups in world.groups.values() for group in groups]
    deeds = _deeds(world, before) if before is not None else {}
    return Step(after, counts(world), len(groups), sum(g.pods for g in groups), deeds)


def _deeds(world: World, before: Mapping[str, Obj]) -> dict[int | None, Deeds]:
    now = world.children
    made = [Child.of(now[name]) for name in sorted(now.keys() - before.keys())]
    gone = [Child.of(before[name]) for name in sorted(before.keys() - now.keys())]
    slices = {*(child.slice for child in (*made, *gone)), *world.events, *world.labelled}
    return {
        index: Deeds(
            _marks(world.events.get(index, ())),
            tuple(child.name for child in made if child.slice == index),
            tuple(child.name for child in gone if child.slice == index),
            world.labelled.get(index, 0) if index is not None else 0,
        )
        for index in slices
    }


def counts(world: World) -> dict[Place, Count]:
    """The groups of each part in each slice. Parts of the set are there even without any."""
    children = [c for c in world.own if not c.is_terminating]
    found = spec.read(world.ds)
    current = resolve(world.ds, children).revision
    counted = {Place(i, part): Count() for i in range(found.slices) for part in found.parts}
    for child in children:
        if child.slice is None:
            continue
        for subrole, replicas in _divided(child, found.role(child.role)).items():
            place = Place(child.slice, Part(child.role, subrole))
            had = counted.get(place, Count())
            ready = _ready(world.groups[child.uid], child.role, subrole, found)
            is_new = child.revision == current
            counted[place] = Count(
                had.old + (0 if is_new else replicas), had.new + (replicas if is_new else 0), had.ready + ready
            )
    return counted


def _divided(child: Child, role: spec.Role | None) -> Mapping[str, int]:
    try:
        return tally.of(child, role)
    except DecisionError:
        return {"": child.replicas}


def _ready(groups: Sequence[Group], role: str, subrole: str, found: spec.SetSpec) -> int:
    """The ready groups of a part: of a divided role those that are assigned to the sub-role."""
    known = found.role(role)
    if not subrole or known is None or not known.subroles:
        return sum(group.ready for group in groups)
    return sum(group.ready and subrole_of(group) == subrole for group in groups)


def _marks(events: Sequence[Event]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_MARKS[event.reason] for event in events if event.reason in _MARKS))


def told(chosen: Sequence[Group]) -> str:
    """That groups have become ready, in words."""
    if len(chosen) > 1:
        return f"{len(chosen)} groups are ready"
    subrole = subrole_of(chosen[0])
    of_subrole = f" of sub-role {subrole}" if subrole else ""
    return f"{chosen[0].leader['metadata']['name']}{of_subrole} is ready"
