"""Which build this is (specification: 60 §1.4)."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version as installed

COMMIT = os.environ.get("LWSKIT_GIT_COMMIT", "")
"""The commit that an image was built from; an image's build sets it."""
BUILD_DATE = os.environ.get("LWSKIT_BUILD_DATE", "N/A")


def text() -> str:
    """The three lines of `lwskit manager --version`."""
    return f"Version: v{installed('lwskit')}\nBuild Date: {BUILD_DATE}\nGit Commit: {COMMIT or 'unknown'}"


def user_agent() -> str:
    """What requests carry as User-Agent: name, version, platform, and the first seven digits of the commit."""
    commit = COMMIT[:7] or "unknown"
    return f"lwskit/v{installed('lwskit')} ({platform.system().lower()}/{platform.machine()}) {commit}"
