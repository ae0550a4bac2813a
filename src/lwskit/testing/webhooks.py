"""Admission webhooks of a test: called as functions on the embedded cluster, served over HTTPS for a real one."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ipaddress
import os
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lwskit.embedded.webhook_call import CallError
from lwskit.runtime.certs import make_ca, make_server_cert
from lwskit.runtime.clock import random_uuid
from lwskit.runtime.errors import ApiError, ConfigurationError, NotFound
from lwskit.runtime.kinds import CONFIG_MAP, MUTATING_WEBHOOK_CONFIGURATION, VALIDATING_WEBHOOK_CONFIGURATION, Kind
from lwskit.runtime.objects import Obj
from lwskit.runtime.tls import TlsFiles
from lwskit.runtime.webhook import Handler, allowed, mutate_path, respond, validate_path
from lwskit.runtime.webhook_server import WebhookServer
from lwskit.testing.namespaces import TEST_LABEL

if TYPE_CHECKING:
    from lwskit.testing.cluster import TestCluster

HOST = "LWSKIT_WEBHOOK_HOST"
"""The environment variable with an address of this machine at which a real cluster's API server finds webhooks."""
LOCAL = "127.0.0.1"
NEWS = 15.0
"""Seconds in which a real API server must have learnt of a new webhook and called it."""

_PROBE = "lwskit-webhook-probe"
_PATH = "/lwskit-probe"
_REACHED = "the probe has reached the webhooks of the test"


class TestWebhook:
    """A webhook that a test has registered: `requests` are those it was asked, oldest first."""

    __test__ = False

    def __init__(self, embedded: bool) -> None:
        self.requests: list[Obj] = []
        self._embedded = embedded
        self._down = False

    @contextmanager
    def down(self) -> Iterator[None]:
        """Inside the block the webhook cannot be reached, so that its failure policy decides.

        Raises ConfigurationError on a real cluster.
        """
        if not self._embedded:
            raise ConfigurationError("webhook.down() is for the embedded cluster; mark the test with virtual_only")
        self._down = True
        try:
            yield
        finally:
            self._down = False

    def watched(self, handler: Handler) -> Handler:
        """The handler, with its requests on record."""

        def handle(request: Obj) -> Obj:
            self.requests.append(request)
            return handler(request)

        return handle

    def reviewed(self, handler: Handler) -> Handler:
        """What the embedded API server calls: from review to review."""

        def handle(review: Obj) -> Obj:
            if self._down:
                raise CallError("failed to call webhook: connection refused")
            return respond(handler, review)

        return handle


async def register(
    cluster: TestCluster,
    kind: Kind,
    mutate: Handler | None,
    validate: Handler | None,
    operations: Sequence[str],
    settings: Mapping[str, Any],
) -> TestWebhook:
    """What `TestCluster.webhook` does. When cancelled, what was registered goes with the cluster's `cleanup`."""
    if mutate is None and validate is None:
        raise ConfigurationError("cluster.webhook needs a handler: give `mutate`, `validate` or both")
    for name, given in (("mutate", mutate), ("validate", validate)):
        if given is not None and not callable(given):
            raise ConfigurationError(f"cluster.webhook's `{name}` is {given!r}, not a handler; see docs/webhooks.md")
    made = TestWebhook(cluster.embedded)
    handlers: dict[str, Handler] = {}
    if mutate is not None:
        handlers[mutate_path(kind)] = made.watched(mutate)
    if validate is not None:
        handlers[validate_path(kind)] = made.watched(validate)
    if cluster.embedded:
        base = f"inprocess://{cluster.namespace}"
        for path, handler in handlers.items():
            cluster.server.register_admission(base + path, made.reviewed(handler))
        client_config: dict[str, Any] = {}
    else:
        base, authority = await cluster.cleanup.enter_async_context(_served(cluster, handlers))
        client_config = {"caBundle": base64.b64encode(authority).decode()}
    for is_mutating, path in ((True, mutate_path(kind)), (False, validate_path(kind))):
        if path in handlers:
            config = _configuration(cluster, kind, path, base, client_config, operations, settings)
            await cluster.cleanup.enter_async_context(_registered(cluster, config, is_mutating, base))
    return made


