"""What an explanation of a set is made of. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from lwskit.groups.model import Victim
from lwskit.groups.victims import told


class State(Enum):
    """How a set stands."""

    OK = "ok"
    """It is where it should be."""
    PROGRESSING = "progressing"
    """It goes on by itself."""
    HELD = "held"
    """The user's partition holds it."""
    BLOCKED = "blocked"
    """It goes on only if somebody does something."""
    DELETING = "deleting"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a set is where it is. `cause` is a stable code, `sentences` make the paragraph."""

    namespace: str
    name: str
    state: State
    cause: str
    sentences: tuple[str, ...]
    group: int | str | None = None
    """The group that it is about: its number, or in Hash mode its key."""
    pod: str = ""
    """The pod of it."""
    waits_for: str = ""
    """What the controllers wait for."""
    advice: tuple[str, ...] = ()
    """What a person can do; commands in backquotes."""
    replicas: int = 0
    """Groups that are wanted now, where `next_to_go` says what one fewer costs."""
    next_to_go: tuple[Victim, ...] = ()
    """The groups that would go if the set wanted one fewer."""

    @property
    def paragraph(self) -> str:
        """All in one paragraph."""
        return " ".join((*self.sentences, *(f"{upper(text)}." for text in self.advice)))

    @property
    def scale_down(self) -> str:
        """What one group fewer would cost, in words; empty where that cannot be told."""
        return told(self.replicas, self.replicas - 1, self.next_to_go) if self.next_to_go else ""


def upper(text: str) -> str:
    """A text as the beginning of a sentence."""
    return text[:1].upper() + text[1:]


def quoted(text: str) -> str:
    """Words of somebody else as the end of a sentence that gets its full stop here: without one of their own."""
    return text if text.endswith("..") else text.removesuffix(".")


def are(count: int) -> str:
    """The verb for so many of something."""
    return "is" if count == 1 else "are"
