"""Where bearer tokens come from: a fixed text, a file that rotates, a program of the user's kubeconfig."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from lwskit.runtime.client.kubeconfig import Access
from lwskit.runtime.clock import Clock, parse_time
from lwskit.runtime.errors import ConfigurationError

REREAD = 60.0
"""Seconds for which a token read from a file is used before the file is read again."""
EARLY = timedelta(seconds=30)
"""How long before its expiry a token is renewed."""
PLUGIN_TIMEOUT = 60.0


class FileToken:
    """The token in a file that somebody replaces before it expires, such as a pod's."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._token = ""
        self._read = 0.0

    def __call__(self, renew: bool) -> str:
        """The token. Raises ConfigurationError when the file has none and none was read before."""
        now = self._clock.monotonic()
        if renew or not self._token or now - self._read >= REREAD:
            try:
                found = self._path.read_text(encoding="ascii").strip()
            except (OSError, UnicodeDecodeError) as e:
                found, why = "", f"cannot be read: {e}"
            else:
                why = "is empty"
            if not found and not self._token:
                raise ConfigurationError(f"token file {self._path} {why}")
            self._token, self._read = found or self._token, now
        return self._token


class PluginToken:
    """Credentials from an exec plugin or an auth provider of a kubeconfig, kept until they expire.

    kubernetes-asyncio runs the plugin; it is imported when it is needed, since that takes a quarter of a second.
    """

    def __init__(self, access: Access, clock: Clock) -> None:
        self._access = access
        self._clock = clock
        self._token: str | None = None
        self._expires: datetime | None = None
        self.certificate: tuple[str, str] | None = None
        """Client certificate and key as PEM text, where the plugin gave these instead of a token."""

    async def __call__(self, renew: bool) -> str | None:
        """The token, None where the plugin gives a certificate. Raises ConfigurationError when the plugin fails.

        Cancelling it abandons the plugin's run.
        """
        known = self._token is not None or self.certificate is not None
        if renew or not known or (self._expires is not None and self._clock.now() >= self._expires - EARLY):
            try:
                async with asyncio.timeout(PLUGIN_TIMEOUT):
                    await (self._execute() if "exec" in (self._access.plugin or {}) else self._provider())
            except TimeoutError as e:
                raise self._error(f"it did not end within {PLUGIN_TIMEOUT:g} s") from e
        return self._token

    async def _execute(self) -> None:
        from kubernetes_asyncio.config.config_exception import ConfigException
        from kubernetes_asyncio.config.exec_provider import ExecProvider
        from kubernetes_asyncio.config.kube_config import ConfigNode

        entry = dict((self._access.plugin or {})["exec"] or {})
        command = str(entry.get("command") or "")
        if "/" in command:
            # Written relative to the kubeconfig.
            entry["command"] = str(self._access.base / command)
        try:
            status: dict[str, Any] = await ExecProvider(ConfigNode("exec", entry)).run()
        except FileNotFoundError as e:
            hint = entry.get("installHint")
            raise self._error(f"{command!r} is not installed" + (f"; {str(hint).strip()}" if hint else "")) from e
        except (ConfigException, OSError) as e:
            raise self._error(f"{command!r} failed: {e}") from e
        self._token = status.get("token")
        certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
        self.certificate = (certificate, key) if certificate and key else None
        if not self._token and not self.certificate:
            raise self._error(f"{command!r} printed neither a token nor a client certificate with its key")
        expires = status.get("expirationTimestamp")
        try:
            self._expires = parse_time(expires) if expires else None
        except ValueError as e:
            raise self._error(f"{command!r} printed an expirationTimestamp that is no time: {expires!r}") from e

    async def _provider(self) -> None:
        from kubernetes_asyncio.client import Configuration
        from kubernetes_asyncio.config.kube_config import KubeConfigLoader

        access = self._access
        configuration = Configuration()
        try:
            loader = KubeConfigLoader(dict(access.config), access.context, config_base_path=str(access.base))
            await loader.load_and_set(configuration)
        except Exception as e:
            # Whatever the library's providers raise, to the user it is one thing.
            raise self._error(f"its auth-provider failed: {e}") from e
        header = configuration.api_key.get("BearerToken") or ""
        self._token = header.removeprefix("Bearer ") or None
        if not self._token:
            name = (access.plugin or {}).get("auth-provider", {}).get("name")
            raise self._error(f"auth-provider {name!r} gave no token; use an exec plugin instead")
        self._expires = self._clock.now() + timedelta(minutes=5)

    def _error(self, text: str) -> ConfigurationError:
        return ConfigurationError(f"the credential plugin of {self._access.source}: {text}")
