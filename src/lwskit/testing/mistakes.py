"""Failures of tests made readable: tracebacks end where the test called, and hints tell what is likely missing."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pytest

from lwskit.runtime.errors import LwskitError, NotFound
from lwskit.runtime.kinds import Kind

if TYPE_CHECKING:
    from lwskit.embedded.apiserver import ApiServer

_CLIENT = "lwskit.runtime.client."


def improve(excinfo: pytest.ExceptionInfo[BaseException], server: ApiServer | None) -> pytest.ExceptionInfo[Any]:
    """What pytest shows of an error of the library: with a hint where there is one, without the client's frames.

    `server` is that of the test's embedded cluster. Other errors stay as they are.
    """
    error = excinfo.value
    if not isinstance(error, LwskitError):
        return excinfo
    frames = [*_frames(excinfo.tb)]
    if isinstance(error, NotFound) and not error.details.get("name"):
        text = _missing(frames, server)
        if text and text not in getattr(error, "__notes__", ()):
            error.add_note(text)
    return pytest.ExceptionInfo.from_exc_info((type(error), error, _cut(frames) or excinfo.tb))


def _frames(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _cut(frames: list[TracebackType]) -> TracebackType | None:
    """The traceback up to the call of the client."""
    inside = (str(f.tb_frame.f_globals.get("__name__", "")).startswith(_CLIENT) for f in frames)
    end = next((number for number, found in enumerate(inside) if found), len(frames))
    kept: TracebackType | None = None
    for frame in reversed(frames[:end]):
        kept = TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return kept


def _missing(frames: list[TracebackType], server: ApiServer | None) -> str:
    """Why a kind that the test asked for is not served, and what to do."""
    from lwskit.testing.fake import FakeClient

    kind: Kind | None = None
    where = "put it into the fixture cluster_crds"
    for frame in frames:
        found = frame.tb_frame.f_locals
        if isinstance(found.get("kind"), Kind):
            kind = found["kind"]
        if isinstance(found.get("self"), FakeClient):
            server = found["self"].server
            where = "give it to fake.client as one of `crds`, or the Kind as one of `kinds`"
    if kind is None:
        return ""
    if server is not None:
        same = [r for r in server.backend.registry if r.group == kind.group]
        for resource in same:
            if (resource.kind, resource.version) == (kind.kind, kind.version) and resource.plural != kind.plural:
                return f"the server has {kind.kind} as {resource.plural!r}; the Kind says {kind.plural!r}"
        versions = sorted({r.version for r in same if r.plural == kind.plural})
        if kind.version in versions:
            return ""
        if versions:
            return f"the server has {kind.plural} of {kind.group} in {', '.join(versions)}, not in {kind.version}"
        if "." not in kind.group:
            return f"the embedded cluster does not serve {kind.kind} of {kind.api_version}"
    return f"no CustomResourceDefinition for {kind.kind} of {kind.api_version}: {where}"
