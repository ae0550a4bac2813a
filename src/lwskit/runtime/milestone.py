"""An event that will either be set or never, and whoever waits for it learns which."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal


class Milestone(asyncio.Event):
    """An asyncio.Event whose `wait` raises once it can never be set any more."""

    def __init__(self) -> None:
        super().__init__()
        self._settled = asyncio.Event()
        self._failure: Callable[[], Exception] | None = None

    def set(self) -> None:
        """It has come about."""
        super().set()
        self._settled.set()

    def miss(self, failure: Callable[[], Exception]) -> None:
        """It will never come about, unless it has already; every `wait` raises an error of its own from `failure`."""
        if not self.is_set():
            self._failure = failure
            self._settled.set()

    async def wait(self) -> Literal[True]:
        """Return when it has come about; raise when it cannot any more. Cancelling only ends the wait."""
        await self._settled.wait()
        if not self.is_set() and self._failure is not None:
            raise self._failure()
        return True
