"""A kubeconfig is written where nothing is lost, and removed only while it is the one that was written."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from lwskit.embedded import kubeconfig
from lwskit.runtime.errors import ConfigurationError


def write(path: Path, port: int = 1, token: str = "t") -> str:
    return kubeconfig.write(path, server=f"https://127.0.0.1:{port}", token=token, ca_pem=b"ca")


def test_a_file_of_somebody_else_is_left_alone(tmp_path: Path):
    path = tmp_path / "config"
    path.write_text("precious")
    with pytest.raises(ConfigurationError, match="was not made by lwskit; it is left alone"):
        write(path)
    assert path.read_text() == "precious"


def test_what_a_dead_cluster_left_behind_is_replaced(tmp_path: Path):
    path = tmp_path / "config"
    write(path, token="old")
    text = write(path, token="new")
    assert path.read_text() == text
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_file_of_a_cluster_that_runs_is_left_alone(tmp_path: Path):
    path = tmp_path / "config"
    with socket.create_server(("127.0.0.1", 0)) as listening:
        text = write(path, port=listening.getsockname()[1])
        with pytest.raises(ConfigurationError, match="belongs to a cluster that still runs"):
            write(path)
    assert path.read_text() == text


def test_only_what_was_written_is_removed(tmp_path: Path):
    path = tmp_path / "config"
    first = write(path, token="first")
    second = write(path, token="second")
    kubeconfig.remove(path, first)
    assert path.exists()
    kubeconfig.remove(path, second)
    assert not path.exists()


def test_a_folder_that_does_not_exist_is_said(tmp_path: Path):
    with pytest.raises(ConfigurationError, match="No such file or directory; choose another file"):
        write(tmp_path / "none" / "config")
