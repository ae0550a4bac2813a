"""Sequences about Deployments that were played on a real cluster, on the embedded one; and the ranking of pods."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.differential.deployments.game import Deployments
from tests.differential.normal import differences
from tests.differential.side_by_side import recording
from tests.differential.side_by_side.play import replay_embedded

FILE = Path(__file__).parents[2] / "differential" / "deployments" / "recorded.jsonl"
RECORDED = {r["seed"]: r for r in recording.load(FILE)}


@pytest.mark.parametrize("seed", sorted(RECORDED))
def test_the_same_comes_of_it(seed: int) -> None:
    played = replay_embedded(Deployments(), recording.moves(RECORDED[seed]))
    wanted = recording.expected(RECORDED[seed])
    for number, (step, (answers, state)) in enumerate(zip(played, wanted, strict=True)):
        assert step.answers == answers, f"move {number}"
        found = differences(step.state, state)
        assert not found, f"after move {number}, embedded | real:\n" + "\n".join(found)
        assert not step.wrong, f"the ranking, after move {number}"
