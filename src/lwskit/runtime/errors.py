"""Every error of the library: one root, precise leaves. Pure.

The leaves of ApiError stand for the reasons of an API server's Status (specification: 70 §6.3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import inf
from typing import Any


class LwskitError(Exception):
    """The root of all errors that lwskit raises on purpose."""


class ConfigurationError(LwskitError):
    """Something the user wrote (a flag, a file, an argument) cannot be used; the text says what to write instead."""


class ConnectionFailed(LwskitError):
    """The API server could not be reached, or the connection broke; whether a write took place is unknown.

    `retryable` is whether the next attempt may well succeed: a connection was lost, rather than never to be had.
    """

    def __init__(self, *args: object, retryable: bool = True) -> None:
        super().__init__(*args)
        self.retryable = retryable


class PlanError(LwskitError):
    """A plan refers to an answer that no earlier action gave."""


class TerminalError(LwskitError):
    """Trying again cannot help: the request is dropped until something changes (specification: 70 §5.3).

    Also counts when it is the cause of the error that is raised (`raise … from`).
    """

    def __str__(self) -> str:
        return f"terminal error: {super().__str__()}"


class ApiError(LwskitError):
    """The API server answered with a Status of failure.

    `code` is the HTTP status, `reason` the machine-readable word, `message` the server's text, `status` the whole body.
    """

    code = 500
    reason = "InternalError"

    def __init__(
        self,
        message: str,
        *,
        code: int | None = None,
        reason: str | None = None,
        details: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = self.code if code is None else code
        self.reason = self.reason if reason is None else reason
        self.details = dict(details or {})
        self.retry_after = retry_after

    @property
    def status(self) -> dict[str, Any]:
        """The error as the Status object that an API server sends."""
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        if self.details:
            body["details"] = self.details
        return body


class InvalidRequest(ApiError):
    """400: the request itself is malformed."""

    code, reason = 400, "BadRequest"


class Unauthorized(ApiError):
    """401: no or wrong credentials."""

    code, reason = 401, "Unauthorized"


class Forbidden(ApiError):
    """403: not allowed, by permissions, quota or an admission webhook."""

    code, reason = 403, "Forbidden"


class NotFound(ApiError):
    """404: the object, its kind or its namespace does not exist."""

    code, reason = 404, "NotFound"


class MethodNotAllowed(ApiError):
    """405: the resource does not support this verb."""

    code, reason = 405, "MethodNotAllowed"


class NotAcceptable(ApiError):
    """406: the server cannot answer in any of the media types asked for."""

    code, reason = 406, "NotAcceptable"


class AlreadyExists(ApiError):
    """409 with reason AlreadyExists: an object of that name is there."""

    code, reason = 409, "AlreadyExists"


class Conflict(ApiError):
    """409 with reason Conflict: a precondition failed or another field manager owns a field."""

    code, reason = 409, "Conflict"


class Expired(ApiError):
    """410: the resourceVersion or continue token is too old."""

    code, reason = 410, "Expired"


class RequestEntityTooLarge(ApiError):
    """413: the body is larger than the server takes."""

    code, reason = 413, "RequestEntityTooLarge"


class UnsupportedMediaType(ApiError):
    """415: the body's content type is not one the server reads."""

    code, reason = 415, "UnsupportedMediaType"


class Invalid(ApiError):
    """422: the object breaks a rule of its kind; `details.causes` lists the fields."""

    code, reason = 422, "Invalid"


class TooManyRequests(ApiError):
    """429: the server asks to slow down; `retry_after` is in seconds."""

    code, reason = 429, "TooManyRequests"


class InternalError(ApiError):
    """500: the server failed."""

    code, reason = 500, "InternalError"


class ServiceUnavailable(ApiError):
    """503: the server cannot answer now."""

    code, reason = 503, "ServiceUnavailable"


class ServerTimeout(ApiError):
    """504: the server gave up, or has not reached the resourceVersion that was asked for."""

    code, reason = 504, "Timeout"


_LEAVES: tuple[type[ApiError], ...] = (
    InvalidRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    NotAcceptable,
    AlreadyExists,
    Conflict,
    Expired,
    RequestEntityTooLarge,
    UnsupportedMediaType,
    Invalid,
    TooManyRequests,
    InternalError,
    ServiceUnavailable,
    ServerTimeout,
)
_BY_REASON = {leaf.reason: leaf for leaf in _LEAVES} | {"Gone": Expired, "ServerTimeout": ServerTimeout}
_BY_CODE = {leaf.code: leaf for leaf in reversed(_LEAVES)} | {409: Conflict}


def error_from_status(status: Mapping[str, Any], code: int | None = None, retry_after: float | None = None) -> ApiError:
    """The error for a Status body: by its reason first, then by its code (specification: 70 §6.3).

    `code` is the HTTP status where the body has none; `retry_after` the server's Retry-After in seconds. Fields of the
    body that are not of their type are taken as absent.
    """
    if not isinstance(status, Mapping):
        status = {}
    number = _code(status.get("code")) or code or 500
    reason = _text(status.get("reason"))
    leaf = _BY_REASON.get(reason) or _BY_CODE.get(number) or ApiError
    message = _text(status.get("message")) or f"the server answered {number} without a message"
    details = _details(status.get("details"))
    if retry_after is None:
        retry_after = seconds(details.get("retryAfterSeconds")) or None
    return leaf(message, code=number, reason=reason or leaf.reason, details=details, retry_after=retry_after)


def seconds(value: Any) -> float | None:
    """A number of seconds to wait, as a server gives it; None for what is none, or negative, or not finite."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if 0 <= number < inf else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _code(value: Any) -> int:
    return value if isinstance(value, int) and 400 <= value <= 599 else 0


def _details(value: Any) -> dict[str, Any]:
    """The details, with such causes only as can be read."""
    if not isinstance(value, Mapping):
        return {}
    details = dict(value)
    if "causes" in details:
        causes = details["causes"] if isinstance(details["causes"], list) else []
        details["causes"] = [cause for cause in causes if isinstance(cause, Mapping)]
    return details


def is_too_large_version(error: ApiError) -> bool:
    """Whether the server says that it has not reached the resourceVersion asked for (specification: 70 §2.4)."""
    causes = error.details.get("causes") or ()
    if any(c.get("reason") == "ResourceVersionTooLarge" for c in causes):
        return True
    text = "Too large resource version"
    return error.code == 504 and (text in error.message or any(text in _text(c.get("message")) for c in causes))


@contextmanager
def another_uid_conflicts() -> Iterator[None]:
    """Inside the block a patch that names another UID than the object has raises Conflict, as a deletion does.

    API servers refuse it as a change of an immutable field, with Invalid; any other Invalid passes.
    """
    try:
        yield
    except Invalid as error:
        if any(cause.get("field") == "metadata.uid" for cause in error.details.get("causes") or ()):
            raise Conflict(error.message, details=error.details) from error
        raise
