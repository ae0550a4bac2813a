"""From kubernetes_asyncio to a client: its Configuration or ApiClient says where the server is and who asks.

Nothing of that package is imported here; whoever brings its objects has imported it.
"""

from __future__ import annotations

import asyncio
import inspect
import ssl
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from lwskit.runtime.client.checks import bad_url
from lwskit.runtime.client.client import Client
from lwskit.runtime.client.config import environment_proxy
from lwskit.runtime.client.contexts import no_password
from lwskit.runtime.client.http import HttpTransport
from lwskit.runtime.client.tokens import EARLY, PLUGIN_TIMEOUT, REREAD
from lwskit.runtime.clock import Clock, RealClock
from lwskit.runtime.errors import ConfigurationError

if TYPE_CHECKING:
    from kubernetes_asyncio.client import ApiClient, Configuration

Source: TypeAlias = "Configuration | ApiClient"

_KEY, _OLD_KEY = "BearerToken", "authorization"
"""Under what name a Configuration keeps the credentials, and kept them in early versions."""
_GENERATED_AGENT = "OpenAPI-Generator/"


class Loader(Protocol):
    """What `kubernetes_asyncio.config.load_kube_config` returns: it can read the credentials again."""

    async def load_and_set(self, client_configuration: Any) -> None:
        """Put what the kubeconfig says into a Configuration; an exec plugin runs if its credentials have expired.

        It may be cancelled at any time.
        """
        ...


def client(
    source: Source,
    *,
    loader: Loader | None = None,
    user_agent: str | None = None,
    field_manager: str | None = None,
    clock: Clock | None = None,
) -> Client:
    """A client for the server and user of a kubernetes_asyncio Configuration or ApiClient.

    It has connections of its own: closing it leaves the ApiClient alone, and the other way round. Arguments and errors
    are those of `transport`; `field_manager` is the default for writes. Nothing is requested yet.
    """
    clock = clock or RealClock()
    made = transport(source, loader=loader, user_agent=user_agent, clock=clock)
    return Client(made, field_manager=field_manager, clock=clock)


def transport(
    source: Source, *, loader: Loader | None = None, user_agent: str | None = None, clock: Clock | None = None
) -> HttpTransport:
    """A transport to the server that a kubernetes_asyncio Configuration or ApiClient names, with its credentials.

    Its refresh hook is honoured, so in-cluster tokens are read again when they rotate. `loader`, what
    `load_kube_config` has returned, renews those of an exec plugin, an auth provider or a token file: ahead of their
    expiry, and when the server refuses them, once for all requests that wait. `user_agent` stands for the ApiClient's
    own. Raises ConfigurationError for certificates that cannot be read.
    """
    configuration, headers = _parts(source)
    url = configuration.host
    if why := bad_url(url):
        raise ConfigurationError(f"the host {url!r} of the Configuration cannot be used: {why}")
    agent = user_agent or headers.pop("user-agent", "")
    headers.pop("user-agent", None)
    token = None
    if basic := _basic(configuration):
        headers["authorization"] = basic
    elif _has_key(configuration) or configuration.refresh_api_key_hook is not None or loader is not None:
        token = _Credentials(configuration, loader, clock or RealClock())
    return HttpTransport(
        url,
        tls=_tls(configuration) if url.startswith("https://") else None,
        token=token,
        headers=headers,
        proxy=configuration.proxy or environment_proxy(url),
        proxy_headers=configuration.proxy_headers,
        server_name=configuration.tls_server_name,
        user_agent=agent or "lwskit",
    )


def _parts(source: Any) -> tuple[Any, dict[str, str]]:
    """The Configuration, and the headers that its ApiClient adds."""
    configuration = getattr(source, "configuration", None)
    if configuration is None:
        if not hasattr(source, "host"):
            raise ConfigurationError(
                f"a client is made from a kubernetes_asyncio Configuration or ApiClient, not {type(source).__name__}"
            )
        return source, {}
    headers = {name.lower(): value for name, value in source.default_headers.items()}
    if headers.get("user-agent", "").startswith(_GENERATED_AGENT):
        del headers["user-agent"]
    if source.cookie:
        headers["cookie"] = source.cookie
    return configuration, headers


