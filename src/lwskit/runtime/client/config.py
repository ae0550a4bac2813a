"""From a kubeconfig, or from inside a pod, to a client that works."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from lwskit.runtime.client.client import Client
from lwskit.runtime.client.http import HttpTransport, TokenProvider
from lwskit.runtime.client.kubeconfig import Access, from_kubeconfig, from_service_account
from lwskit.runtime.client.tokens import FileToken, PluginToken
from lwskit.runtime.client.transport import HttpRequest
from lwskit.runtime.clock import Clock, RealClock
from lwskit.runtime.errors import ConfigurationError, ConnectionFailed


async def connect(
    kubeconfig: str | None = None,
    context: str | None = None,
    *,
    user_agent: str,
    field_manager: str | None = None,
    clock: Clock | None = None,
    check: bool = True,
) -> Client:
    """A client for the cluster that is configured, as `find_access` finds it.

    With `check` one request proves that the server is there and takes the credentials. Raises ConfigurationError with
    one sentence for everything that is wrong. `server_url(client)` names the server for messages. When cancelled,
    nothing stays open.
    """
    clock = clock or RealClock()
    access = find_access(kubeconfig, context, os.environ)
    transport = HttpTransport(
        access.url,
        tls=access.tls,
        token=await _tokens(access, clock),
        headers=access.headers,
        proxy=access.proxy or environment_proxy(access.url),
        server_name=access.server_name,
        user_agent=user_agent,
    )
    if check:
        try:
            await _check(transport, access)
        except BaseException:
            await transport.close()
            raise
    return Client(transport, field_manager=field_manager, clock=clock)


def server_url(client: Client) -> str:
    """The URL of the API server that a client talks to, or a word for one inside this process."""
    return getattr(client.transport, "url", "in this process")


def find_access(kubeconfig: str | None, context: str | None, environment: Mapping[str, str]) -> Access:
    """How to reach the cluster: the file given, else those in KUBECONFIG, else the pod's own, else ~/.kube/config.

    Raises ConfigurationError.
    """
    if kubeconfig:
        return from_kubeconfig([Path(kubeconfig).expanduser()], context)
    listed = [Path(part) for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    if listed:
        # Of several files, those that are missing do not count.
        return from_kubeconfig([path for path in listed if path.exists()] or listed[:1], context)
    inside = from_service_account(environment)
    if inside is not None and context is None:
        return inside
    path = Path(environment.get("HOME") or "~").expanduser() / ".kube" / "config"
    if not path.exists():
        raise ConfigurationError(
            f"no cluster is configured: {path} does not exist, KUBECONFIG is not set, and this is not a pod; "
            "name a kubeconfig file"
        )
    return from_kubeconfig([path], context)


async def _tokens(access: Access, clock: Clock) -> TokenProvider | None:
    if access.token_file is not None:
        provider = FileToken(access.token_file, clock)
        provider(False)
        return provider
    if access.token is not None:
        token = access.token
        return lambda renew: token
    if access.plugin is not None:
        plugin = PluginToken(access, clock)
        await plugin(False)
        return plugin
    return None


def environment_proxy(url: str) -> str | None:
    """The proxy that the environment names for this URL; never one for this machine itself."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host == "localhost" or host == "::1" or host.startswith("127.") or proxy_bypass(host):
        return None
    found = getproxies().get(parts.scheme)
    # As other programs read these variables.
    return f"http://{found}" if found and "://" not in found else found


async def _check(transport: HttpTransport, access: Access) -> None:
    try:
        # Everyone who is authenticated may read it, and nobody else need be.
        answer = await transport.send(HttpRequest("GET", "/api", headers={"accept": "application/json"}))
    except ConnectionFailed as e:
        raise ConfigurationError(f"the API server of {access.source} cannot be used: {e}") from e
    if answer.status == 401:
        raise ConfigurationError(f"the API server {access.url} refuses the credentials of {access.source}")
