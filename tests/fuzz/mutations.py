"""Changes of JSON values that turn a valid object into one that is nearly valid, odd or hostile."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

Place = tuple[Any, Any]
"""An object or list, and a key or index of it."""

TEXTS = (
    "",
    " ",
    "-1",
    "0",
    "1",
    "2",
    "7",
    "2147483648",
    "9" * 25,
    "9" * 5000 + "%",
    "150%",
    "5%",
    "1e3",
    "1e999999999",
    "1000E",
    "0.1m",
    "1" * 300,
    "true",
    "null",
    "-",
    "a-",
    "a" * 64,
    "a" * 300,
    "A_b",
    "a/b/c",
    "a.b/c",
    "../x",
    "$(A)",
    "ü😀",
    "\x00",
    "\u2028",
    "rack",
    "Hash",
    "Ordinal",
    "Immediate",
    "Default",
    "None",
    "Parallel",
    "LeaderExcluded",
    "LeaderWorker",
    "UniquePerReplica",
    "LeaderReady",
    "RecreateGroupAfterStart",
    "OnDelete",
    "llm-0",
    "llm-0-1",
    "llm-99999999999999999999",
)
NUMBERS = (0, 1, 2, 3, -1, 5, 100, 2**31 - 1, 2**31, -(2**31) - 1, 2**53, 2**63, 2**64 - 1, 0.5, 1.0, 2.5, 1e300, -0.0)
EMPTY = (None, True, False, [], {}, [None], [{}], [[]], {"": None}, {"name": []}, {"name": "x"})


_ENOUGH = 5000
"""Places from which on an object is not changed further: repeated lists in repeated lists would fill the memory."""


def places(value: Any) -> list[Place]:
    """Every place in a value but the value itself, the outer ones first."""
    found: list[Place] = []
    open_ = [value]
    for owner in open_:
        for key in owner if isinstance(owner, dict) else range(len(owner)):
            found.append((owner, key))
            if isinstance(owner[key], dict | list):
                open_.append(owner[key])
    return found


def odd(rng: random.Random) -> Any:
    """A value that few fields expect."""
    match rng.randrange(8):
        case 0 | 1:
            return rng.choice(TEXTS)
        case 2 | 3:
            return rng.choice(NUMBERS)
        case 4:
            value: Any = copy.deepcopy(rng.choice(EMPTY))
            for _ in range(rng.choice((2, 50, 300, 600))):
                value = [value] if rng.random() < 0.5 else {rng.choice(("a", "spec", "")): value}
            return value
        case 5:
            return [odd(rng) for _ in range(rng.choice((1, 3, 20)))] if rng.random() < 0.5 else ["x"] * 500
        case _:
            return copy.deepcopy(rng.choice(EMPTY))


def _replace(rng: random.Random, owner: Any, key: Any) -> None:
    owner[key] = odd(rng)


def _remove(rng: random.Random, owner: Any, key: Any) -> None:
    del owner[key]


def _nudge(rng: random.Random, owner: Any, key: Any) -> None:
    """Another value of the same type."""
    value = owner[key]
    if isinstance(value, str):
        changes = (value.upper(), value + rng.choice(TEXTS), value[1:], value[:-1], value * 2, rng.choice(TEXTS))
        owner[key] = rng.choice(changes)
    elif isinstance(value, bool):
        owner[key] = not value
    elif isinstance(value, int | float):
        owner[key] = rng.choice((value + 1, value - 1, -value, value * 1000, rng.choice(NUMBERS)))
    elif isinstance(value, list):
        owner[key] = value * rng.choice((0, 2, 3, 30))
    elif isinstance(value, dict):
        owner[key] = {rng.choice((k, k.upper(), f"{k}/x")): v for k, v in value.items()}


def _grow(rng: random.Random, owner: Any, key: Any) -> None:
    """Another entry, known or unknown."""
    if isinstance(owner, dict):
        owner[rng.choice(("future", "name", "env", "resources", "labels", "a/b~c", rng.choice(TEXTS)))] = odd(rng)
    else:
        owner.insert(key, odd(rng))


def _swap(rng: random.Random, owner: Any, key: Any) -> None:
    """Two values of one object or list in each other's place."""
    other = rng.choice(list(owner)) if isinstance(owner, dict) else rng.randrange(len(owner))
    owner[key], owner[other] = owner[other], owner[key]


CHANGES: tuple[Callable[[random.Random, Any, Any], None], ...] = (
    _replace,
    _remove,
    _nudge,
    _nudge,
    _nudge,
    _grow,
    _swap,
)


def mutate(rng: random.Random, obj: Any, times: int) -> None:
    """Change an object, which shares no part of itself, at so many places, more of them outer than inner ones."""
    for _ in range(times):
        found = places(obj)
        if not 0 < len(found) < _ENOUGH:
            return
        rng.choice(CHANGES)(rng, *found[int(len(found) * rng.random() ** 2)])
