"""TLS contexts of clients, from files and from PEM text."""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path


def tls_context(
    *,
    ca_file: str | None = None,
    ca_data: str | None = None,
    client_cert: str | None = None,
    client_key: str | None = None,
    insecure: bool = False,
) -> ssl.SSLContext:
    """A TLS context for a client: CA from a file or PEM text, or the system's; a client certificate from PEM files.

    `insecure` accepts every certificate. Raises OSError and ssl.SSLError for files that cannot be read or used, and for
    a key that is encrypted.
    """
    context = ssl.create_default_context(cafile=ca_file, cadata=ca_data)
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if client_cert:
        context.load_cert_chain(client_cert, client_key, no_password)
    return context


def add_client_certificate(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Have a TLS context present a certificate given as PEM text. Raises OSError or ValueError when it cannot."""
    # Python's ssl takes files only; the directory is readable by its owner alone.
    with tempfile.TemporaryDirectory(prefix="lwskit-") as directory:
        path = Path(directory) / "client.pem"
        path.write_text(f"{certificate}\n{key}\n", encoding="ascii")
        context.load_cert_chain(path, password=no_password)


def no_password() -> str:
    """Stands where `ssl` would ask for the password of a key at the terminal. Always raises OSError."""
    raise OSError("the key is encrypted; give one without a password, which openssl pkey -in KEY -out NEW makes")
