"""The server's refusals, with the texts and details that a real one gives. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lwskit.runtime.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Invalid,
    InvalidRequest,
    MethodNotAllowed,
    NotFound,
    ServerTimeout,
)

if TYPE_CHECKING:
    from lwskit.embedded.resources import Resource

_ALWAYS_DETAILED = frozenset({404, 405, 422})
"""Codes whose answers have details even when there are none to give."""

_MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


@dataclass(frozen=True, slots=True)
class FieldError:
    """One broken rule: the cause's `reason` word, the field's path, and the text after it."""

    reason: str
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def shown(value: Any) -> str:
    """A value as refusals print it: strings quoted, everything else as JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def required(field: str, detail: str = "") -> FieldError:
    """A field that must be given."""
    return FieldError("FieldValueRequired", field, f"Required value: {detail}" if detail else "Required value")


def invalid_value(field: str, value: Any, detail: str) -> FieldError:
    """A value that breaks a rule."""
    return FieldError("FieldValueInvalid", field, f"Invalid value: {shown(value)}: {detail}")


def not_supported(field: str, value: Any, allowed: Sequence[str]) -> FieldError:
    """A value that is not one of a list."""
    text = ", ".join(f'"{a}"' for a in allowed)
    return FieldError("FieldValueNotSupported", field, f"Unsupported value: {shown(value)}: supported values: {text}")


def duplicate(field: str, value: Any) -> FieldError:
    """A value that stands there twice."""
    return FieldError("FieldValueDuplicate", field, f"Duplicate value: {shown(value)}")


def forbidden_field(field: str, detail: str) -> FieldError:
    """A field that may not be set, or not be changed."""
    return FieldError("FieldValueForbidden", field, f"Forbidden: {detail}")


def too_long(field: str, limit: int) -> FieldError:
    """A text that is too long; `limit` in bytes."""
    return FieldError("FieldValueTooLong", field, f"Too long: may not be more than {limit} bytes")


def invalid_object(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> Invalid:
    """422 with one cause for each broken rule."""
    texts = list(dict.fromkeys(str(e) for e in errors))
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    qualified = f"{kind}.{group}" if group else kind
    causes = [{"reason": e.reason, "message": e.message, "field": e.field} for e in errors]
    return Invalid(f'{qualified} "{name}" is invalid: {text}', details=_details(group, kind, name, causes=causes))


def _details(group: str, kind: str, name: str, **more: Any) -> dict[str, Any]:
    found = {"name": name, "group": group, "kind": kind}
    return {k: v for k, v in found.items() if v} | more


def not_found(resource: Resource, name: str) -> NotFound:
    """404 for one object."""
    return NotFound(f'{resource.qualified} "{name}" not found', details=_details(resource.group, resource.plural, name))


def no_such_resource() -> NotFound:
    """404 for a path under a known group and version where nothing is served."""
    return NotFound("the server could not find the requested resource", details={})


def method_not_allowed() -> MethodNotAllowed:
    """405 for a verb that the resource does not take."""
    return MethodNotAllowed("the server does not allow this method on the requested resource", details={})


def already_exists(resource: Resource, name: str) -> AlreadyExists:
    """409 for a name that is taken."""
    return AlreadyExists(
        f'{resource.qualified} "{name}" already exists', details=_details(resource.group, resource.plural, name)
    )


def conflict(group: str, what: str, name: str, text: str = _MODIFIED) -> Conflict:
    """409 for a write from an old state or a failed precondition; `what` is the plural or the kind."""
    qualified = f"{what}.{group}" if group else what
    return Conflict(
        f'Operation cannot be fulfilled on {qualified} "{name}": {text}', details=_details(group, what, name)
    )


def modified(resource: Resource, name: str) -> Conflict:
    """409 for a write whose resourceVersion is not the latest."""
    return conflict(resource.group, resource.plural, name)


def forbidden(resource: Resource, name: str, text: str, causes: Sequence[dict[str, str]] = ()) -> Forbidden:
    """403 with the resource's name before the reason."""
    more = {"causes": list(causes)} if causes else {}
    message = (
        f'{resource.qualified} "{name}" is forbidden: {text}' if name else f"{resource.qualified} is forbidden: {text}"
    )
    return Forbidden(message, details=_details(resource.group, resource.plural, name, **more))


def bad_request(text: str) -> InvalidRequest:
    """400."""
    return InvalidRequest(text)


def too_large_version(asked: int, current: int) -> ServerTimeout:
    """504 for a resourceVersion from the future."""
    return ServerTimeout(
        f"Timeout: Too large resource version: {asked}, current: {current}",
        details={
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        },
    )


def invalid_options(kind: str, errors: Sequence[FieldError]) -> Invalid:
    """422 for query parameters or delete options."""
    return invalid_object("meta.k8s.io", kind, "", errors)


def status_body(error: ApiError) -> dict[str, Any]:
    """The Status object of a refusal, with its keys in the order in which a real server writes them."""
    body: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    body["message"] = error.message
    if error.reason:
        body["reason"] = error.reason
    if error.details or error.code in _ALWAYS_DETAILED or error.message.startswith(("406:", "415:")):
        body["details"] = error.details
    body["code"] = error.code
    return body
