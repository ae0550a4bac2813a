"""Running a command's coroutine until it ends or a person stops it."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any

from lwskit.runtime.signals import SignalHandler

GRACE = 1.8
"""Seconds from the first signal until the process ends whatever it still does."""


def run_until_interrupted(work: Coroutine[Any, Any, None], *, grace: float = GRACE) -> bool:
    """Run `work`; SIGINT and SIGTERM cancel it, a second one, or `grace` more seconds, end the process with code 1.

    Returns whether it was interrupted, after cleaning up. Raises what `work` raises.
    """
    # A thread, since whatever keeps the loop from ending would keep its timers from firing too.
    last_resort = threading.Timer(grace, os._exit, (1,))
    last_resort.daemon = True
    try:
        return asyncio.run(_run(work, last_resort))
    finally:
        last_resort.cancel()


async def _run(work: Coroutine[Any, Any, None], last_resort: threading.Timer) -> bool:
    task = asyncio.create_task(work, name="command")
    interrupted = False

    def stop() -> None:
        nonlocal interrupted
        interrupted = True
        last_resort.start()
        task.cancel()

    SignalHandler(stop).install()
    try:
        await task
    except asyncio.CancelledError:
        if not interrupted:
            raise
    return interrupted
