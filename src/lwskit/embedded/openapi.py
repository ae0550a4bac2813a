"""OpenAPI documents."""

from __future__ import annotations

from lwskit.embedded.backend import Backend
from lwskit.runtime.client.transport import HttpRequest, HttpResponse


class OpenApi:
    """Serves OpenAPI documents."""

    def __init__(self, backend: Backend) -> None:
        self._b = backend

    def answer(self, request: HttpRequest) -> HttpResponse | None:
        """The answer to a path under `/openapi/`."""
        return None
