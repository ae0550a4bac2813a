"""TLS for servers from certificate files, taken in again when they change (specification: 70 §8.3)."""

from __future__ import annotations

import random
import ssl
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import structlog

from lwskit.runtime.certs import SERVER_DAYS, make_self_signed
from lwskit.runtime.client.contexts import no_password
from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import ConfigurationError

log = structlog.get_logger(__name__)

POLL = 10.0
"""Seconds between two looks at the files."""
_PROTOCOLS = ("http/1.1",)


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Where a server's certificate and key are, and how it speaks TLS.

    With `client_ca` clients must show a certificate that it signed. `ciphers` is an OpenSSL list for TLS 1.2.
    """

    cert: Path
    key: Path
    client_ca: Path | None = None
    min_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    ciphers: str = ""

    @classmethod
    def in_folder(cls, folder: Path) -> TlsFiles:
        """`tls.crt` and `tls.key` in a folder, as a mounted Secret has them."""
        return cls(folder / "tls.crt", folder / "tls.key")


class ServerCertificates(Protocol):
    """Where a server's certificate comes from, and what keeps it current."""

    reads: int
    errors: int
    context: ssl.SSLContext

    async def run(self) -> None:
        """Keep the context's certificate current until cancelled."""
        ...


class CertificateWatcher:
    """Holds the context of a server and keeps its certificate that of the files.

    A pair or a `client_ca` that cannot be used is logged and counted, and the old ones stay. Open connections are not
    affected.
    """

    def __init__(self, files: TlsFiles, clock: Clock) -> None:
        """Load the pair. Raises ConfigurationError that names the file when it cannot be used."""
        self.reads = 0
        self.errors = 0
        self._files = files
        self._clock = clock
        try:
            self._content = self._read()
            self.context = self._make()
        except (OSError, ssl.SSLError) as error:
            clients = f" and the clients' CA {files.client_ca}" if files.client_ca else ""
            raise ConfigurationError(
                f"the certificate {files.cert} with the key {files.key}{clients} cannot be used: {error}; "
                "the files must exist and belong together, in PEM"
            ) from error
        self._latest = self.context
        if files.client_ca is not None:
            # Authorities can only be added to a context, so each handshake is given the latest one.
            self.context.sni_callback = self._use_latest

    def check(self) -> bool:
        """Look at the files once; whether a changed pair was taken in."""
        try:
            content = self._read()
            if content == self._content:
                return False
            # Tried apart first: loading a broken pair would leave the server's context with half of it.
            latest = self._make()
            self.context.load_cert_chain(self._files.cert, self._files.key, no_password)
        except (OSError, ssl.SSLError) as error:
            self.errors += 1
            log.error("changed certificate files cannot be used", file=str(self._files.cert), error=str(error))
            return False
        self._content = content
        self._latest = latest
        log.info("certificate reloaded", file=str(self._files.cert))
        return True

    async def run(self) -> None:
        """Look at the files every ten seconds until cancelled."""
        while True:
            await self._clock.sleep(POLL)
            self.check()

    def _use_latest(self, connection: Any, server_name: str | None, context: ssl.SSLContext) -> None:
        connection.context = self._latest

    def _read(self) -> tuple[bytes, ...]:
        self.reads += 1
        files = (self._files.cert, self._files.key, self._files.client_ca)
        return tuple(file.read_bytes() for file in files if file is not None)

    def _make(self) -> ssl.SSLContext:
        context = server_context(self._files.min_version, self._files.ciphers)
        context.load_cert_chain(self._files.cert, self._files.key, no_password)
        if self._files.client_ca is not None:
            context.load_verify_locations(self._files.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
        return context


class SelfSigned:
    """A certificate of this process's own making, for a server whose clients do not verify it.

    It names `localhost` and 127.0.0.1 unless others are given, and is renewed when two thirds of its time have passed.
    """

    def __init__(
        self,
        clock: Clock,
        rng: random.Random,
        *,
        dns_names: Sequence[str] = ("localhost",),
        ips: Sequence[str] = ("127.0.0.1",),
        min_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2,
        ciphers: str = "",
        days: int = SERVER_DAYS,
    ) -> None:
        self.reads = 0
        self.errors = 0
        self.context = server_context(min_version, ciphers)
        self._clock = clock
        self._rng = rng
        self._names = (tuple(dns_names), tuple(ips))
        self._days = days
        self.renew()

    def renew(self) -> None:
        """Use another certificate for connections from now on."""
        made = make_self_signed(*self._names, self._clock.now(), self._rng, days=self._days)
        # The TLS library takes keys from files only.
        with tempfile.TemporaryDirectory(prefix="lwskit-") as folder:
            file = Path(folder) / "pair.pem"
            file.touch(mode=0o600)
            file.write_bytes(made.cert_pem + made.key_pem)
            self.context.load_cert_chain(file)

    async def run(self) -> None:
        """Renew in time until cancelled."""
        while True:
            await self._clock.sleep(self._days * 86400 * 2 / 3)
            self.renew()


def server_context(min_version: ssl.TLSVersion, ciphers: str) -> ssl.SSLContext:
    """A server's context without a certificate; it speaks HTTP/1.1 only."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = min_version
    if ciphers:
        context.set_ciphers(ciphers)
    context.set_alpn_protocols([*_PROTOCOLS])
    return context
