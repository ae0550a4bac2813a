"""Writes a kubeconfig for one server and one token (Kubernetes documentation: kubeconfig files)."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import yaml

from lwskit.runtime.errors import ConfigurationError


def content(*, server: str, token: str, ca_pem: bytes, name: str = "lwskit") -> str:
    """The file's text: one cluster, user and context of that name, current."""
    return yaml.safe_dump(
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


def write(path: Path, *, server: str, token: str, ca_pem: bytes, name: str = "lwskit") -> None:
    """Write the file so that only its owner can read it. Raises ConfigurationError when it cannot be written."""
    try:
        path.unlink(missing_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(content(server=server, token=token, ca_pem=ca_pem, name=name))
    except OSError as e:
        raise ConfigurationError(
            f"the kubeconfig cannot be written to {path}: {e.strerror or e}; choose another file"
        ) from e
