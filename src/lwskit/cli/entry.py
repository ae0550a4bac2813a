"""Where the `lwskit` command begins: with almost no imports, so that Ctrl-C finds somebody from the first moment on."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; an interruption while it is still being loaded ends it with 130 like any other."""
    try:
        from lwskit.cli.main import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()
