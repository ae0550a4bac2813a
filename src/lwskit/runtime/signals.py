"""SIGINT and SIGTERM: the first asks for an orderly end, the second ends the process."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class SignalHandler:
    """Calls `stop` on the first signal and `exit_now(1)` on the second (specification: 70 §1.3)."""

    def __init__(self, stop: Callable[[], Any], exit_now: Callable[[int], Any] = os._exit) -> None:
        self._stop = stop
        self._exit = exit_now
        self.received = 0

    def __call__(self) -> None:
        """Take one signal in."""
        self.received += 1
        if self.received == 1:
            self._stop()
        else:
            self._exit(1)

    def install(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Handle both signals on the running loop, or on the one given."""
        loop = loop or asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self)

    def remove(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Give both signals back to the interpreter."""
        loop = loop or asyncio.get_running_loop()
        for number in SIGNALS:
            loop.remove_signal_handler(number)
