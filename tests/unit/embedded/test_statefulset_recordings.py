"""Sequences about StatefulSets that were played on a real cluster, on the embedded one; and lwskit's forecasts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.differential.normal import differences
from tests.differential.side_by_side import recording
from tests.differential.side_by_side.play import play_embedded, replay_embedded
from tests.differential.statefulsets.game import StatefulSets
from tests.differential.statefulsets.moves import LEADERS

FILE = Path(__file__).parents[2] / "differential" / "statefulsets" / "recorded.jsonl"
RECORDED = {r["seed"]: r for r in recording.load(FILE)}


@pytest.mark.parametrize("seed", sorted(RECORDED))
def test_the_same_comes_of_it(seed: int) -> None:
    played = replay_embedded(StatefulSets(), recording.moves(RECORDED[seed]))
    wanted = recording.expected(RECORDED[seed])
    for number, (step, (answers, state)) in enumerate(zip(played, wanted, strict=True)):
        assert step.answers == answers, f"move {number}"
        found = differences(step.state, state)
        assert not found, f"after move {number}, embedded | real:\n" + "\n".join(found)


def test_what_lwskit_foretells_of_leaders_comes_to_pass() -> None:
    judged = 0
    for seed in range(8):
        for number, step in enumerate(play_embedded(StatefulSets(LEADERS), seed, 20)):
            assert not step.wrong, f"seed {seed}, move {number}"
            judged += step.judged
    assert judged > 100
