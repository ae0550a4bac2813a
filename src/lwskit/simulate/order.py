"""In which order groups are taken to become ready. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

Order = Callable[[Sequence[int]], Sequence[int]]
"""From the groups that may become ready, ascending, to those that do next; none ends the simulation."""

HIGHEST: Final = "highest-first"
LOWEST: Final = "lowest-first"
TOGETHER: Final = "together"
NEVER: Final = "never"
ORDERS: Final = (HIGHEST, LOWEST, TOGETHER, NEVER)

_SAID: Final = {
    HIGHEST: "groups that are made become ready one after another, always the highest first",
    LOWEST: "groups that are made become ready one after another, always the lowest first",
    TOGETHER: "all groups that are made become ready at once",
    NEVER: "no group becomes ready",
}
_HASHED: Final = {
    HIGHEST: "groups that are let in become ready one after another, always the newest first",
    LOWEST: "groups that are let in become ready one after another, always the oldest first",
    TOGETHER: "all groups that are let in become ready at once",
}
_GONE: Final = "the pods of groups that are taken away are gone before another group becomes ready"
_REST: Final = (
    "so do those that are not ready now if they are of the revision that is rolled out and their pods show no trouble; "
    "others stay as they are until they are made anew; a group becomes ready as a whole"
)


class OrderError(ValueError):
    """A text that names no order; one sentence."""


def parse(text: str) -> Order:
    """The order of that name, or a list of groups such as `5,4,2` after which it is highest first; so it is for an
    empty text too.

    Raises OrderError.
    """
    if text in ("", HIGHEST):
        return lambda pending: pending[-1:]
    if text == LOWEST:
        return lambda pending: pending[:1]
    if text == TOGETHER:
        return lambda pending: pending
    if text == NEVER:
        return lambda pending: ()
    try:
        return _listed([int(part) for part in text.split(",")])
    except ValueError:
        raise OrderError(f"{text!r} is no order; use {', '.join(ORDERS)}, or groups such as 5,4,2") from None


def named(text: str) -> tuple[int, ...]:
    """The groups that an order names. Raises OrderError."""
    parse(text)
    return () if text in ORDERS else tuple(int(part) for part in text.split(","))


def told(text: str, *, hashed: bool = False) -> str:
    """The assumption in a sentence; `hashed` for sets in Hash mode, whose groups are numbered as a plan makes them."""
    if hashed:
        listed = f"groups become ready in the order new {text.replace(',', ', new ')}, then the newest first"
        said = _SAID[NEVER] if text == NEVER else f"{_HASHED.get(text, listed)}; {_REST}"
        return f"{_GONE}; {said}"
    if text == NEVER:
        return _SAID[NEVER]
    listed = f"groups become ready in the order {text.replace(',', ', ')}, then the highest first"
    return f"{_SAID.get(text, listed)}; {_REST}"


def _listed(groups: list[int]) -> Order:
    """These groups in this order, each as soon as it may; those that may not are waited for as long as others may."""
    left = list(groups)

    def choose(pending: Sequence[int]) -> Sequence[int]:
        for group in left:
            if group in pending:
                left.remove(group)
                return (group,)
        return pending[-1:]

    return choose
