"""An event loop on which time can pass faster, for tests of real sockets that take minutes."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    speed = 1.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return super().select(timeout / self.speed if timeout and timeout > 0 else timeout)


class FastLoop(asyncio.SelectorEventLoop):
    """A loop whose seconds last a `speed`-th of a second; the speed may be changed at any time."""

    def __init__(self, speed: float = 1.0) -> None:
        self._clock = _Selector()
        super().__init__(self._clock)
        self._base = self._passed = super().time()
        self._clock.speed = speed

    @property
    def speed(self) -> float:
        return self._clock.speed

    @speed.setter
    def speed(self, speed: float) -> None:
        self._passed, self._base = self.time(), super().time()
        self._clock.speed = speed

    def time(self) -> float:
        return self._passed + (super().time() - self._base) * self._clock.speed


def run(main: Coroutine[Any, Any, T], speed: float = 1.0) -> T:
    """Run a coroutine to its end on a loop of that speed."""
    with asyncio.Runner(loop_factory=lambda: FastLoop(speed)) as runner:
        return runner.run(main)


def hurry(speed: float) -> None:
    """Let time pass so much faster from now on."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, FastLoop)
    loop.speed = speed
