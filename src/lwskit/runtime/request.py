"""What a work queue holds. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lwskit.runtime.objects import Key


@dataclass(frozen=True, slots=True)
class Request:
    """One piece of work: which object to look at.

    A queue folds equal requests into one, so what must not be folded is part of the identity: a request for a deleted
    object (`deleted`) with its `uid` never merges with one for a new object of the same name. `payload` carries facts
    of the event (for a deletion the last object seen) and takes no part in comparison.
    Specification: 70 §4 and 20 §10.1.
    """

    namespace: str
    name: str
    kind: str = ""
    uid: str = ""
    deleted: bool = False
    payload: Any = field(default=None, compare=False, hash=False, repr=False)

    @property
    def key(self) -> Key:
        """The place of the object."""
        return Key(self.namespace, self.name)

    def __str__(self) -> str:
        text = f"{self.kind} {self.key}".strip()
        return f"deleted {text}" if self.deleted else text


@dataclass(frozen=True, slots=True)
class Result:
    """What a reconcile asks for next: nothing, again with back-off (`requeue`), or at the latest in `after` seconds.

    `reason` goes to the log. `priority` overrides the one the request was taken with. Specification: 70 §5.3.
    """

    requeue: bool = False
    after: float = 0.0
    reason: str = ""
    priority: int | None = None


DONE = Result()
"""Nothing more to do until something changes."""
