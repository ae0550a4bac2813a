"""Admission reviews: from a request's bytes to the answer's (specification: 70 §8.2). Pure.

A handler gets the review's `request` and returns its `response`, made with `allowed`, `denied`, `errored` or `patched`;
`defaulter` and `validator` make handlers from plain functions on objects.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable, Sequence
from typing import Any

import orjson
import structlog

from lwskit.runtime.errors import ApiError, LwskitError
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Obj
from lwskit.runtime.patch import json_patch
from lwskit.runtime.webhook_checks import HandlerDefect, checked_nothing, checked_object, checked_response

__all__ = [
    "AdmissionDenied",
    "Handler",
    "allowed",
    "chain",
    "defaulter",
    "denied",
    "errored",
    "json_patch",
    "mutate_path",
    "patched",
    "respond",
    "review",
    "unreadable",
    "validate_path",
    "validator",
]

log = structlog.get_logger(__name__)

LIMIT = 7 * 1024 * 1024
"""Bytes at which a request is too large."""
CONTENT_TYPE = "application/json"
DEPTH = 100
"""Levels of a request from which on it may be refused for its depth."""
_SHOWN = 200
_KIND = "AdmissionReview"
_TEXTS = ("uid", "operation", "namespace", "name")
_VERSIONS = ("admission.k8s.io/v1", "admission.k8s.io/v1beta1")
_VERSIONS_OR_NONE = (*_VERSIONS, None, "")

Handler = Callable[[Obj], Obj]
"""From a review's `request` to its `response`; must not change the request. `patch` is a list of operations here."""
Warn = Callable[[str], Any]
"""Adds a warning that the user of the API is shown, whatever the outcome."""


class AdmissionDenied(LwskitError):
    """A handler's plain no: 403 with this text."""


def allowed(message: str = "") -> Obj:
    """Yes."""
    return {"allowed": True, "status": {"code": 200, **({"message": message} if message else {})}}


def denied(message: str) -> Obj:
    """No, with 403 and a text."""
    return {"allowed": False, "status": {"code": 403, "reason": "Forbidden", "message": message}}


def errored(code: int, message: str) -> Obj:
    """The request could not be decided on."""
    return {"allowed": False, "status": {"code": code, "message": message}}


def refused(error: Exception) -> Obj:
    """No for the reason that an error gives: an ApiError's own Status as it is, any other as `denied`."""
    if isinstance(error, ApiError):
        return {"allowed": False, "status": error.status}
    return denied(str(error))


def patched(old: Obj, new: Obj) -> Obj:
    """Yes, with the changes from the object as it came to the one wanted; without any, just yes."""
    patch = json_patch(old, new)
    return {**allowed(), "patch": patch} if patch else allowed()


def defaulter(default: Callable[[Obj, Obj], Obj], kind: Kind | None = None, *, pure: bool = False) -> Handler:
    """A mutating handler from a function of an object, a copy that it may change, and the request.

    With `pure` the function gets the request's own object and promises not to change it: what it returns shares with
    it whatever stays as it is. Then neither copying nor comparing costs more than the change.
    An LwskitError of it refuses the request. DELETE is allowed without asking. With a `kind`, an object that says to
    be of another one is answered with 400.
    """

    def handle(request: Obj) -> Obj:
        if request.get("operation") == "DELETE":
            return allowed()
        obj = request.get("object")
        if not isinstance(obj, dict):
            return errored(400, "there is no object to decode")
        if kind is not None and (fault := _of_another_kind(obj, kind)):
            return errored(400, fault)
        try:
            return patched(obj, checked_object(default(obj if pure else copy.deepcopy(obj), request), default))
        except LwskitError as error:
            return refused(error)

    return handle


def validator(
    create: Callable[[Obj, Warn], None] | None = None,
    update: Callable[[Obj, Obj, Warn], None] | None = None,
    delete: Callable[[Obj, Warn], None] | None = None,
    kind: Kind | None = None,
) -> Handler:
    """A validating handler from functions that raise an LwskitError to refuse.

    `create` gets the object, `update` the new and the old one, `delete` the old one, and each a function for warnings.
    An operation without a function and CONNECT are allowed. With a `kind`, an object that says to be of another one
    is answered with 400.
    """

    def check(request: Obj, warn: Warn) -> Obj:
        match request.get("operation"):
            case "CREATE":
                function, fields = create, ("object",)
            case "UPDATE":
                function, fields = update, ("object", "oldObject")
            case "DELETE":
                function, fields = delete, ("oldObject",)
            case "CONNECT":
                return allowed()
            case operation:
                return errored(400, f"unknown operation {_cut(operation)}")
        objects: list[Any] = [request.get(field) for field in fields]
        for obj in objects:
            if not isinstance(obj, dict):
                return errored(400, f"there is no {' and '.join(fields)} to decode")
            if kind is not None and (fault := _of_another_kind(obj, kind)):
                return errored(400, fault)
        if function is not None:
            checked_nothing(function(*objects, warn), function)  # type: ignore[call-arg]
        return allowed()

    def handle(request: Obj) -> Obj:
        warnings: list[str] = []
        try:
            response = check(request, warnings.append)
        except LwskitError as error:
            response = refused(error)
        return {**response, "warnings": warnings} if warnings else response

    return handle


def chain(*handlers: Handler) -> Handler:
    """Handlers one after the other, up to the first no; patches and warnings add up."""

    def handle(request: Obj) -> Obj:
        patch: list[Obj] = []
        warnings: list[str] = []
        for handler in handlers:
            response = checked_response(handler(request), handler)
            warnings += response.get("warnings") or ()
            if not response.get("allowed"):
                return {**response, "warnings": warnings} if warnings else response
            patch += response.get("patch") or ()
        return {**allowed(), **({"patch": patch} if patch else {}), **({"warnings": warnings} if warnings else {})}

    return handle


