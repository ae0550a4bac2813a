"""Plans: what to do, as data. Pure. A decision returns a Plan; `lwskit.runtime.execute` carries it out.

Specification: architecture, part 4. Actions run in order and stop at the first failure that its rules do not absorb.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Key, Obj, ObjectRef
from lwskit.runtime.request import DONE, Result


class OnError(Enum):
    """What a failed action does to the plan."""

    RAISE = "raise"
    """Stop; the reconcile fails with the error and is retried with back-off (the default)."""
    IGNORE = "ignore"
    """Go on as if the action had succeeded."""
    REQUEUE = "requeue"
    """Stop without an error and run again with back-off: what was decided on has changed meanwhile."""
    LOOK = "look"
    """Stop without an error, read live what the action is about, and decide again: the cache does not show it."""
    LATER = "later"
    """Go on with the others, which do not depend on it; the reconcile fails with the error at the end."""


@dataclass(frozen=True, slots=True)
class AnswerOf:
    """A reference to the answer of an earlier action of the same plan, by that action's `name`.

    Stands in an Event's `related` for an object that does not exist yet when the plan is made.
    """

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Event:
    """An event to record (events.k8s.io/v1). In `note`, `{error}` stands for the API server's text where one failed."""

    regarding: ObjectRef
    reason: str
    action: str
    note: str
    type: str = "Normal"
    related: ObjectRef | AnswerOf | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Common to all actions.

    `why` is one sentence for people: logs, `lwskit plan` and `lwskit explain` print it. `name` lets later actions refer
    to the answer. `on_success` and `on_failure` are events to record; `errors` maps a Status reason (`AlreadyExists`,
    `NotFound`, `Conflict`…) to what it does to the plan; an error that is absorbed records no `on_failure`, and none
    of `on_success`.
    """

    why: str
    name: str = ""
    on_success: Event | None = None
    on_failure: Event | None = None
    errors: Mapping[str, OnError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Create(Action):
    """Create an object; it must not exist."""

    kind: Kind
    obj: Obj


@dataclass(frozen=True, slots=True, kw_only=True)
class Apply(Action):
    """Server-side apply of the full intent. Skipped when the live object already says and owns exactly this."""

    kind: Kind
    obj: Obj
    manager: str
    force: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch(Action):
    """A patch of an object or of its subresource; `uid` makes it apply to that incarnation only.

    A merge patch, or with `strategic`, for built-in kinds, one that changes single entries of lists by their keys.
    `anew` is asked on a conflict, with the object as it is now: it returns the body that is right for it, which is sent
    in place of the other, or None where what was decided does not hold for it any more, so that the conflict stands.
    """

    kind: Kind
    key: Key
    body: Obj
    subresource: str = ""
    uid: str = ""
    strategic: bool = False
    anew: Callable[[Obj], Obj | None] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateStatus(Action):
    """Replace the status subresource with that of `obj`; its resourceVersion is the precondition."""

    kind: Kind
    obj: Obj


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete(Action):
    """Delete an object of that UID; `propagation` is Foreground, Background or Orphan."""

    kind: Kind
    key: Key
    uid: str
    propagation: str = "Background"


@dataclass(frozen=True, slots=True, kw_only=True)
class Modify(Action):
    """Read the object live, apply a pure function, send the difference; repeated on a conflict.

    For counters kept on an object: `change` gets the fresh object and returns the changed one, or None for no change.
    """

    kind: Kind
    key: Key
    change: Callable[[Obj], Obj | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Emit(Action):
    """Record an event without a request that it belongs to."""

    event: Event


AnyAction = Create | Apply | Patch | UpdateStatus | Delete | Modify | Emit


@dataclass(frozen=True, slots=True)
class Plan:
    """What one decision came to: actions in order, then the outcome if all of them succeed.

    `note` says in a sentence why nothing (more) is done, for `explain` and the log.
    """

    actions: tuple[AnyAction, ...] = ()
    result: Result = DONE
    note: str = ""


@dataclass(frozen=True, slots=True)
class NeedFresh:
    """A decision's answer "read these live and ask me again": the cache may be stale for what is about to be done."""

    keys: tuple[tuple[Kind, Key], ...]
    why: str


Decision = Plan | NeedFresh
