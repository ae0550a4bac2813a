"""Sequences with what came of them on a real cluster, to be played again where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from tests.differential.side_by_side.game import Move
from tests.differential.side_by_side.play import Played

Recording = dict[str, Any]


def as_recording(seed: int, played: Sequence[Played]) -> Recording:
    """The moves, and for each its answers and what has changed after it; null is what is not there any more."""
    steps: list[dict[str, Any]] = []
    before: dict[str, Any] = {}
    for step in played:
        changed = {k: v for k, v in step.state.items() if before.get(k) != v}
        changed |= {k: None for k in before if k not in step.state}
        steps.append({"move": step.move, "answers": step.answers, "changed": changed})
        before = step.state
    return {"seed": seed, "steps": steps}


def moves(recording: Recording) -> list[Move]:
    """The moves of a recording."""
    return [step["move"] for step in recording["steps"]]


def expected(recording: Recording) -> list[tuple[list[str], dict[str, Any]]]:
    """For each move the answers and the whole state after it."""
    state: dict[str, Any] = {}
    found = []
    for step in recording["steps"]:
        state = {k: v for k, v in {**state, **step["changed"]}.items() if v is not None}
        found.append((step["answers"], state))
    return found


def save(file: Path, recordings: Sequence[Recording]) -> None:
    """Write a file of recordings, one in each line."""
    lines = [orjson.dumps(r, option=orjson.OPT_SORT_KEYS) for r in sorted(recordings, key=lambda r: r["seed"])]
    file.write_bytes(b"\n".join(lines) + b"\n")


def load(file: Path) -> list[Recording]:
    """Read a file of recordings."""
    return [orjson.loads(line) for line in file.read_bytes().splitlines()]
