"""What is known of all groups of a set in Hash mode at one moment. Pure.

Specification: 30 §7 (T, E, A, X, G), §12 (cur, old, dg, dr).
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Place(NamedTuple):
    """Where a leader stands among those of its revision: the oldest first."""

    created: str
    name: str
    uid: str
    group: str


@dataclass(frozen=True, slots=True)
class LeaderFacts:
    """What counts of a leader pod."""

    revision: str
    place: Place
    maker: str
    """UID of the workload that made it and counts it; empty where none does, as for one that was let go or made by
    hand, which takes nobody's place."""
    gated: bool
    deleting: bool
    ended: bool
    """Its containers are over for good, and it has not been deleted for that yet."""
    exhausted: bool
    """Its group has no restart left."""
    ready: bool

    @property
    def leaving(self) -> bool:
        """Whether what made it makes another one."""
        return self.deleting or self.ended

    @property
    def alive(self) -> bool:
        """Whether its group is there to stay."""
        return not self.leaving and not self.exhausted

    @property
    def waits(self) -> bool:
        """Whether it is at its gate."""
        return self.gated and not self.leaving


@dataclass(frozen=True, slots=True)
class Tally:
    """How many leaders of one revision there are."""

    leaders: int = 0
    """All that exist."""
    staying: int = 0
    """Neither being deleted nor ended."""
    admitted: int = 0
    """Alive, and not gated."""
    exhausted_ready: int = 0
    """Without a restart left, ready, and not being deleted."""


@dataclass(frozen=True, slots=True)
class Line:
    """The leaders of one revision that one workload has made: those at their gate, the oldest first, and how many
    others take a place."""

    gated: tuple[Place, ...] = ()
    taken: int = 0
    """Alive and not gated, or without a restart left."""

    def rank(self, place: Place) -> int | None:
        """Which of those at their gate a leader is, None if it is none of them."""
        found = bisect.bisect_left(self.gated, place)
        return found if found < len(self.gated) and self.gated[found] == place else None


@dataclass(frozen=True, slots=True)
class Made:
    """How many leaders there are that one workload has made."""

    active: int = 0
    """Neither being deleted nor ended: those that the workload counts."""
    ready: int = 0
    """Ready, whatever else becomes of them."""
    sound: int = 0
    """Ready, active, and with restarts left."""


_NONE = Tally()
_NOBODY = Line()


@dataclass(frozen=True, slots=True)
class PoolState:
    """All groups of a set.

    `torn_down` groups have pods and no living leader; `ended` of them are those whose leader is over and not deleted
    yet. `gated` has the places of the leaders at their gate by revision, `exhausted` those of leaders whose groups have
    no restart left; the oldest first. `lines` has them by revision and maker, `made` counts leaders by maker.
    """

    tallies: Mapping[str, Tally] = field(default_factory=dict)
    gated: Mapping[str, tuple[Place, ...]] = field(default_factory=dict)
    exhausted: Mapping[str, tuple[Place, ...]] = field(default_factory=dict)
    lines: Mapping[tuple[str, str], Line] = field(default_factory=dict)
    torn_down: int = 0
    ended: int = 0
    made: Mapping[str, Made] = field(default_factory=dict)

    def of(self, revision: str) -> Tally:
        """The leaders of one revision."""
        return self.tallies.get(revision, _NONE)

    def line(self, revision: str, maker: str) -> Line:
        """The leaders of one revision that the workload with that UID has made."""
        return self.lines.get((revision, maker), _NOBODY)

    @property
    def leaders(self) -> int:
        """All leaders that exist."""
        return sum(tally.leaders for tally in self.tallies.values())

    @property
    def degraded(self) -> int:
        """Groups without a restart left."""
        return sum(map(len, self.exhausted.values()))

    @property
    def degraded_ready(self) -> int:
        """Of those, the ready ones."""
        return sum(tally.exhausted_ready for tally in self.tallies.values())

    @property
    def waiting(self) -> int:
        """Leaders at their gate, of all revisions."""
        return sum(map(len, self.gated.values()))

    def others(self, revision: str) -> int:
        """Leaders of other revisions that are neither being deleted nor ended."""
        return sum(tally.staying for key, tally in self.tallies.items() if key != revision)

    def rank(self, revision: str, place: Place) -> int | None:
        """Which of the gated leaders of its revision a leader is, None if it is none of them."""
        row = self.gated.get(revision, ())
        found = bisect.bisect_left(row, place)
        return found if found < len(row) and row[found] == place else None

    def rank_among_all(self, revision: str, place: Place, desired: str) -> int | None:
        """The same among the gated leaders of all revisions, those of the desired one before all others."""
        own = self.rank(revision, place)
        if own is None or revision == desired:
            return own
        others = (item for item in self.gated.items() if item[0] != revision)
        return own + sum(len(row) if key == desired else bisect.bisect_left(row, place) for key, row in others)


NO_POOL = PoolState()
"""A set without groups."""