def _has_key(configuration: Any) -> bool:
    return bool(configuration.api_key.get(_KEY) or configuration.api_key.get(_OLD_KEY))


def _basic(configuration: Any) -> str | None:
    """The header of a user with a password, which kubeconfigs put where tokens are."""
    given = configuration.api_key.get(_KEY) or ""
    if given.startswith("Basic "):
        return given
    if configuration.username and configuration.password and not _has_key(configuration):
        return configuration.get_basic_auth_token()
    return None


def _tls(configuration: Any) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
        if configuration.cert_file:
            context.load_cert_chain(configuration.cert_file, configuration.key_file, no_password)
    except (OSError, ValueError) as e:
        raise ConfigurationError(f"the certificates of the Configuration for {configuration.host}: {e}") from e
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif configuration.assert_hostname is False:
        context.check_hostname = False
    if getattr(configuration, "disable_strict_ssl_verification", False):
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


class _Credentials:
    """The token provider of a transport, which calls it one request after another."""

    def __init__(self, configuration: Any, loader: Any, clock: Clock) -> None:
        self._configuration = configuration
        self._loader = loader
        self._clock = clock
        self._loaded: float | None = None

    async def __call__(self, renew: bool) -> str | None:
        """The token to send. Raises ConfigurationError when it cannot be renewed; cancelling it abandons a plugin."""
        try:
            async with asyncio.timeout(PLUGIN_TIMEOUT):
                await self._renew(renew)
                header = self._configuration.get_api_key_with_prefix(_KEY, _OLD_KEY)
                if inspect.isawaitable(header):
                    header = await header
        except TimeoutError as e:
            raise ConfigurationError(f"the credentials were not renewed within {PLUGIN_TIMEOUT:g} s") from e
        except Exception as e:
            # Hooks and loaders raise whatever they please; to the transport it is one thing.
            raise ConfigurationError(f"the credentials of {self._configuration.host} cannot be renewed: {e}") from e
        return (header or "").removeprefix("Bearer ").strip() or None

    async def _renew(self, refused: bool) -> None:
        if refused:
            _expire_cached_file(self._configuration.refresh_api_key_hook)
        if self._loader is None:
            return
        if self._loaded is None:
            self._loaded = self._clock.monotonic()
        if refused or self._expires_soon():
            if hasattr(self._loader, "exec_plugin_expiry"):
                # Otherwise the loader would keep what it has.
                del self._loader.exec_plugin_expiry
            await self._load()
        elif self._is_cheap() and self._clock.monotonic() - self._loaded >= REREAD:
            await self._load()

    async def _load(self) -> None:
        await self._loader.load_and_set(self._configuration)
        self._loaded = self._clock.monotonic()

    def _expires_soon(self) -> bool:
        expiry = getattr(self._loader, "exec_plugin_expiry", None)
        if expiry is None:
            return False
        now = self._clock.now()
        return (now if expiry.tzinfo else now.replace(tzinfo=None)) >= expiry - EARLY

    def _is_cheap(self) -> bool:
        """Whether reading again costs a file at most: a plugin runs only when it must."""
        user: Mapping[str, Any] | None = getattr(self._loader, "_user", None)
        return user is None or "exec" not in user


def _expire_cached_file(hook: Any) -> None:
    """Have the hook of an in-cluster Configuration read its file now, which it else does once a minute."""
    for cell in getattr(hook, "__closure__", None) or ():
        loader = cell.cell_contents
        if isinstance(getattr(loader, "token_expires_at", None), datetime):
            loader.token_expires_at -= timedelta(days=1)
