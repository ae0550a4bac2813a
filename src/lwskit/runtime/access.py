"""Who may read the metrics: the API server is asked whose token it is and what its owner may do.

Specification: 70 §10, "authn+authz".
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

import structlog
import tenacity
from aiohttp import web

from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import ApiError, ConnectionFailed
from lwskit.runtime.kinds import SUBJECT_ACCESS_REVIEW, TOKEN_REVIEW, Kind
from lwskit.runtime.objects import Obj

log = structlog.get_logger(__name__)

TOKEN_SECONDS = 60.0
"""How long an answer about a token is good."""
ALLOW_SECONDS = 300.0
"""How long a permission is good."""
DENY_SECONDS = 30.0
"""How long a refusal is good."""
TIMEOUT = 10.0
"""Seconds for asking about a token, repetitions included."""
TRIES = 5
FIRST_WAIT = 0.5
GROWTH = 1.5
REMEMBERED = 1000
"""Answers of each kind that are kept at most."""

Filter = Callable[[web.BaseRequest], Awaitable["web.StreamResponse | None"]]
"""The answer to a request that is refused, None to one that may go on."""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class User(NamedTuple):
    """Whose token it is, as a TokenReview tells."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @classmethod
    def of(cls, info: Obj) -> User:
        """From the `user` of a review's status."""
        extra = tuple(sorted((key, tuple(values)) for key, values in (info.get("extra") or {}).items()))
        return cls(info.get("username", ""), info.get("uid", ""), tuple(info.get("groups") or ()), extra)

    def subject(self) -> Obj:
        """As a SubjectAccessReview asks about it."""
        found: Obj = {"user": self.name, "groups": list(self.groups)}
        if self.uid:
            found["uid"] = self.uid
        if self.extra:
            found["extra"] = {key: list(values) for key, values in self.extra}
        return found


class _Answers(Generic[K, V]):
    """Answers that are good for a while; the oldest go first when there are too many."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[K, tuple[float, V]] = {}

    def get(self, key: K) -> V | None:
        found = self._known.get(key)
        return found[1] if found is not None and self._clock.monotonic() < found[0] else None

    def put(self, key: K, value: V, seconds: float) -> V:
        self._known.pop(key, None)
        while len(self._known) >= REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[key] = (self._clock.monotonic() + seconds, value)
        return value


class ReviewFilter:
    """Lets a request pass whose bearer token's owner may do its method on its path; a `Filter`.

    There is no anonymous access. Answers of the API server are remembered for a minute (tokens), five minutes
    (permissions) and half a minute (refusals). `client` needs `create` on TokenReviews and SubjectAccessReviews.
    """

    def __init__(self, client: Client, clock: Clock, rng: random.Random) -> None:
        self._client = client
        self._clock = clock
        self._rng = rng
        self._users: _Answers[str, User | str] = _Answers(clock)
        self._allowed: _Answers[tuple[User, str, str], bool] = _Answers(clock)

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse | None:
        """The refusal, or None. When cancelled, nothing is remembered."""
        refusal = await self.check(request.method, request.path, request.headers.get("authorization", ""))
        return None if refusal is None else web.Response(status=refusal[0], text=refusal[1] + "\n")

    async def check(self, method: str, path: str, authorization: str) -> tuple[int, str] | None:
        """HTTP status and text of the refusal for a request with this header, None when it may go on.

        When cancelled, nothing is remembered.
        """
        scheme, _, token = authorization.strip().partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return 401, "Unauthorized"
        try:
            async with asyncio.timeout(TIMEOUT):
                user = await self._user(token)
        except (ApiError, ConnectionFailed, TimeoutError) as error:
            log.error("a token could not be reviewed", error=str(error) or "no answer in time")
            return 500, "Authentication failed"
        if user is None:
            return 401, "Unauthorized"
        try:
            allowed = await self._may(user, method.lower(), path)
        except (ApiError, ConnectionFailed) as error:
            log.error("access could not be reviewed", user=user.name, error=str(error))
            return 500, f"Authorization for user {user.name} failed"
        return None if allowed else (403, f"Authorization denied for user {user.name}")

    async def _user(self, token: str) -> User | None:
        # The token itself is not kept in memory.
        key = hashlib.sha256(token.encode()).hexdigest()
        known = self._users.get(key)
        if known is None:
            review = await self._ask(TOKEN_REVIEW, {"token": token})
            status = review.get("status") or {}
            found = User.of(status.get("user") or {}) if status.get("authenticated") else ""
            known = self._users.put(key, found, TOKEN_SECONDS)
        return known if isinstance(known, User) else None

    async def _may(self, user: User, verb: str, path: str) -> bool:
        key = (user, verb, path)
        known = self._allowed.get(key)
        if known is None:
            spec = {**user.subject(), "nonResourceAttributes": {"path": path, "verb": verb}}
            review = await self._ask(SUBJECT_ACCESS_REVIEW, spec)
            allowed = bool((review.get("status") or {}).get("allowed"))
            known = self._allowed.put(key, allowed, ALLOW_SECONDS if allowed else DENY_SECONDS)
        return known

    async def _ask(self, kind: Kind, spec: Obj) -> Obj:
        retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(_may_pass),
            stop=tenacity.stop_after_attempt(TRIES),
            wait=lambda state: FIRST_WAIT * GROWTH ** (state.attempt_number - 1) * self._rng.uniform(1.0, 1.2),
            sleep=self._clock.sleep,
            reraise=True,
        )
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {}, "spec": spec}
        return await retrying(self._client.create, kind, body)


def _may_pass(error: BaseException) -> bool:
    """Whether the server may answer if it is asked again."""
    if isinstance(error, ApiError):
        return error.code >= 500 or error.code == 429
    return isinstance(error, ConnectionFailed)
