"""Where bearer tokens come from: a fixed text, a file that rotates, a program of the user's kubeconfig."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from lwskit.runtime.client.exec_plugin import run_plugin
from lwskit.runtime.client.kubeconfig import Access
from lwskit.runtime.client.provider import is_token
from lwskit.runtime.clock import Clock
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
                if not is_token(found):
                    found, why = "", "holds more than one line of plain characters"
            if not found and not self._token:
                raise ConfigurationError(f"token file {self._path} {why}")
            self._token, self._read = found or self._token, now
        return self._token


class PluginToken:
    """Credentials from an exec plugin or an auth provider of a kubeconfig, kept until they expire.

    kubernetes-asyncio runs auth providers; it is imported when one is needed, since that takes a quarter of a second.
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

        Cancelling it kills the plugin.
        """
        known = self._token is not None or self.certificate is not None
        if renew or not known or (self._expires is not None and self._clock.now() >= self._expires - EARLY):
            try:
                async with asyncio.timeout(PLUGIN_TIMEOUT):
                    plugin = self._access.plugin or {}
                    if plugin.get("exec"):
                        await self._execute(plugin["exec"])
                    else:
                        await self._provider(plugin.get("auth-provider"))
            except TimeoutError as e:
                raise self._error(f"it did not end within {PLUGIN_TIMEOUT:g} s") from e
        return self._token

    async def _execute(self, entry: Any) -> None:
        try:
            found = await run_plugin(entry, self._access.base)
        except ConfigurationError as e:
            raise self._error(str(e)) from e
        self._token, self.certificate, self._expires = found.token, found.certificate, found.expires

    async def _provider(self, entry: Any) -> None:
        if not isinstance(entry, Mapping):
            raise self._error(f"auth-provider must have a name and a config, and is {entry!r}")
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
            raise self._error(f"auth-provider {entry.get('name')!r} gave no token; use an exec plugin instead")
        self._expires = self._clock.now() + timedelta(minutes=5)

    def _error(self, text: str) -> ConfigurationError:
        return ConfigurationError(f"the credential plugin of {self._access.source}: {text}")
