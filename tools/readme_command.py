"""Prints the command of the README that carries a name, so that CI runs what the README says.

python3 tools/readme_command.py demo|tests
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"


def command(name: str, text: str) -> str:
    """The shell block that follows the comment `<!-- command: NAME -->`; KeyError if there is none."""
    found = re.search(rf"<!-- command: {re.escape(name)} -->\s*```sh\n(.*?)```", text, re.DOTALL)
    if found is None:
        raise KeyError(name)
    return found[1].strip()


if __name__ == "__main__":
    try:
        print(command(sys.argv[1], README.read_text()))
    except (IndexError, KeyError) as e:
        sys.exit(f"Error: name one of the README's commands, such as tests ({e!r})")