def _configuration(
    cluster: TestCluster,
    kind: Kind,
    path: str,
    base: str,
    client_config: Mapping[str, Any],
    operations: Sequence[str],
    settings: Mapping[str, Any],
) -> Obj:
    """The object that names the webhook; on a real cluster it is for the namespaces of the test only."""
    verb = path.strip("/").partition("-")[0]
    group = f".{kind.group}" if kind.group else ""
    rule = {
        "operations": [*operations],
        "apiGroups": [kind.group],
        "apiVersions": [kind.version],
        "resources": [kind.plural],
    }
    webhook: Obj = {
        "name": f"{verb}.{kind.plural}{group or '.core.test'}",
        "clientConfig": {"url": base + path, **client_config},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **settings,
    }
    if kind.namespaced and not cluster.embedded:
        webhook["namespaceSelector"] = _only(cluster)
    return {"metadata": {"name": f"{cluster.namespace}-{verb}-{kind.plural}{group}"}, "webhooks": [webhook]}


def _only(cluster: TestCluster) -> Obj:
    return {"matchLabels": {TEST_LABEL: cluster.namespace}}


@asynccontextmanager
async def _registered(cluster: TestCluster, body: Obj, is_mutating: bool, base: str) -> AsyncIterator[None]:
    """The configuration on the cluster, known to its API server, for the length of the block."""
    kind = MUTATING_WEBHOOK_CONFIGURATION if is_mutating else VALIDATING_WEBHOOK_CONFIGURATION
    name = body["metadata"]["name"]
    # Not its name, which may be longer than the value of a label.
    mark = {_PROBE: random_uuid(cluster.rng)}
    if not cluster.embedded:
        first = body["webhooks"][0]
        rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
        probe = {**first, "name": "probe.lwskit.test", "rules": [rule], "objectSelector": {"matchLabels": mark}}
        probe |= {"clientConfig": {**first["clientConfig"], "url": base + _PATH}, "namespaceSelector": _only(cluster)}
        probe |= {"failurePolicy": "Fail"}
        body = {**body, "webhooks": [*body["webhooks"], probe]}
    await cluster.client.create(kind, {"apiVersion": kind.api_version, "kind": kind.kind, **body})
    try:
        if not cluster.embedded:
            await _prove(cluster, mark, base)
        yield
    finally:
        if not cluster.embedded:
            with contextlib.suppress(NotFound):
                await cluster.client.delete(kind, name)


async def _prove(cluster: TestCluster, mark: Mapping[str, str], base: str) -> None:
    """Wait until the API server asks the probe of a configuration: then it knows the rest of it, too.

    Raises ConfigurationError when it does not reach the webhook.
    """
    meta = {"name": _PROBE, "namespace": cluster.namespace, "labels": dict(mark)}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    deadline = cluster.clock.monotonic() + NEWS
    fault = "the API server did not call it"
    while cluster.clock.monotonic() < deadline:
        try:
            await cluster.client.create(CONFIG_MAP, body, dry_run=True)
        except ApiError as e:
            if _REACHED in e.message:
                return
            fault = e.message
        await cluster.clock.sleep(0.2)
    raise ConfigurationError(
        f"the API server does not reach the webhook at {base}: {fault}; "
        f"set {HOST} to an address of this machine that it can reach"
    )


@asynccontextmanager
async def _served(cluster: TestCluster, handlers: Mapping[str, Handler]) -> AsyncIterator[tuple[str, bytes]]:
    """The handlers behind HTTPS on this machine; the URL without a path, and the authority to trust."""
    host = os.environ.get(HOST) or LOCAL
    with tempfile.TemporaryDirectory(prefix="lwskit-webhooks-") as folder:
        files = TlsFiles.in_folder(Path(folder))
        now = cluster.clock.now()
        authority = make_ca(now, cluster.rng)
        names, addresses = ([], [host]) if _is_address(host) else ([host], [])
        pair = make_server_cert(authority, names, addresses, now, cluster.rng)
        files.cert.write_bytes(pair.cert_pem)
        files.key.write_bytes(pair.key_pem)
        server = WebhookServer(files, cluster.clock, host=LOCAL if host == LOCAL else "", port=0)
        for path, handler in handlers.items():
            server.register(path, handler)
        server.register(_PATH, _refuse_probe)
        task = asyncio.create_task(server.run(), name="webhooks of the test")
        serving = asyncio.create_task(server.serving.wait(), name="webhooks of the test: start")
        try:
            await asyncio.wait({task, serving}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                task.result()
            yield f"https://{host}:{server.port}", authority.cert_pem
        finally:
            serving.cancel()
            task.cancel()
            await asyncio.wait({task})


def _refuse_probe(request: Obj) -> Obj:
    """A refusal tells, also of a dry run, that the webhook was asked."""
    return {**allowed(), "allowed": False, "status": {"code": 403, "message": _REACHED}}


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
