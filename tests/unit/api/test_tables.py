"""The checked-in tables are what their tools write today."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
GO = shutil.which("go")


def test_schema_of_templates_is_current() -> None:
    if importlib.util.find_spec("kubernetes_validate") is None:
        pytest.skip("kubernetes-validate is not installed: pip install 'lwskit[dev]'")
    command = [sys.executable, "tools/schemas/podtemplate.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_tables_of_types_are_current() -> None:
    if GO is None:
        pytest.skip("Go is not installed")
    tables = {"-pod": "src/lwskit/api/pod-types.json", "-builtin": "src/lwskit/embedded/builtin-types.json"}
    arguments = [part for flag, path in tables.items() for part in (flag, str(ROOT / path))]
    done = subprocess.run(
        [GO, "run", ".", "-check", *arguments],
        cwd=ROOT / "tools/gotypes",
        env=os.environ | {"GOFLAGS": "-mod=mod"},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    if "dial tcp" in done.stderr or "no such host" in done.stderr:
        pytest.skip("the Go modules are not on this machine and cannot be downloaded")
    assert done.returncode == 0, done.stderr
