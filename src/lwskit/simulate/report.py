"""The plan for an edit of a set as it is told: what the edit is, its steps, where they end, and at what cost. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from lwskit.groups.model import Victim
from lwskit.groups.victims import told
from lwskit.simulate.edit import Verdict
from lwskit.simulate.hashed_rollout import HashStep
from lwskit.simulate.rollout import Step

THE_EDIT: Final = "the edit"
REFUSED: Final = "refused"
"""The code of what the API server says of an edit that it refuses."""
ENOUGH: Final = 20_000
"""Steps after which a plan is cut off."""


class Outcome(Enum):
    """Where the steps end."""

    DONE = "done"
    HELD = "held by the partition"
    STALLED = "stalls"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Notice:
    """Something to know before the edit is made: a stable code, a sentence, and what can be done."""

    code: str
    message: str
    hints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The plan for one set."""

    namespace: str
    name: str
    verdict: Verdict
    rolled: int = 0
    """Groups that are made anew, of those that there are to be before and after the edit; surge is not among them."""
    changed: tuple[str, ...] = ()
    assumed: str = ""
    steps: tuple[Step, ...] = ()
    """Of a set in Ordinal mode."""
    hash_steps: tuple[HashStep, ...] = ()
    """Of a set in Hash mode."""
    outcome: Outcome = Outcome.DONE
    replicas: int = 0
    """Groups wanted after the edit."""
    ready_before: int = 0
    groups_before: int = 0
    pods_before: int = 0
    floor: int | None = None
    """replicas − maxUnavailable; None for a set that does not exist yet."""
    notices: tuple[Notice, ...] = field(default=())
    wanted_before: int | None = None
    """Groups wanted before the edit, where that is another number than `groups_before`."""
    restarted: str = ""
    """The group that is recreated, where that is what is planned."""
    restarts_as: str = "recreates"
    """What the manager does with that group."""
    at_worst: int | None = None
    """In Hash mode: the fewest ready groups if no group becomes ready at all."""

    @property
    def all_steps(self) -> tuple[Step | HashStep, ...]:
        """The steps, whatever the mode."""
        return (*self.steps, *self.hash_steps)

    @property
    def lowest(self) -> int:
        """The lowest number of ready groups at any step, and before the first."""
        return min([self.ready_before, *(s.ready for s in self.all_steps)])

    @property
    def peak_groups(self) -> int:
        """The greatest number of groups at any step."""
        return max([self.groups_before, *(s.total for s in self.all_steps)])

    @property
    def peak_pods(self) -> int:
        """The greatest number of pods at any step."""
        return max([self.pods_before, *(s.pods for s in self.all_steps)])

    @property
    def good(self) -> bool:
        """Whether the edit is accepted and its steps come to an end by themselves."""
        return self.outcome in (Outcome.DONE, Outcome.HELD)


def refused(namespace: str, name: str, sentences: Sequence[str]) -> Report:
    """The plan for an edit that the API server refuses."""
    notices = tuple(Notice(REFUSED, sentence) for sentence in sentences)
    return Report(namespace=namespace, name=name, verdict=Verdict.REFUSED, outcome=Outcome.REFUSED, notices=notices)


def scaled_down(before: int, after: int, found: Sequence[Victim]) -> Notice:
    """Which groups go because the set gets smaller."""
    return Notice("scale-down", told(before, after, found))