def respond(handler: Handler, body: Obj, on_panic: Callable[[], Any] | None = None) -> Obj:
    """The answer to a decoded AdmissionReview, in its own version; a failing handler is a 500 in it.

    A request that is nested too deeply for the handler, or for its answer to be written, is a 400.
    """
    request = body["request"]
    uid = request.get("uid") or ""
    try:
        complete = _complete(checked_response(handler(request), handler), uid)
    except Exception as error:
        complete = _failed(error, request, on_panic)
    return _envelope(body, complete)


def review(
    handler: Handler, body: bytes, content_type: str, on_panic: Callable[[], Any] | None = None
) -> tuple[int, bytes]:
    """The HTTP status, always 200, and the body that answer an AdmissionReview; the outcome is in the body.

    What cannot be read is answered without UID and version, which an API server takes for a failed call.
    """
    if not body:
        return unreadable("request body is empty")
    if len(body) >= LIMIT:
        return unreadable(f"request entity is too large; limit is {LIMIT} bytes", 413)
    if content_type != CONTENT_TYPE:
        return unreadable(f"contentType={content_type}, expected {CONTENT_TYPE}")
    try:
        decoded = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        return unreadable(f"the request body is not JSON: {error}")
    if not isinstance(decoded, dict) or not isinstance(decoded.get("request"), dict):
        return unreadable("the request body is not an AdmissionReview with a request")
    if decoded.get("apiVersion") not in _VERSIONS_OR_NONE:
        return unreadable(f"apiVersion={_cut(decoded['apiVersion'])}, expected one of {', '.join(_VERSIONS)}")
    if decoded.get("kind") not in (_KIND, None, ""):
        return unreadable(f"kind={_cut(decoded['kind'])}, expected {_KIND}")
    request = decoded["request"]
    for name in _TEXTS:
        if (value := request.get(name)) is not None and not isinstance(value, str):
            return unreadable(f"request.{name} must be a text")
    answer = respond(handler, decoded, on_panic)
    try:
        return 200, orjson.dumps(answer)
    except TypeError as error:
        return 200, orjson.dumps(_envelope(decoded, _failed(error, request, on_panic)))


def unreadable(message: str, code: int = 400) -> tuple[int, bytes]:
    """The HTTP status and the body that answer what is no AdmissionReview, or cannot be read as one."""
    return 200, orjson.dumps({"response": errored(code, message)})


def mutate_path(kind: Kind) -> str:
    """Where a kind's mutating webhook is served: `/mutate--v1-pod` for pods (specification: 70 §8.1)."""
    return _path("mutate", kind)


def validate_path(kind: Kind) -> str:
    """Where a kind's validating webhook is served."""
    return _path("validate", kind)


def _path(verb: str, kind: Kind) -> str:
    return f"/{verb}-{kind.group.replace('.', '-')}-{kind.version}-{kind.kind.lower()}"


def _of_another_kind(obj: Obj, kind: Kind) -> str:
    """The sentence for an object that says to be of another kind; empty for one that says nothing."""
    version, name = obj.get("apiVersion"), obj.get("kind")
    if (name and name != kind.kind) or (version and version != kind.api_version):
        return f"expected {kind.api_version} {kind.kind}, not {_cut(version or '')} {_cut(name or '')}"
    return ""


def _cut(value: Any) -> str:
    """What stands for a value in a message: a short text as it is, anything else by its type."""
    if not isinstance(value, str):
        return f"a value of type {type(value).__name__}"
    return value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"


def _deeper_than(value: Any, levels: int) -> bool:
    """Whether objects and lists lie in each other in more than so many levels."""
    row = [value]
    for _ in range(levels + 1):
        nested = (inner.values() if isinstance(inner, dict) else inner for inner in row)
        row = [item for inner in nested for item in inner if isinstance(item, dict | list)]
        if not row:
            return False
    return True


def _envelope(body: Obj, response: Obj) -> Obj:
    return {
        "apiVersion": body.get("apiVersion") or _VERSIONS[0],
        "kind": body.get("kind") or _KIND,
        "response": response,
    }


def _failed(error: Exception, request: Obj, on_panic: Callable[[], Any] | None) -> Obj:
    """The answer when a handler has failed, or has answered what cannot be written: a panic unless the request is."""
    uid = request.get("uid") or ""
    if isinstance(error, RecursionError | orjson.JSONEncodeError) and _deeper_than(request, DEPTH):
        return _complete(errored(400, f"the request is nested in more than {DEPTH} levels"), uid)
    if isinstance(error, HandlerDefect):
        log.error("admission handler failed", uid=uid, error=str(error))
    else:
        log.error("admission handler failed", uid=uid, exc_info=error)
    if on_panic is not None:
        on_panic()
    try:
        text = str(error)
        text.encode()
    except Exception:
        text = type(error).__name__
    return _complete(errored(500, f"panic: {text} [recovered]"), uid)


def _complete(response: Obj, uid: str) -> Obj:
    complete = {**response, "uid": uid, "allowed": bool(response.get("allowed"))}
    status = complete.get("status") or {}
    complete["status"] = status if status.get("code") else {**status, "code": 200}
    patch: Sequence[Obj] | None = complete.pop("patch", None)
    if patch:
        complete |= {"patch": base64.b64encode(orjson.dumps(patch)).decode(), "patchType": "JSONPatch"}
    return complete
