"""Comparing objects of a cluster, leaving out what the server makes up. Pure (specification: 70 §14)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

Path = tuple[str, ...]

GENERATED = (
    "metadata.uid",
    "metadata.generation",
    "metadata.creationTimestamp",
    "metadata.resourceVersion",
    "metadata.managedFields",
    "metadata.deletionGracePeriodSeconds",
    "metadata.deletionTimestamp",
    "metadata.selfLink",
    "metadata.generateName",
)
"""Paths whose values the server decides; ignored unless asked for."""

_STEP = re.compile(r"\[(?:'([^']*)'|\"([^\"]*)\"|(\d+|\*))\]|\.?([^.\[]+)")
_MISSING = object()


def parse_path(text: str) -> Path:
    """The steps of a path such as `spec.containers[0].image` or `metadata.labels['app.kubernetes.io/name']`.

    `*` stands for any one step. Raises ValueError for text that is not a path.
    """
    steps, position = [], 0
    for match in _STEP.finditer(text):
        if match.start() != position:
            break
        steps.append(next(g for g in match.groups() if g is not None))
        position = match.end()
    if not steps or position != len(text):
        raise ValueError(f"{text!r} is not a path: write for example spec.containers[0].image")
    return tuple(steps)


def differences(
    got: Any, want: Any, *, ignore: Iterable[str] = (), match: Iterable[str] = (), generated: bool = False
) -> list[str]:
    """What differs between two objects, one line each: `path: got …, want …`.

    `ignore` leaves out paths and all below them; `match`, where given, compares only these and what is below them.
    `generated` set to True compares the paths of GENERATED too. Raises ValueError for a malformed path.
    """
    ignored = [parse_path(p) for p in (*ignore, *(() if generated else GENERATED))]
    matched = [parse_path(p) for p in match]
    return [
        f"{_show(path)}: got {_value(a)}, want {_value(b)}"
        for path, a, b in _walk(got, want, ())
        if not any(_covers(i, path) for i in ignored) and (not matched or any(_covers(m, path) for m in matched))
    ]


def assert_equal_objects(
    got: Any, want: Any, *, ignore: Iterable[str] = (), match: Iterable[str] = (), generated: bool = False
) -> None:
    """Fail unless two objects are equal but for ignored paths; arguments as in `differences`.

    Raises AssertionError with one line for every difference. Specification: 70 §14.
    """
    found = differences(got, want, ignore=ignore, match=match, generated=generated)
    assert not found, "the objects differ:\n  " + "\n  ".join(found)


def _walk(got: Any, want: Any, path: Path) -> Iterator[tuple[Path, Any, Any]]:
    if isinstance(got, Mapping) and isinstance(want, Mapping):
        for key in sorted({*got, *want}):
            yield from _walk_child(got.get(key, _MISSING), want.get(key, _MISSING), (*path, key))
    elif _is_list(got) and _is_list(want):
        for i in range(max(len(got), len(want))):
            a = got[i] if i < len(got) else _MISSING
            b = want[i] if i < len(want) else _MISSING
            yield from _walk_child(a, b, (*path, str(i)))
    elif got != want or isinstance(got, bool) != isinstance(want, bool):
        yield path, got, want


def _walk_child(got: Any, want: Any, path: Path) -> Iterator[tuple[Path, Any, Any]]:
    """Where only one side has a subtree, its leaves are told one by one, so that paths below it can be ignored."""
    if got is _MISSING and isinstance(want, Mapping) and want:
        got = {}
    elif want is _MISSING and isinstance(got, Mapping) and got:
        want = {}
    yield from _walk(got, want, path)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _covers(pattern: Path, path: Path) -> bool:
    return len(pattern) <= len(path) and all(p in ("*", s) for p, s in zip(pattern, path, strict=False))


def _show(path: Path) -> str:
    text = ""
    for step in path:
        if step.isdecimal():
            text += f"[{step}]"
        elif "." in step or "/" in step:
            text += f"['{step}']"
        else:
            text += f".{step}" if text else step
    return text or "the whole"


def _value(value: Any) -> str:
    return "nothing" if value is _MISSING else repr(value)
