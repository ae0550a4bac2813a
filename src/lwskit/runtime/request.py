"""What a work queue holds. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from lwskit.runtime.objects import Key


class _Identity(NamedTuple):
    """What two equal requests have in common. A tuple, since queues hash and compare requests all the time."""

    namespace: str
    name: str
    kind: str = ""
    uid: str = ""
    deleted: bool = False


class Request(_Identity):
    """One piece of work: which object to look at. Immutable.

    A queue folds equal requests into one, so what must not be folded is part of the identity: a request for a deleted
    object (`deleted`) with its `uid` never merges with one for a new object of the same name. `payload` carries facts
    of the event (for a deletion the last object seen) and takes no part in comparison.
    Specification: 70 §4 and 20 §10.1.
    """

    payload: Any = None

    def __new__(
        cls, namespace: str, name: str, kind: str = "", uid: str = "", deleted: bool = False, payload: Any = None
    ) -> Self:
        """Make a request; `kind` is a kind's bare name, empty where a controller has only one."""
        self = tuple.__new__(cls, (namespace, name, kind, uid, deleted))
        if payload is not None:
            self.__dict__["payload"] = payload
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a request is immutable; make another one instead of setting {name!r}")

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

    `reason` goes to the log. `priority` overrides the one the request was taken with. `error` is what would otherwise
    be raised: the reconcile has failed, and what else the result asks for does not count. Specification: 70 §5.3.
    """

    requeue: bool = False
    after: float = 0.0
    reason: str = ""
    priority: int | None = None
    error: Exception | None = None

    def __post_init__(self) -> None:
        """Raises TypeError or ValueError for a field that is none of this."""
        after = self.after
        if isinstance(after, bool) or not isinstance(after, int | float):
            raise TypeError(f"Result(after=…) is {type(after).__name__}; give a number of seconds")
        if not math.isfinite(after):
            raise ValueError(f"Result(after={after}) is no time; give a finite number of seconds")
        if not isinstance(self.requeue, bool):
            raise TypeError(f"Result(requeue=…) is {type(self.requeue).__name__}; give True or False, or after=seconds")
        if self.priority is not None and (isinstance(self.priority, bool) or not isinstance(self.priority, int)):
            raise TypeError(f"Result(priority=…) is {type(self.priority).__name__}; give an int or None")
        if self.error is not None and not isinstance(self.error, Exception):
            raise TypeError(f"Result(error=…) is {type(self.error).__name__}; give an exception or None")


DONE = Result()
"""Nothing more to do until something changes."""
