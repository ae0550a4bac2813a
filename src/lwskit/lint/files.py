"""Reading what is to be linted: files, folders, standard input."""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from lwskit.lint.check import Source

SUFFIXES: Final = (".yaml", ".yml", ".json")
STDIN: Final = "<stdin>"
LARGEST: Final = 32 * 1024 * 1024
"""Bytes of a file that is still read."""
_WIDE: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read(paths: Iterable[str], stdin: BinaryIO) -> Iterator[Source]:
    """The files of some paths; `-` is `stdin`, a folder stands for its files with a suffix of manifests, sorted.

    What cannot be read is a source with an error, one sentence.
    """
    for path in paths:
        if path == "-":
            yield _source(STDIN, stdin)
        elif os.path.isdir(path):
            yield from _folder(path)
        else:
            yield _file(path)


def _folder(path: str) -> Iterator[Source]:
    try:
        found = sorted(entry for entry in Path(path).iterdir() if entry.suffix in SUFFIXES and not entry.is_dir())
    except OSError as error:
        yield Source(path, error=f"cannot read {path}: {error.strerror}")
        return
    if not found:
        yield Source(path, error=f"{path} is a folder without {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]} files")
    for entry in found:
        yield _file(str(entry))


def _file(path: str) -> Source:
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISFIFO(mode):
            return Source(path, error=f"cannot read {path}: it is no file")
        with open(path, "rb") as file:
            return _source(path, file)
    except OSError as error:
        return Source(path, error=f"cannot read {path}: {error.strerror}")
    except ValueError as error:
        return Source(path, error=f"cannot read {path!r}: {error}")


def _source(name: str, file: BinaryIO) -> Source:
    raw = file.read(LARGEST + 1)
    if len(raw) > LARGEST:
        return Source(name, error=f"cannot read {name}: it has more than {LARGEST // 1024 // 1024} MiB")
    encoding = "UTF-16" if raw.startswith(_WIDE) else "UTF-8"
    if encoding == "UTF-8" and b"\0" in raw:
        return Source(name, error=f"cannot read {name}: it is not text")
    try:
        return Source(name, raw.decode("utf-8-sig" if encoding == "UTF-8" else encoding))
    except UnicodeDecodeError:
        return Source(name, error=f"cannot read {name}: it is not {encoding} text")
