"""Writes a kubeconfig for one server and one token (Kubernetes documentation: kubeconfig files)."""

from __future__ import annotations

import base64
import contextlib
import os
import socket
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from lwskit.runtime.errors import ConfigurationError

MARK = "# Made by an embedded cluster of lwskit, and removed when it ends."
"""The first line of every file written here: only a file that begins with it is ever replaced or removed."""


def content(*, server: str, token: str, ca_pem: bytes, name: str = "lwskit") -> str:
    """The file's text: one cluster, user and context of that name, current."""
    text = yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": name,
                    "cluster": {"server": server, "certificate-authority-data": base64.b64encode(ca_pem).decode()},
                }
            ],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}}],
            "current-context": name,
        },
        sort_keys=False,
    )
    return f"{MARK}\n{text}"


def write(path: Path, *, server: str, token: str, ca_pem: bytes, name: str = "lwskit") -> str:
    """Write the file so that only its owner can read it, and return its text.

    A file that another cluster left behind is replaced. Raises ConfigurationError when a file of somebody else, or of a
    cluster that still runs, is there, and when it cannot be written.
    """
    text = content(server=server, token=token, ca_pem=ca_pem, name=name)
    try:
        _make_room(path)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(text)
    except (OSError, UnicodeDecodeError) as e:
        reason = e.strerror if isinstance(e, OSError) else None
        raise ConfigurationError(
            f"the kubeconfig cannot be written to {path}: {reason or e}; choose another file"
        ) from e
    return text


def remove(path: Path, text: str) -> None:
    """Remove the file if it still is what `write` wrote there."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if path.read_text() == text:
            path.unlink()


def _make_room(path: Path) -> None:
    if not path.exists():
        return
    found = path.read_text(errors="replace")
    if not found.startswith(MARK):
        raise ConfigurationError(f"{path} exists and was not made by lwskit; it is left alone, choose another file")
    url = urlsplit(yaml.safe_load(found)["clusters"][0]["cluster"]["server"])
    try:
        socket.create_connection((url.hostname or "", url.port or 443), timeout=0.5).close()
    except OSError:
        path.unlink()
        return
    raise ConfigurationError(
        f"{path} belongs to a cluster that still runs at {url.geturl()}; end it, or choose another file"
    )
