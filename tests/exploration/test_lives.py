"""Every life ends the same, whenever its manager dies and whatever else goes wrong (specification: 20 §2, §14)."""

from __future__ import annotations

from collections.abc import Callable

from lwskit.testing.explore import Report, Settings
from tests.exploration.driver import Life

SAMPLE = 2
"""Points of each life in an ordinary run; `--explore-sample 0` has all of them."""


def test_life(explore: Callable[..., Report], exploration_settings: Settings, life: Life) -> None:
    """Wherever it is disturbed, the same objects are there at the end, made as often."""
    compared = life.compared(exploration_settings.compared)
    report = explore(life.scenario(), sample=SAMPLE, compared=compared, quiet=life.quiet)
    assert report.writes
