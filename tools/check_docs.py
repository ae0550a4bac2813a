"""Checks the pages: links lead to files and headings that exist, commands shown exist, files quoted are as they are.

Blocks under `<!-- quote FILE -->` are together, in their order, the whole file; empty lines do not count.

python -m tools.check_docs [FILE...]      README.md, the pages beside it and docs/ unless files are named
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

import click

from lwskit.cli.main import cli

ROOT = Path(__file__).resolve().parents[1]
FENCE = re.compile(r"^(```|~~~)(\w*)\s*$")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")
QUOTE = re.compile(r"^<!-- quote (\S+) -->\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROGRAM = re.compile(r"^(?:\$ )?(?:[\w./-]*/)?(?:python3? -m )?lwskit(?= |$)(.*)$")


def pages() -> list[Path]:
    """Every page of the project."""
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def split(text: str) -> tuple[list[str], list[str]]:
    """The lines outside and inside of fenced blocks, each with empty lines in place of the other's."""
    prose: list[str] = []
    code: list[str] = []
    fence = ""
    for line in text.splitlines():
        found = FENCE.match(line.strip())
        if found and not fence:
            fence = found[1]
            line = ""
        elif found and found[1] == fence and not found[2]:
            fence = ""
            line = ""
        prose.append("" if fence else line)
        code.append(line if fence else "")
    return prose, code


def anchor(heading: str) -> str:
    """The anchor that a heading gets when the page is shown."""
    kept = re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", heading).strip().lower())
    return kept.replace(" ", "-")


def anchors(page: Path) -> set[str]:
    """The anchors of a page."""
    prose, _ = split(page.read_text())
    return {anchor(found[1]) for line in prose if (found := HEADING.match(line))}


def broken_links(page: Path) -> Iterator[str]:
    """What is wrong with the links of a page; links to other sites are not followed."""
    for number, line in enumerate(split(page.read_text())[0], 1):
        for target in LINK.findall(re.sub(r"`[^`]*`", "", line)):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, fragment = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            if not file.exists():
                yield f"{page.relative_to(ROOT)}:{number}: {target} does not exist"
            elif fragment and file.suffix == ".md" and fragment not in anchors(file):
                yield f"{page.relative_to(ROOT)}:{number}: {target}: the page has no such heading"


def shown_commands(page: Path) -> Iterator[tuple[int, str]]:
    """The calls of `lwskit` in the page's code, with their line numbers: in blocks, and in backticks in the text."""
    prose, code = split(page.read_text())
    for number, line in enumerate(code, 1):
        for part in re.split(r"&&|\|\||[;|]", line.split(" # ")[0]):
            if found := PROGRAM.match(part.strip()):
                yield number, found[1]
    for number, line in enumerate(prose, 1):
        for span in re.findall(r"`([^`]+)`", line):
            if found := PROGRAM.match(span):
                yield number, found[1]


def unknown(words: Sequence[str]) -> str | None:
    """What in a call of `lwskit` does not exist, or None. A word in capitals or brackets stands for any value."""
    command: click.Command = cli
    context = click.Context(cli)
    for word in words:
        name = word.strip("[]").split("=")[0]
        if name.startswith("-") and len(name) > 1:
            known = {option for parameter in command.get_params(context) for option in parameter.opts}
            known |= {option for parameter in command.get_params(context) for option in parameter.secondary_opts}
            if name not in known and not name.startswith("--zap-"):
                return f"{command.name} has no option {name}"
        elif isinstance(command, click.Group):
            found = command.get_command(context, name)
            if found is None:
                return None if name.isupper() or name in {"…", "..."} else f"there is no command {name}"
            command = found
    return None


def wrong_commands(page: Path) -> Iterator[str]:
    """What is wrong with the commands that a page shows."""
    for number, call in shown_commands(page):
        try:
            problem = unknown(shlex.split(call))
        except ValueError as e:
            problem = str(e)
        if problem:
            yield f"{page.relative_to(ROOT)}:{number}: lwskit{call}: {problem}"


def wrong_quotes(page: Path) -> Iterator[str]:
    """Where the files that a page quotes differ from what it shows of them."""
    shown: dict[str, list[str]] = {}
    for path, block in QUOTE.findall(page.read_text()):
        shown.setdefault(path, []).extend(line for line in block.splitlines() if line.strip())
    for path, lines in shown.items():
        file = page.parent / path
        there = [line for line in file.read_text().splitlines() if line.strip()] if file.exists() else []
        for line, wanted in zip_longest(lines, there):
            if line != wanted:
                yield f"{page.relative_to(ROOT)}: the quote of {path} has {line!r}, the file {wanted!r}"
                break


def main(names: Sequence[str]) -> int:
    """Print every fault; 1 if there is one."""
    files = [Path(name).resolve() for name in names] or pages()
    faults = [
        fault for page in files for check in (broken_links, wrong_commands, wrong_quotes) for fault in check(page)
    ]
    print("\n".join(faults) if faults else f"{len(files)} pages: links, commands and quotes are good")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
