"""Running the manager from this machine against any cluster, for development (`lwskit run`).

The cluster gets the CRDs and webhook configurations that point here. The configurations carry a label, so that what a
killed process left behind is found again: a stale one with failurePolicy Fail would block the cluster's pods.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import structlog

from lwskit.admission import configurations
from lwskit.api import names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.manager import leases
from lwskit.manager.crds import install as install_crds
from lwskit.manager.options import ElectionOptions
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import (
    AlreadyExists,
    ApiError,
    ConfigurationError,
    Conflict,
    Forbidden,
    LwskitError,
    NotFound,
)
from lwskit.runtime.kinds import (
    MUTATING_WEBHOOK_CONFIGURATION,
    NAMESPACE,
    VALIDATING_WEBHOOK_CONFIGURATION,
    Kind,
)
from lwskit.runtime.objects import Obj, labels_of, uid_of
from lwskit.runtime.runnable import Group

log = structlog.get_logger("lwskit.manager.development")

MARK = ("app.kubernetes.io/managed-by", "lwskit-run")
"""The label of everything that a later start or `--cleanup` may remove."""

CONFIGURATIONS: tuple[tuple[Kind, str], ...] = (
    (MUTATING_WEBHOOK_CONFIGURATION, names.MUTATING_CONFIGURATION),
    (VALIDATING_WEBHOOK_CONFIGURATION, names.VALIDATING_CONFIGURATION),
)
PROOF_SECONDS = 15.0
WITHDRAW_SECONDS = 10.0
"""How long the API server has to take the configurations away: left behind, they block the cluster's pods."""
GRACE_SECONDS = WITHDRAW_SECONDS + 5.0
"""What a manager with a Registration needs to end: the controllers before, the withdrawal, the servers after."""
PROOF_NAME = "lwskit-webhook-proof"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the API server reaches the webhooks: base URL without a path, and the PEM of the CA to trust."""

    url: str
    ca: bytes

    def client_config(self, path: str) -> dict[str, Any]:
        """The `clientConfig` of the webhook at `path`."""
        return {"url": self.url.rstrip("/") + path, "caBundle": base64.b64encode(self.ca).decode()}


def check_url(url: str) -> tuple[str, int]:
    """Host and port of a `--webhook-url`. Raises ConfigurationError unless it is https, a host and maybe a port."""
    try:
        parts = urlsplit(url)
        port = 443 if parts.port is None else parts.port
    except ValueError as e:
        raise ConfigurationError(f"--webhook-url {url}: {e}; write https://HOST:PORT") from e
    more = parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc
    if parts.scheme != "https" or not parts.hostname or not port or more:
        raise ConfigurationError(f"--webhook-url {url}: write https://HOST:PORT, as the API server can reach it")
    return parts.hostname, port


async def prepare(
    client: Client,
    election: ElectionOptions,
    namespace: str,
    clock: Clock,
    waiting: Callable[[str, float], None] = lambda holder, seconds: None,
) -> None:
    """Make a cluster ready for this manager: refuse while another serves it, remove what a kill left, bring the CRDs.

    `waiting` is told whose Lease is looked at, and for how many seconds. Raises ConfigurationError saying who is in the
    way.
    """
    await _refuse_foreign(client)
    if election.enabled:
        await leases.retire(client, namespace, election.name, clock, waiting)
    for name in await cleanup(client):
        log.info("removed what an earlier run left behind", what=name)
    await install_crds(client, clock)
    await _ensure_namespace(client, namespace)


async def _refuse_foreign(client: Client) -> None:
    for kind, name in CONFIGURATIONS:
        try:
            found = await client.get(kind, name)
        except NotFound:
            continue
        if labels_of(found).get(MARK[0]) != MARK[1]:
            raise ConfigurationError(
                f"the cluster has a {kind.kind} {name} that is not from `lwskit run`: another LeaderWorkerSet manager "
                "is installed there; remove it first, or run against another cluster"
            )


async def _ensure_namespace(client: Client, name: str) -> None:
    try:
        await client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    except AlreadyExists:
        pass


async def cleanup(client: Client) -> list[str]:
    """Remove the webhook configurations of an earlier `lwskit run`; returns what was removed. Others stay."""
    removed = []
    for kind, name in CONFIGURATIONS:
        try:
            found = await client.get(kind, name)
            if labels_of(found).get(MARK[0]) != MARK[1]:
                continue
            await client.delete(kind, name, uid=found["metadata"]["uid"])
            removed.append(f"{kind.kind} {name}")
        except NotFound:
            continue
    return removed


@asynccontextmanager
async def registered(client: Client, endpoint: Endpoint, clock: Clock) -> AsyncIterator[None]:
    """Webhooks registered and proven to be reached, for the length of the block; taken away at its end.

    Raises ConfigurationError, after withdrawing them, when the API server does not reach them. When cancelled they
    are taken away too.
    """
    mark: dict[str, str] = {MARK[0]: MARK[1]}
    bodies: Mapping[Kind, Obj] = {
        MUTATING_WEBHOOK_CONFIGURATION: configurations.mutating(endpoint.client_config, mark),
        VALIDATING_WEBHOOK_CONFIGURATION: configurations.validating(endpoint.client_config, mark),
    }
    made: list[tuple[Kind, str, str]] = []
    try:
        for kind, body in bodies.items():
            made.append((kind, body["metadata"]["name"], uid_of(await _register(client, kind, body))))
        await _prove(client, endpoint, clock)
        log.info("webhooks registered", url=endpoint.url)
        yield
    finally:
        await asyncio.shield(_withdraw(client, made))


class Registration:
    """A runnable that keeps the webhooks registered: nothing is reconciled before the API server is proven to ask them.

    A pod that a workload makes without them has no place in its group, for as long as it lives. So this starts with the
    caches, before the controllers, and ends after them. `endpoint` is asked once `serving` is set.
    """

    group = Group.CACHES
    name = "webhook registration"

    def __init__(self, client: Client, endpoint: Callable[[], Endpoint], serving: asyncio.Event, clock: Clock) -> None:
        self._client = client
        self._endpoint = endpoint
        self._serving = serving
        self._clock = clock
        self._registered = asyncio.Event()

    async def run(self) -> None:
        """Register, prove, and stay until cancelled; then withdraw. Raises as `registered`."""
        await self._serving.wait()
        async with registered(self._client, self._endpoint(), self._clock):
            self._registered.set()
            await asyncio.Event().wait()

    async def wait_synced(self) -> None:
        """Wait until the API server asks the webhooks. Cancelling it only ends the wait."""
        await self._registered.wait()


async def _register(client: Client, kind: Kind, body: Obj) -> Obj:
    try:
        return await client.create(kind, body)
    except AlreadyExists as e:
        raise ConfigurationError(
            f"{kind.kind} {body['metadata']['name']} was registered meanwhile: another `lwskit run` has just started "
            "on this cluster; end it, or run against another cluster"
        ) from e


async def _withdraw(client: Client, made: Sequence[tuple[Kind, str, str]]) -> None:
    """Take away what this run registered, and nothing of another run under the same name."""
    faults = await asyncio.gather(*(_take_away(client, *one) for one in made))
    if error := next((fault for fault in faults if fault), ""):
        log.warning("webhook configurations may be left behind; run `lwskit run --cleanup`", error=error)
    elif made:
        log.info("webhooks withdrawn")


async def _take_away(client: Client, kind: Kind, name: str, uid: str) -> str:
    """Delete one of them. Returns what went wrong."""
    try:
        async with asyncio.timeout(WITHDRAW_SECONDS):
            with contextlib.suppress(NotFound, Conflict):
                await client.delete(kind, name, uid=uid)
    except TimeoutError:
        return f"the API server did not answer within {WITHDRAW_SECONDS:g} s"
    except LwskitError as e:
        return str(e) or repr(e)
    return ""


async def _prove(client: Client, endpoint: Endpoint, clock: Clock) -> None:
    """Wait until the API server asks us, as to be seen by dry runs."""
    deadline = clock.monotonic() + PROOF_SECONDS
    fault = "the API server did not call it"
    while clock.monotonic() < deadline:
        try:
            if await _is_asked(client):
                return
        except ApiError as e:
            fault = e.message
        await clock.sleep(0.2)
    raise ConfigurationError(
        f"the API server does not reach the webhooks at {endpoint.url}: {fault}; they were withdrawn. "
        "Give an address of this machine that the API server can reach with --webhook-url https://HOST:PORT"
    )


async def _is_asked(client: Client) -> bool:
    """Whether both configurations count, of which the API server learns one by one: a set comes back with defaults,
    and one that can never be updated is refused."""
    answer = await client.create(LEADER_WORKER_SET, _probe({}), dry_run=True)
    if not (answer["spec"].get("networkConfig") or {}).get("subdomainPolicy"):
        return False
    stuck = {"rollingUpdateConfiguration": {"maxUnavailable": 0, "maxSurge": 0}}
    try:
        await client.create(LEADER_WORKER_SET, _probe({"rolloutStrategy": stuck}), dry_run=True)
    except Forbidden as e:
        if names.VALIDATE_LWS_WEBHOOK not in e.message:
            raise
        return True
    return False


def _probe(spec: Obj) -> Obj:
    container = {"name": "probe", "image": "probe"}
    group = {"workerTemplate": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {"name": PROOF_NAME, "namespace": "default"},
        "spec": {"leaderWorkerTemplate": group, **spec},
    }
