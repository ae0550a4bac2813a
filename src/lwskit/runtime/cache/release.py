"""Letting go of many objects: to free a hundred thousand at once would stop the event loop for a second."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, TypeVar

STEP = 500

T = TypeVar("T")


def emptying(entries: dict[Any, T]) -> Iterator[T]:
    """The values of a dictionary that is emptied at once; each is let go of before the next is handed out."""
    values = deque(entries.values())
    entries.clear()
    while values:
        yield values.popleft()


def release(*several: dict[Any, Any]) -> Iterator[None]:
    """Empty dictionaries; others may run after each step."""
    for entries in several:
        while entries:
            for _ in range(min(STEP, len(entries))):
                entries.popitem()
            if entries:
                yield
