"""Whether counts by role are such at all: looked at once, when what holds them is made. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NoReturn

from lwskit.groups.model import DecisionError

_SAID: Final = {int: "a whole number of groups, 0 or more", bool: "True or False"}
_LONGEST: Final = 60


def require(owner: object, fields: Sequence[tuple[str, type]], size: int | None = None) -> int:
    """The number of roles that the vectors of an object have: `size`, or without it as many as the first of them has.

    `fields` are their names, and int or bool. Raises DecisionError for anything else than a tuple of such numbers, for
    other lengths, and where there is no role.
    """
    for name, kind in fields:
        vector = getattr(owner, name)
        # Nearly always true: only where it is not, anything is looked at one by one.
        if type(vector) is tuple and {*map(type, vector)} == {kind} and min(vector) >= 0:
            if size is None:
                size = len(vector)
            if len(vector) == size:
                continue
        _fault(f"{type(owner).__name__}.{name}", vector, kind, size)
    return size or 0


def require_type(value: object, wanted: type, place: str) -> None:
    """Raises DecisionError if what stands in a place is of another type."""
    if not isinstance(value, wanted):
        refuse(place, value, f"of the type {wanted.__name__}")


def refuse(place: str, value: object, wanted: str) -> NoReturn:
    """Raises DecisionError: what is there, and what must be."""
    text = repr(value)
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    raise DecisionError(f"the planner is given {shown} as {place}; it must be {wanted}")


def _fault(place: str, vector: Any, kind: type, size: int | None) -> NoReturn:
    if type(vector) is not tuple:
        refuse(place, vector, f"a tuple with {_SAID[kind]} for each role")
    for number, value in enumerate(vector):
        if type(value) is not kind or value < 0:
            refuse(f"{place}[{number}]", value, _SAID[kind])
    if not vector:
        refuse(place, vector, "for one role at least")
    refuse(place, vector, f"for {size} roles, as the vectors beside it are")
