"""Leader election on a Lease (specification: 70 §7).

Clocks of other machines are never compared: what counts is whether the record changed since this process looked.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Awaitable
from pathlib import Path
from typing import Protocol, TypeVar

import structlog

from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock, random_uuid, rfc3339_micro
from lwskit.runtime.errors import (
    AlreadyExists,
    ApiError,
    ConfigurationError,
    Conflict,
    ConnectionFailed,
    LwskitError,
    NotFound,
)
from lwskit.runtime.kinds import LEASE
from lwskit.runtime.objects import Obj, ObjectRef, ref_of
from lwskit.runtime.plan import Event

log = structlog.get_logger(__name__)

T = TypeVar("T")
NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_FAILURES = (ApiError, ConnectionFailed, TimeoutError)


class LeaderElectionLost(LwskitError):
    """This process does not lead any more and must end at once."""

    def __init__(self, text: str = "") -> None:
        super().__init__(f"leader election lost: {text}" if text else "leader election lost")


class RecorderLike(Protocol):
    """Records events without waiting."""

    def event(self, event: Event, related: ObjectRef | None = None) -> None:
        """Record an event."""
        ...


def make_identity(hostname: str, rng: random.Random) -> str:
    """The name of this process among the candidates: `<hostname>_<uuid>`."""
    return f"{hostname}_{random_uuid(rng)}"


def election_namespace(configured: str = "", file: Path = NAMESPACE_FILE) -> str:
    """Where the Lease lies: the namespace that was configured, or else the one that this pod runs in.

    `file` is where a pod finds it. Raises ConfigurationError outside of a cluster.
    """
    if configured:
        return configured
    try:
        found = file.read_text(encoding="utf-8").strip()
    except OSError:
        found = ""
    if not found:
        raise ConfigurationError(
            "unable to find leader election namespace: not running in-cluster; say in which one the Lease lies, with "
            "`namespace=`"
        )
    return found


class Elector:
    """A candidate for leadership: `acquire` until it leads, then `hold` until it does not.

    `lease`, `renew` and `retry` are seconds: how long a silent leader is waited for, in whole ones as the Lease has no
    others, how long a leader tries to renew, and how often either is tried. With `release_on_cancel` whoever stops it
    calls `release` at the end. An event loop that was blocked for longer than the renew deadline counts as lost
    leadership.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        rng: random.Random,
        namespace: str,
        name: str,
        identity: str,
        lease: float = 15.0,
        renew: float = 10.0,
        retry: float = 2.0,
        *,
        release_on_cancel: bool = False,
        recorder: RecorderLike | None = None,
    ) -> None:
        _validate(namespace, name, identity, lease, renew, retry)
        self.name = name
        self.identity = identity
        self.is_leader = False
        self.release_on_cancel = release_on_cancel
        self._client = client
        self._clock = clock
        self._rng = rng
        self._namespace = namespace
        self._duration = lease
        self._renew = renew
        self._retry = retry
        self._request_timeout = max(renew / 2, 1.0)
        self._recorder = recorder
        self._lease: Obj | None = None
        self._trouble = ""
        self._observed: Obj = {}
        self._observed_at = 0.0
        self._valid_until = 0.0

    @property
    def may_write(self) -> bool:
        """Whether this process leads and nobody else can have taken the Lease yet.

        Counted from before the last renewal was sent, so it is False early enough even if the event loop was blocked
        and `is_leader` is still set.
        """
        return self.is_leader and self._clock.monotonic() < self._valid_until

    async def acquire(self) -> None:
        """Wait until this process leads. When cancelled in mid-request the Lease may have become ours."""
        while not await self._try(self._renew):
            await self._clock.sleep(self._retry * (1 + 1.2 * self._rng.random()))
        self.is_leader = True
        self._trouble = ""
        log.info("became leader", lease=self.name, identity=self.identity)
        self._tell("became leader")

    async def hold(self) -> None:
        """Renew until cancelled. Raises LeaderElectionLost; either way this process does not lead any more."""
        try:
            while True:
                due = self._clock.monotonic() + self._retry
                await self._clock.sleep(self._retry)
                lag = self._clock.monotonic() - due
                if lag > self._renew:
                    raise LeaderElectionLost(f"the event loop was blocked for {lag:.1f} s")
                await self._renew_once(self._clock.monotonic() + self._renew)
        finally:
            self.is_leader = False
            self._tell("stopped leading")

    async def release(self) -> None:
        """Give the Lease up if it is still ours, so that another candidate need not wait.

        Tries for at most the renew deadline and does not report failure: then the Lease simply expires.
        """
        try:
            async with asyncio.timeout(self._renew):
                while not await self._release_once():
                    await self._clock.sleep(self._retry)
        except TimeoutError:
            log.warning("the lease could not be released and will expire", lease=self.name)

    async def _renew_once(self, deadline: float) -> None:
        while True:
            left = deadline - self._clock.monotonic()
            renewed = left > 0 and await self._try(left)
            left = deadline - self._clock.monotonic()
            if renewed and left < 0:
                raise LeaderElectionLost(f"the event loop was blocked for {self._renew - left:.1f} s while renewing")
            if renewed:
                return
            if left <= 0:
                log.error("could not renew the lease", lease=self.name, seconds=self._renew, error=self._trouble)
                cause = f": {self._trouble}" if self._trouble else ""
                raise LeaderElectionLost(f"the Lease {self.name} could not be renewed for {self._renew:g} s{cause}")
            await self._clock.sleep(min(self._retry, left))

    async def _try(self, limit: float) -> bool:
        """Acquire or renew once within `limit` seconds; whether the Lease is ours now."""
        try:
            async with asyncio.timeout(limit):
                return await self._acquire_or_renew()
        except TimeoutError:
            return False

    async def _acquire_or_renew(self) -> bool:
        now = self._clock.monotonic()
        if self._lease is not None and self._observed.get("holderIdentity") == self.identity and self._is_live(now):
            try:
                self._observe(await self._limited(self._client.update(LEASE, self._claimed(self._lease))))
                self._valid_until = now + self._duration
                return True
            except _FAILURES as error:
                log.debug("fast renewal failed", error=str(error))
        try:
            lease = await self._limited(self._client.get(LEASE, self.name, self._namespace))
        except NotFound:
            return await self._write(self._client.create(LEASE, self._claimed(None)))
        except _FAILURES as error:
            self._tell_trouble("the lease could not be read", error)
            return False
        if lease.get("spec", {}) != self._observed:
            self._observe(lease)
        self._lease = lease
        holder = self._observed.get("holderIdentity")
        if holder and holder != self.identity and self._is_live(now):
            self._trouble = f"it is held by {holder}"
            return False
        return await self._write(self._client.update(LEASE, self._claimed(lease)))

    async def _write(self, request: Awaitable[Obj]) -> bool:
        sent = self._clock.monotonic()
        try:
            self._observe(await self._limited(request))
            self._valid_until = sent + self._duration
        except _FAILURES as error:
            self._tell_trouble("the lease could not be written", error)
            return False
        return True

    def _tell_trouble(self, what: str, error: Exception) -> None:
        """Warn once of each new reason; a Conflict only says that another candidate was faster."""
        text = str(error) or type(error).__name__
        if isinstance(error, AlreadyExists | Conflict) or text == self._trouble:
            log.debug(what, error=text)
        else:
            log.warning(what, lease=f"{self._namespace}/{self.name}", error=text)
        self._trouble = text

    async def _limited(self, request: Awaitable[T]) -> T:
        async with asyncio.timeout(self._request_timeout):
            return await request

    async def _release_once(self) -> bool:
        try:
            lease = await self._limited(self._client.get(LEASE, self.name, self._namespace))
            if lease.get("spec", {}).get("holderIdentity") != self.identity:
                return True
            moment = rfc3339_micro(self._clock.now())
            freed = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": moment, "acquireTime": moment}
            await self._limited(self._client.update(LEASE, {**lease, "spec": {**lease["spec"], **freed}}))
        except NotFound:
            return True
        except _FAILURES as error:
            log.debug("the lease could not be released", error=str(error))
            return False
        return True

    def _observe(self, lease: Obj) -> None:
        self._lease = lease
        self._observed = lease.get("spec") or {}
        self._observed_at = self._clock.monotonic()

    def _is_live(self, now: float) -> bool:
        return self._observed_at + (self._observed.get("leaseDurationSeconds") or 0) > now

    def _claimed(self, lease: Obj | None) -> Obj:
        """The Lease with this process as its holder."""
        moment = rfc3339_micro(self._clock.now())
        mine = {"holderIdentity": self.identity, "leaseDurationSeconds": int(self._duration), "renewTime": moment}
        if lease is None:
            metadata = {"namespace": self._namespace, "name": self.name}
            spec = {**mine, "acquireTime": moment, "leaseTransitions": 0}
            return {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": metadata, "spec": spec}
        spec = {**(lease.get("spec") or {}), **mine}
        if (lease.get("spec") or {}).get("holderIdentity") != self.identity:
            spec["acquireTime"] = moment
            spec["leaseTransitions"] = (spec.get("leaseTransitions") or 0) + 1
        return {**lease, "spec": spec}

    def _tell(self, what: str) -> None:
        if self._recorder is not None and self._lease is not None:
            regarding = ref_of(self._lease, LEASE)
            self._recorder.event(Event(regarding, "LeaderElection", "LeaderElection", f"{self.identity} {what}"))


def _validate(namespace: str, name: str, identity: str, lease: float, renew: float, retry: float) -> None:
    if not (namespace and name and identity):
        raise ConfigurationError("leader election needs a namespace, a Lease name and an identity; none may be empty")
    for what, seconds in (("lease duration", lease), ("renew deadline", renew), ("retry period", retry)):
        if not (math.isfinite(seconds) and seconds > 0):
            raise ConfigurationError(
                f"leader election times must be positive numbers of seconds; the {what} is {seconds:g}"
            )
    if lease != int(lease):
        raise ConfigurationError(
            f"the lease duration ({lease:g} s) must be whole seconds, at least 1: "
            "other replicas read it from the Lease, which has no fractions"
        )
    if lease <= renew:
        raise ConfigurationError(
            f"the lease duration ({lease:g} s) must be longer than the renew deadline ({renew:g} s)"
        )
    if renew <= 1.2 * retry:
        raise ConfigurationError(
            f"the renew deadline ({renew:g} s) must exceed 1.2 times the retry period ({retry:g} s)"
        )
