"""The plan for an edit of a DisaggregatedSet: its steps, the lowest capacity, the widest skew, and the peak. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, NamedTuple

from lwskit.disaggregated.model import Part
from lwskit.simulate.disaggregated_edit import Verdict
from lwskit.simulate.disaggregated_rollout import Count, Place, Step
from lwskit.simulate.disaggregated_world import Write
from lwskit.simulate.report import REFUSED, Notice, Outcome

NOTHING = Count()
"""A part of which there is nothing."""

CHILD_REFUSED: Final = "child-refused"
UNRESOLVED: Final = "unresolved"
NO_DECISION: Final = "no-decision"
WAITS: Final = "waits"
CUT_OFF: Final = "cut-off"
"""The codes of what is said of the end of a plan that stalls."""


class Lowest(NamedTuple):
    """The fewest ready groups of a part in one slice: at which step (0 is before the first), of how many wanted."""

    ready: int
    wanted: int
    slice: int
    step: int


class Skew(NamedTuple):
    """How far one part is ahead of another, as shares of what each has to do, and in which step (from 1).

    `side` is `new` for the groups that the set's revision has, of those it is to have; `old` for those that old
    revisions have given up, of those they had. `window` is one group of the smallest part on that side.
    """

    share: Fraction
    window: Fraction
    side: str
    ahead: Part
    behind: Part
    slice: int
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The plan for one set. `desired` has the groups that each part is to have in each slice in the end."""

    namespace: str
    name: str
    verdict: Verdict
    changed: tuple[str, ...] = ()
    assumed: str = ""
    before: Step | None = None
    steps: tuple[Step, ...] = ()
    desired: Mapping[Place, int] = field(default_factory=dict)
    revision_before: str = ""
    revision: str = ""
    writes: tuple[Write, ...] = ()
    """What is asked of children, in order."""
    outcome: Outcome = Outcome.DONE
    notices: tuple[Notice, ...] = ()

    @property
    def good(self) -> bool:
        """Whether the edit is accepted and its steps come to an end by themselves."""
        return self.outcome is Outcome.DONE

    @property
    def moments(self) -> tuple[Step, ...]:
        """How things stand before the first step and after each."""
        return (*((self.before,) if self.before is not None else ()), *self.steps)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the set in spec order, then those that only old revisions have, by name."""
        wanted = list(dict.fromkeys(place.part for place in self.desired))
        others = {place.part for moment in self.moments for place in moment.counts} - {*wanted}
        return (*wanted, *sorted(others))

    @property
    def slices(self) -> tuple[int, ...]:
        """The slices that there are at any moment."""
        found = {place.slice for moment in self.moments for place in moment.counts}
        return tuple(sorted(found | {place.slice for place in self.desired}))

    @property
    def wanted(self) -> int:
        """Groups that the set is to have in the end."""
        return sum(self.desired.values())

    @property
    def lowest(self) -> dict[Part, Lowest]:
        """The lowest capacity of each part, in whichever of the slices that the set is to have it is lowest.

        What has no group before the first step has no capacity to lose: a new slice, a new role. Parts that have none
        anywhere are left out; one that is told of no more has none left.
        """
        found: dict[Part, Lowest] = {}
        slices = {place.slice for place in self.desired}
        had = [p for p in (self.before.counts if self.before else ()) if p.slice in slices and self._had(p)]
        for number, moment in enumerate(self.moments):
            for place in had:
                ready = moment.counts.get(place, NOTHING).ready
                one = Lowest(ready, self.desired.get(place, 0), place.slice, number)
                if place.part not in found or one.ready < found[place.part].ready:
                    found[place.part] = one
        return {part: found[part] for part in self.parts if part in found}

    def had_groups(self, index: int) -> bool:
        """Whether a slice has groups, or is asked for some, before the first step."""
        return any(place.slice == index and self._had(place) for place in (self.before.counts if self.before else ()))

    def _had(self, place: Place) -> bool:
        return self.before is not None and any(self.before.counts.get(place, NOTHING))

    @property
    def skew(self) -> Skew | None:
        """The widest skew at any step at which old groups are left in the slice; None if there is none."""
        sizes = self._old_sizes()
        best: Skew | None = None
        for number, step in enumerate(self.steps, 1):
            slices: dict[int, dict[Part, Count]] = {}
            for place, count in step.counts.items():
                slices.setdefault(place.slice, {})[place.part] = count
            for index, here in sorted(slices.items()):
                for found in self._skews(here, number, index, sizes):
                    if found.share > (best.share if best is not None else 0):
                        best = found
        return best

    def _old_sizes(self) -> dict[Place, int]:
        sizes: dict[Place, int] = {}
        for moment in self.steps:
            for place, count in moment.counts.items():
                sizes[place] = max(sizes.get(place, 0), count.old)
        return sizes

    def _skews(self, here: Mapping[Part, Count], number: int, index: int, sizes: Mapping[Place, int]) -> list[Skew]:
        if not any(count.old for count in here.values()):
            return []
        wanted = {part: self.desired.get(Place(index, part), 0) for part in here}
        given = {part: sizes[Place(index, part)] - count.old for part, count in here.items()}
        had = {part: sizes[Place(index, part)] for part in here}
        new = {part: count.new for part, count in here.items()}
        return [
            Skew(*one, index, number)
            for side, done, whole in (("new", new, wanted), ("old", given, had))
            if (one := _widest(side, done, whole)) is not None
        ]

    @property
    def peak(self) -> Step | None:
        """The moment with the most groups."""
        return max(self.moments, key=lambda moment: (moment.groups, moment.pods), default=None)


def _widest(
    side: str, done: Mapping[Part, int], whole: Mapping[Part, int]
) -> tuple[Fraction, Fraction, str, Part, Part] | None:
    """The distance between the part that is furthest and the one that is least far."""
    shares = {part: min(Fraction(1), Fraction(done[part], size)) for part, size in whole.items() if size > 0}
    if len(shares) < 2:
        return None
    ahead, behind = max(shares, key=lambda p: shares[p]), min(shares, key=lambda p: shares[p])
    smallest = min(size for size in whole.values() if size > 0)
    return shares[ahead] - shares[behind], Fraction(1, smallest), side, ahead, behind


def refused(namespace: str, name: str, sentences: Sequence[str]) -> Report:
    """The plan for an edit that the API server refuses."""
    notices = tuple(Notice(REFUSED, sentence) for sentence in sentences)
    return Report(namespace=namespace, name=name, verdict=Verdict.REFUSED, outcome=Outcome.REFUSED, notices=notices)
