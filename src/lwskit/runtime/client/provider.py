"""Asking for credentials while a program runs: one at a time, shared by all who wait, never an exception of its own."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeAlias

from lwskit.runtime.errors import ConnectionFailed, LwskitError

TokenProvider: TypeAlias = Callable[[bool], str | Awaitable[str | None] | None]
"""Gives the bearer token to send; called with True when the server has just refused the one given before.

If it has an attribute `certificate`, that is looked at after each call: the PEM texts of a client certificate and its
key to present, or None.
"""

_TOKEN = re.compile(r"[\x20-\x7e]*")


class Credentials(NamedTuple):
    """What a request goes out with."""

    token: str | None = None
    certificate: tuple[str, str] | None = None


class Asking:
    """Asks a provider by one caller at a time; those who wait for a renewal share it."""

    def __init__(self, provider: TokenProvider) -> None:
        self._provider = provider
        self._lock = asyncio.Lock()
        self._latest = Credentials()

    async def current(self) -> Credentials:
        """What to send now. Raises ConnectionFailed when there is nothing; when cancelled, nothing has changed."""
        async with self._lock:
            return await self._ask(False)

    async def renewed(self, refused: Credentials) -> Credentials:
        """What to send instead of what was refused. Raises ConnectionFailed; when cancelled, nothing has changed."""
        async with self._lock:
            if self._latest != refused:
                return self._latest
            return await self._ask(True)

    async def _ask(self, renew: bool) -> Credentials:
        try:
            given = self._provider(renew)
            token = await given if inspect.isawaitable(given) else given
        except (OSError, LwskitError) as e:
            raise _missing(str(e)) from e
        except Exception as e:
            # A provider may be anybody's.
            raise _missing(f"{type(e).__name__}: {e}") from e
        if token is not None and not is_token(token):
            raise _missing("the token is not one line of plain characters")
        self._latest = Credentials(token, getattr(self._provider, "certificate", None))
        return self._latest


def is_token(value: object) -> bool:
    """Whether this can be sent as a token: one line of ASCII characters that can be seen."""
    return isinstance(value, str) and bool(_TOKEN.fullmatch(value))


def _missing(why: str) -> ConnectionFailed:
    return ConnectionFailed(f"there are no credentials for the API server: {why}", retryable=False)
