"""Health endpoints: named checks behind `/healthz` and `/readyz` (specification: 70 §9)."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence

import structlog
from aiohttp import web

from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.listener import Listener
from lwskit.runtime.runnable import Group

log = structlog.get_logger(__name__)

Check = Callable[[], Awaitable[None] | None]
"""Raises when something is wrong; may be asynchronous."""
_HEADERS = {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"}


def ping() -> None:
    """The check that never fails."""


class Checks:
    """The checks of one endpoint, called `title` in its answers. Without any there is an implicit ping.

    Cancelling it cancels the check under way.
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self._checks: dict[str, Check] = {}

    def __len__(self) -> int:
        return len(self._checks)

    def add(self, name: str, check: Check) -> None:
        """Add a check. Raises ConfigurationError for a name that is taken."""
        if name in self._checks:
            raise ConfigurationError(f"there is a {self.title} check named {name!r} already")
        self._checks[name] = check

    async def all(self, *, verbose: bool = False, exclude: Sequence[str] = ()) -> tuple[int, str]:
        """HTTP status and text of all checks, sorted by name; why one failed is only logged."""
        checks = self._checks or {"ping": ping}
        lines: list[str] = []
        failed = False
        for name in sorted(checks):
            if name in exclude:
                lines.append(f"[+]{name} excluded: ok")
                continue
            error = await _failure(checks[name])
            if error is None:
                lines.append(f"[+]{name} ok")
            else:
                log.warning("check failed", endpoint=self.title, check=name, error=str(error))
                lines.append(f"[-]{name} failed: reason withheld")
                failed = True
        unknown = sorted(set(exclude) - checks.keys())
        if unknown:
            matches = ", ".join(f'"{name}"' for name in unknown)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {matches}")
        if failed:
            return 500, "\n".join([*lines, f"{self.title} check failed"]) + "\n"
        if verbose:
            return 200, "\n".join([*lines, f"{self.title} check passed"]) + "\n"
        return 200, "ok"

    async def one(self, name: str) -> tuple[int, str]:
        """HTTP status and text of one check; 404 for one that does not exist."""
        checks = self._checks or {"ping": ping}
        if name not in checks:
            return 404, "404 page not found\n"
        error = await _failure(checks[name])
        return (200, "ok") if error is None else (500, f"internal server error: {error}\n")


class HealthServer:
    """Serves liveness and readiness over plain HTTP. A side exists only if it has a check. Runs without leadership.

    The address is taken when the server is made. Raises ConfigurationError when it is in use.
    """

    group = Group.HTTP
    name = "health server"

    def __init__(self, host: str, port: int, *, liveness: str = "/healthz", readiness: str = "/readyz") -> None:
        self._endpoints = {path.rstrip("/"): Checks(path.strip("/")) for path in (liveness, readiness)}
        self._liveness, self._readiness = (path.rstrip("/") for path in (liveness, readiness))
        self._started = False
        self._listener = Listener(self.name, host, port, self._serve)
        self.serving = self._listener.serving
        """Set while requests are answered."""
        self._listener.bind()

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return self._listener.port

    def add_health_check(self, name: str, check: Check = ping) -> None:
        """Add a check to the liveness side. Raises ConfigurationError once the server runs."""
        self._add(self._liveness, name, check)

    def add_ready_check(self, name: str, check: Check = ping) -> None:
        """Add a check to the readiness side. Raises ConfigurationError once the server runs."""
        self._add(self._readiness, name, check)

    async def run(self) -> None:
        """Serve until cancelled."""
        self._started = True
        await self._listener.run()

    def close(self) -> None:
        """Give the address back without having run."""
        self._listener.close()

    def _add(self, path: str, name: str, check: Check) -> None:
        if self._started:
            raise ConfigurationError("unable to add new checker because healthz endpoint has already been created")
        self._endpoints[path].add(name, check)

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path.rstrip("/")
        checks = self._endpoints.get(path)
        if checks:
            exclude = request.query.getall("exclude", [])
            status, text = await checks.all(verbose="verbose" in request.query, exclude=exclude)
            return web.Response(status=status, body=text.encode(), headers=_HEADERS)
        parent, _, name = path.rpartition("/")
        checks = self._endpoints.get(parent)
        status, text = await checks.one(name) if checks else (404, "404 page not found\n")
        return web.Response(status=status, body=text.encode(), headers=_HEADERS)


async def _failure(check: Check) -> Exception | None:
    try:
        result = check()
        if inspect.isawaitable(result):
            await result
    except Exception as error:
        return error
    return None
