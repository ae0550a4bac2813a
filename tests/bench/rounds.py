"""Things measured against each other: rounds in turn, so that a machine's moods strike all alike, and medians."""

from __future__ import annotations

import gc
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from lwskit.runtime.gc import THRESHOLDS

Measure = Callable[[], float]
"""Runs once; returns the seconds that count."""


def medians(measures: Mapping[str, Measure], rounds: int) -> dict[str, float]:
    """The median seconds of each after `rounds` rounds, of which every second goes through them backwards."""
    found: dict[str, list[float]] = {name: [] for name in measures}
    order = [*measures]
    for name in order:
        measures[name]()
    for _ in range(rounds):
        for name in order:
            with collector():
                found[name].append(measures[name]())
        order.reverse()
    return {name: statistics.median(seconds) for name, seconds in found.items()}


@contextmanager
def collector() -> Iterator[None]:
    """The garbage collector as GcPolicy sets it for a program whose caches are filled."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


class Report:
    """Prints a line for each ratio, and remembers which targets were missed."""

    def __init__(self) -> None:
        self.missed: list[str] = []

    def ratio(self, what: str, value: float, *, most: float | None = None, least: float | None = None) -> None:
        """A number of times, with the most or least that it should be."""
        self.figure(what, value, "×", most=most, least=least)

    def figure(
        self, what: str, value: float, unit: str, *, most: float | None = None, least: float | None = None
    ) -> None:
        """Any other figure; the bounds are in its unit."""
        verdict = ""
        if most is not None or least is not None:
            bound = f"≤ {most:g}" if most is not None else f"≥ {least:g}"
            missed = (most is not None and value > most) or (least is not None and value < least)
            verdict = f"  (target {bound}: {'MISSED' if missed else 'met'})"
            if missed:
                self.missed.append(what)
        self.say(f"  {value:9.2f} {unit:<6} {what}{verdict}")

    def say(self, text: str) -> None:
        """A line of text."""
        print(text, flush=True)

    def done(self) -> None:
        """The last line."""
        if self.missed:
            print("targets missed: " + "; ".join(self.missed), file=sys.stderr)
        else:
            print("every target met")
