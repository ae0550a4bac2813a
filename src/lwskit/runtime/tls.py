"""TLS for servers from certificate files, taken in again when they change (specification: 70 §8.3)."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

import structlog

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


class CertificateWatcher:
    """Holds the context of a server and keeps its certificate that of the files.

    A pair that cannot be used is logged and counted, and the old one stays. Open connections are not affected.
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
            raise ConfigurationError(
                f"the certificate {files.cert} with the key {files.key} cannot be used: {error}; "
                "both files must exist and belong together, in PEM"
            ) from error

    def check(self) -> bool:
        """Look at the files once; whether a changed pair was taken in."""
        try:
            content = self._read()
            if content == self._content:
                return False
            # Tried apart first: loading a broken pair would leave the server's context with half of it.
            self._make()
            self.context.load_cert_chain(self._files.cert, self._files.key)
        except (OSError, ssl.SSLError) as error:
            self.errors += 1
            log.error("changed certificate files cannot be used", file=str(self._files.cert), error=str(error))
            return False
        self._content = content
        log.info("certificate reloaded", file=str(self._files.cert))
        return True

    async def run(self) -> None:
        """Look at the files every ten seconds until cancelled."""
        while True:
            await self._clock.sleep(POLL)
            self.check()

    def _read(self) -> tuple[bytes, bytes]:
        self.reads += 1
        return self._files.cert.read_bytes(), self._files.key.read_bytes()

    def _make(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = self._files.min_version
        if self._files.ciphers:
            context.set_ciphers(self._files.ciphers)
        context.set_alpn_protocols([*_PROTOCOLS])
        context.load_cert_chain(self._files.cert, self._files.key)
        if self._files.client_ca is not None:
            context.load_verify_locations(self._files.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
        return context
