"""Cutting a stream of chunks into lines. Pure."""

from __future__ import annotations

from lwskit.runtime.errors import InternalError

MAX_LINE = 8 * 1024 * 1024
"""Bytes in one line of a watch at most; an API server's objects are below 2 MiB."""


class LineSplitter:
    """Lines from chunks whose boundaries fall anywhere (specification: 70 §2.6, §15).

    `limit` is the longest line in bytes.
    """

    def __init__(self, limit: int = MAX_LINE) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes, without empty ones. Raises InternalError for a line over the limit."""
        lines = chunk.split(b"\n")
        if len(lines) > 1:
            lines[0] = b"".join([*self._parts, lines[0]])
            self._parts, self._size = [], 0
        rest = lines.pop()
        if rest:
            self._parts.append(rest)
            self._size += len(rest)
        if self._size > self._limit or any(len(line) > self._limit for line in lines):
            raise InternalError(f"the watch sent a line of more than {self._limit} bytes")
        return [line for line in lines if line.strip()]
