"""Assertions that wait: `eventually` and `consistently`, on real and on virtual time alike (specification: 70 §14)."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar

from lwskit.runtime.errors import LwskitError

T = TypeVar("T")

TIMEOUT = 10.0
INTERVAL = 0.25
DURATION = 3.0

NOT_YET = (AssertionError, LookupError, LwskitError)
"""What a check may raise to say "not so": a failed assertion, a missing key, an answer of the API server."""

_SLACK = 1e-9


async def eventually(fn: Callable[[], T | Awaitable[T]], timeout: float = TIMEOUT, interval: float = INTERVAL) -> T:
    """Call `fn` every `interval` seconds until it holds, and return its value; `timeout` is in seconds too.

    `fn` may be a coroutine function. It holds when it returns anything but False and raises none of NOT_YET; any other
    exception ends the wait at once. After the timeout its last error is raised, with a note on how long it was tried;
    AssertionError when it only returned False. Cancelling ends the wait. Specification: 70 §14.
    """
    __tracebackhide__ = True
    loop = asyncio.get_running_loop()
    began, tries = loop.time(), 0
    deadline = began + timeout
    while True:
        tries += 1
        error, value = await _try(fn, deadline - loop.time())
        if error is None:
            return value  # type: ignore[return-value]
        left = deadline - loop.time()
        if left <= _SLACK:
            error.add_note(f"eventually: still so after {loop.time() - began:g} s and {tries} tries")
            raise error
        await asyncio.sleep(min(interval, left))


async def consistently(fn: Callable[[], T | Awaitable[T]], duration: float = DURATION, interval: float = INTERVAL) -> T:
    """Call `fn` every `interval` seconds for `duration` seconds; it must hold every time. Returns its last value.

    `fn` may be a coroutine function; it holds as in `eventually`. The first error is raised, with a note on when it
    came. Cancelling ends the wait. Specification: 70 §14.
    """
    __tracebackhide__ = True
    loop = asyncio.get_running_loop()
    began = loop.time()
    deadline = began + duration
    while True:
        error, value = await _try(fn, None)
        if error is not None:
            error.add_note(f"consistently: held only for {loop.time() - began:g} of {duration:g} s")
            raise error
        left = deadline - loop.time()
        if left <= _SLACK:
            return value  # type: ignore[return-value]
        await asyncio.sleep(min(interval, left))


async def _try(fn: Callable[[], T | Awaitable[T]], limit: float | None) -> tuple[Exception | None, T | None]:
    """One call: its error or its value. `limit` is in seconds, at least a little even when none are left."""
    __tracebackhide__ = True
    scope = asyncio.timeout(None if limit is None else max(limit, INTERVAL))
    try:
        async with scope:
            value = fn()
            if inspect.isawaitable(value):
                value = await value
    except NOT_YET as error:
        return error, None
    except TimeoutError:
        if not scope.expired():
            raise
        return AssertionError("the check did not come back in time"), None
    if value is False:
        return AssertionError("the check returned False"), None
    return None, value
