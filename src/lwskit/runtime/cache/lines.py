"""Cutting a stream of chunks into lines. Pure."""

from __future__ import annotations

from typing import TypeAlias

from lwskit.runtime.errors import InternalError

MAX_LINE = 8 * 1024 * 1024
"""Bytes in one line of a watch at most; an API server's objects are below 2 MiB."""


Line: TypeAlias = bytes | memoryview
"""A line without its end: of its own, or a piece of the chunk that brought it, which is not copied."""
_SPACE = 0x20


class LineSplitter:
    """Lines from chunks whose boundaries fall anywhere (specification: 70 §2.6, §15).

    `limit` is the longest line in bytes.
    """

    def __init__(self, limit: int = MAX_LINE) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[Line]:
        """The lines that this chunk completes, without empty ones. Raises InternalError for a line over the limit."""
        found: list[Line] = []
        start, end = 0, chunk.find(b"\n")
        if end >= 0 and self._parts:
            first = b"".join([*self._parts, chunk[:end]])
            self._parts, self._size = [], 0
            self._check(len(first))
            if first.strip():
                found.append(first)
            start = end + 1
            end = chunk.find(b"\n", start)
        if end >= 0:
            find, whole = chunk.find, memoryview(chunk)
            while end >= 0:
                # Only a line that begins with white space can be an empty one.
                if chunk[start] > _SPACE or chunk[start:end].strip():
                    self._check(end - start)
                    found.append(whole[start:end])
                start = end + 1
                end = find(b"\n", start)
        if start < len(chunk):
            self._parts.append(chunk[start:])
            self._size += len(chunk) - start
            self._check(self._size)
        return found

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise InternalError(f"the watch sent a line of more than {self._limit} bytes")
