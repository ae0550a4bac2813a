"""The read verbs: get, list with paging, watch."""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

import orjson

from lwskit.embedded import selectors
from lwskit.embedded.backend import Backend
from lwskit.embedded.call import Call
from lwskit.embedded.codec import parse_error
from lwskit.embedded.failures import bad_request, not_found, status_body, too_large_version
from lwskit.embedded.formats import Format, choose
from lwskit.embedded.list_options import check_list, check_watch, go_bool, is_exact, read_numbers
from lwskit.embedded.negotiation import check_stream
from lwskit.embedded.store import Entry, OutrunError, Watch
from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import ApiError, ConnectionFailed, Expired

BOOKMARK_SECONDS = 60.0
INITIAL_END = "k8s.io/initial-events-end"
_WATCH_SECONDS = 1800.0
_NOT_BASE64 = re.compile(r"[^A-Za-z0-9_-]")


class Reader:
    """The read verbs over one backend."""

    def __init__(self, backend: Backend) -> None:
        self._b = backend

    def _format(self, call: Call) -> Format:
        header = call.request.headers.get("accept", "")
        return choose(header, call.resource, self._b.codec, self._b.clock, call.params)

    def get(self, call: Call) -> tuple[bytes, str]:
        """One object and its content type. Raises NotFound, ServerTimeout."""
        asked = _version(call.params.get("resourceVersion", ""))
        if asked > self._b.store.version:
            raise too_large_version(asked, self._b.store.version)
        entry = self._b.find(call.resource, call.namespace, call.name)
        if entry is None:
            raise not_found(call.resource, call.name)
        form = self._format(call)
        return form.entry(entry), form.content_type

    def list(self, call: Call) -> tuple[bytes, str]:
        """A list and its content type. Raises InvalidRequest, Expired, ServerTimeout."""
        form = self._format(call)
        entries, meta = self.page(call)
        return form.many(entries, meta), form.content_type

    def check_page(self, call: Call) -> None:
        """Raises InvalidRequest and Invalid for what is refused of a list before the store is asked."""
        read_numbers(call.params)
        selectors.check_syntax(call.params.get("labelSelector", ""), call.params.get("fieldSelector", ""))
        check_list(call.params)
        self._wanted(call)

    def page(self, call: Call, *, whole: bool = False) -> tuple[list[Entry], dict[str, Any]]:
        """The objects of one page of a list, and the list's metadata; with `whole` what a limit says does not count.

        Raises InvalidRequest, Invalid, Expired, ServerTimeout.
        """
        store, params = self._b.store, call.params
        limit, _ = read_numbers(params)
        limit = 0 if whole else limit
        selectors.check_syntax(params.get("labelSelector", ""), params.get("fieldSelector", ""))
        check_list(params)
        wanted = self._wanted(call)
        prefix = _prefix(call)
        asked = params.get("resourceVersion") or ""
        match = params.get("resourceVersionMatch") or ""
        version, start = store.version, ""
        if params.get("continue"):
            version, start = _read_token(params["continue"])
            if asked not in ("", "0"):
                raise bad_request("specifying resource version is not allowed when using continue")
            entries = (
                self._at(call, prefix, version, start) if version >= 0 else store.list(call.resource.storage, prefix)
            )
            version = version if version >= 0 else store.version
        else:
            number = _listed_version(asked)
            if number > store.version:
                raise too_large_version(number, store.version)
            if is_exact(number, match, limit):
                version = number
                try:
                    entries = store.list_at(call.resource.storage, prefix, number)
                except OutrunError as e:
                    raise Expired("The resourceVersion for the provided list is too old.") from e
            else:
                entries = store.list(call.resource.storage, prefix)
                if asked == "0":
                    limit = 0
        if start:
            entries = [e for e in entries if _place(e) > start]
        if wanted is not None:
            entries = [e for e in entries if wanted(e.obj)]
        meta: dict[str, Any] = {"resourceVersion": str(version)}
        if limit and len(entries) > limit:
            left = len(entries) - limit
            entries = entries[:limit]
            meta["continue"] = _token(version, _place(entries[-1]))
            if wanted is None:
                meta["remainingItemCount"] = left
        return entries, meta

    def _at(self, call: Call, prefix: str, version: int, start: str) -> list[Entry]:
        try:
            return self._b.store.list_at(call.resource.storage, prefix, version)
        except OutrunError as e:
            error = Expired(
                "The provided continue parameter is too old to display a consistent list result. You can start a new "
                "list without the continue parameter, or use the continue token in this response to retrieve the "
                "remainder of the results. Continuing with the provided token results in an inconsistent list - "
                "objects that were created, modified, or deleted between the time the first chunk was returned and "
                "now may show up in the list."
            )
            error.continue_token = _token(-1, start)  # type: ignore[attr-defined]
            raise error from e

    def _wanted(self, call: Call) -> Any:
        return selectors.wanted(
            call.resource, call.params.get("labelSelector", ""), call.params.get("fieldSelector", "")
        )

    def watch(self, call: Call, idle_timeout: float | None = None) -> WatchStream:
        """Follow a collection. Raises InvalidRequest and Invalid; what is too old is an event in the stream."""
        store, params = self._b.store, call.params
        form = self._format(call)
        _, asked_seconds = read_numbers(params)
        wanted = self._wanted(call)
        prefix = _prefix(call)
        asked = params.get("resourceVersion") or ""
        bookmarks = go_bool(params.get("allowWatchBookmarks"))
        initial = go_bool(params.get("sendInitialEvents"))
        check_watch(params)
        check_stream(call.request.headers.get("accept", ""))
        number = _version(asked)
        seconds = float(asked_seconds) or _WATCH_SECONDS * (1 + self._b.rng.random())
        if initial and number > store.version:
            error = status_body(too_large_version(number, store.version))
            return WatchStream(None, form, self._b, 0.0, False, False, error, idle_timeout)
        everything = initial or (params.get("sendInitialEvents") is None and number == 0)
        end = initial and bookmarks
        try:
            watch = store.watch(call.resource.storage, prefix, None if everything else number, wanted)
        except OutrunError as e:
            error = Expired(f"too old resource version: {e.asked} ({e.oldest})", details={})
            return WatchStream(None, form, self._b, 0.0, False, False, status_body(error), idle_timeout)
        return WatchStream(watch, form, self._b, seconds, bookmarks, end, None, idle_timeout)


