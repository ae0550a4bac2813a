"""The plugin and the helpers as another project uses them: its own folder, its own pytest, none of this one's files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2] / "other_project"


def test_another_project_tests_its_controller_with_what_is_installed(tmp_path: Path) -> None:
    shutil.copytree(PROJECT, tmp_path / "greeter", ignore=shutil.ignore_patterns("__pycache__"))
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "PYTHONPATH", "LWSKIT_"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", "."],
        cwd=tmp_path / "greeter",
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    sources = "".join(path.read_text() for path in PROJECT.glob("test_*.py"))
    written = len(re.findall(r"^(?:async )?def test_", sources, re.MULTILINE))
    assert f"{written} passed" in done.stdout