class WatchStream:
    """The answer to a watch: one JSON document a line, until the time is over or the reader leaves."""

    def __init__(
        self,
        watch: Watch | None,
        form: Format,
        backend: Backend,
        seconds: float,
        bookmarks: bool,
        end: bool,
        error: dict[str, Any] | None,
        idle_timeout: float | None,
    ) -> None:
        self._watch = watch
        self._form = form
        self._store = backend.store
        self._clock: Clock = backend.clock
        self._seconds = seconds
        self._bookmarks = bookmarks
        self._end = end
        self._error = error
        self._idle = idle_timeout
        self._first = True
        self.status = 200
        self.headers: Mapping[str, str] = {"content-type": form.content_type}

    async def chunks(self) -> AsyncIterator[bytes]:
        """The events as they come. Raises ConnectionFailed after `idle_timeout` seconds of silence.

        Ends at the watch's own time limit, when the store closes it, or when cancelled.
        """
        if self._error is not None:
            yield b'{"type":"ERROR","object":' + orjson.dumps(self._error) + b"}\n"
            return
        watch, clock = self._watch, self._clock
        assert watch is not None
        deadline = clock.monotonic() + self._seconds
        bookmark_at = clock.monotonic() + BOOKMARK_SECONDS
        try:
            while True:
                spoke = self._take(watch)
                if self._end:
                    self._end = False
                    spoke += self._bookmark({INITIAL_END: "true"})
                now = clock.monotonic()
                over = now >= deadline
                if self._bookmarks and (now >= bookmark_at or over):
                    spoke += self._bookmark(None)
                    bookmark_at = now + BOOKMARK_SECONDS
                if spoke:
                    yield spoke
                if over or (watch.closed and not spoke):
                    return
                if spoke:
                    continue
                pause = min(deadline, bookmark_at) - now if self._bookmarks else deadline - now
                if self._idle is not None and self._idle < pause:
                    await watch.wait(self._idle)
                    if clock.monotonic() - now >= self._idle and not watch.pending:
                        raise ConnectionFailed(f"no data for {self._idle:g} s on a watch")
                else:
                    await watch.wait(pause)
        finally:
            watch.close()

    def _take(self, watch: Watch) -> bytes:
        lines = []
        for kind, entry in watch.take():
            body = self._form.event(entry, self._first)
            self._first = False
            lines.append(b'{"type":"%s","object":%s}\n' % (kind.encode(), body))
        return b"".join(lines)

    def _bookmark(self, annotations: dict[str, str] | None) -> bytes:
        meta: dict[str, Any] = {"resourceVersion": str(self._store.version)}
        if annotations:
            meta["annotations"] = annotations
        return b'{"type":"BOOKMARK","object":%s}\n' % self._form.bookmark(meta)

    async def read(self) -> bytes:
        """Everything until the stream ends."""
        return b"".join([chunk async for chunk in self.chunks()])

    def close(self) -> None:
        """Stop following. Idempotent."""
        if self._watch is not None:
            self._watch.close()


def _prefix(call: Call) -> str:
    return f"{call.namespace}/" if call.namespace else ""


def _place(entry: Entry) -> str:
    meta = entry.obj["metadata"]
    namespace = meta.get("namespace")
    return f"{namespace}/{meta['name']}" if namespace else meta["name"]


def _version(text: str) -> int:
    if not text:
        return 0
    if not text.isdecimal():
        message = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        raise ApiError(message, code=500, reason="")
    return int(text)


def _listed_version(text: str) -> int:
    try:
        return _version(text)
    except ApiError as e:
        raise bad_request(f"invalid resource version: {e.message}") from e


def _token(version: int, start: str) -> str:
    raw = orjson.dumps({"v": "meta.k8s.io/v1", "rv": version, "start": start})
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _read_token(text: str) -> tuple[int, str]:
    """The version and the place where a list goes on. Raises InvalidRequest."""
    try:
        strange = _NOT_BASE64.search(text)
        if strange or len(text) % 4 == 1:
            at = strange.start() if strange else len(text) - 1
            raise ValueError(f"illegal base64 data at input byte {at}")
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        try:
            data = orjson.loads(raw)
        except orjson.JSONDecodeError as e:
            raise ValueError(parse_error(raw, e)) from e
        found = data if isinstance(data, dict) else {}
        if found.get("v") != "meta.k8s.io/v1":
            raise ValueError(f"server does not recognize this encoded version {found.get('v', '')}")
        if not found.get("rv"):
            raise ValueError("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
        if not found.get("start"):
            raise ValueError("encoded start key empty (version meta.k8s.io/v1)")
        return int(found["rv"]), str(found["start"])
    except (ValueError, TypeError) as e:
        raise bad_request(f"invalid continue token: continue key is not valid: {e}") from e
