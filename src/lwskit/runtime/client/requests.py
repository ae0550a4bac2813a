"""Requests to an API server as pure functions, and reading its answers (specification: 70 §6)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import orjson

from lwskit.runtime.client.transport import HttpRequest, HttpResponse
from lwskit.runtime.errors import ApiError, InvalidRequest, error_from_status, seconds
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Obj

JSON = "application/json"


class PatchType(StrEnum):
    """The kinds of patch, named by their content type (specification: 70 §6.2)."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


_NOT_PLAIN_IN_YAML = re.compile("[\x7f-\x9f\ufeff\ufffe\uffff]")
_ESCAPED = tuple((char.encode(), f"\\u{ord(char):04x}".encode()) for char in "<>&\u2028\u2029")


def encode(value: Any) -> bytes:
    """A body as API servers spell JSON themselves: keys sorted, `<`, `>`, `&` and the line separators escaped.

    They compare raw fields (the data of a ControllerRevision) byte by byte after a patch of anything else in the
    object, so one that was created in another spelling could never be patched again. Raises InvalidRequest for what
    JSON has no form for.
    """
    try:
        body = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError as e:
        raise InvalidRequest(f"the body of a request cannot be written as JSON: {e}") from e
    for char, escaped in _ESCAPED:
        # These characters stand nowhere in JSON but in strings.
        body = body.replace(char, escaped)
    return body


def _plain_in_yaml(document: bytes) -> bytes:
    """A JSON document that a YAML parser reads as the same text, since servers read the bodies of applies as YAML.

    Characters that would break lines there or are not allowed are escaped. Source: YAML 1.2, chapter 5.
    """
    if document.isascii() and b"\x7f" not in document:
        return document
    return _NOT_PLAIN_IN_YAML.sub(lambda m: f"\\u{ord(m[0]):04x}", document.decode()).encode()


def query(**values: Any) -> tuple[tuple[str, str], ...]:
    """Query parameters without those that are None or False; True becomes `true`."""
    return tuple(
        (name, "true" if value is True else str(value)) for name, value in values.items() if value not in (None, False)
    )


def _write_query(
    dry_run: bool, field_manager: str | None, field_validation: str | None, **more: Any
) -> tuple[tuple[str, str], ...]:
    dry = "All" if dry_run else None
    return query(dryRun=dry, fieldManager=field_manager, fieldValidation=field_validation, **more)


def _check(kind: Kind) -> None:
    if not isinstance(kind, Kind):
        raise InvalidRequest(f"a kind is given as a Kind, such as those in lwskit.runtime.kinds, not as {kind!r}")


def _all(kind: Kind, namespace: str | None) -> str:
    """The path of a collection."""
    _check(kind)
    return kind.path(namespace)


def metadata(kind: Kind, obj: Mapping[str, Any]) -> Mapping[str, Any]:
    """The metadata of an object to be written. Raises InvalidRequest without any."""
    _check(kind)
    meta = obj.get("metadata") if isinstance(obj, Mapping) else None
    if not isinstance(meta, Mapping):
        what = "it has no metadata" if isinstance(obj, Mapping) else f"{type(obj).__name__} is no object"
        raise InvalidRequest(f"a {kind.kind} to be written needs metadata with its name; {what}")
    return meta


def _at(kind: Kind, namespace: str | None, name: str | None, subresource: str | None = None) -> str:
    """The path of one object. Raises InvalidRequest without a name, which would be the path of all of them."""
    _check(kind)
    if name is None or name == "":
        raise InvalidRequest(f"this request is for one {kind.kind}, so it needs a name; it got {name!r}")
    if kind.namespaced and not namespace:
        raise InvalidRequest(f"the {kind.kind} {name!r} is in a namespace, which must be given")
    return kind.path(namespace, name, subresource)


def get(kind: Kind, namespace: str | None, name: str, subresource: str | None = None) -> HttpRequest:
    """Read one object or its subresource."""
    return HttpRequest("GET", _at(kind, namespace, name, subresource), headers={"accept": JSON})


def list_(kind: Kind, namespace: str | None, **params: Any) -> HttpRequest:
    """Read a collection; `params` are the API's own query names (labelSelector, fieldSelector, limit, continue…)."""
    return HttpRequest("GET", _all(kind, namespace), query(**params), {"accept": JSON})


def watch(kind: Kind, namespace: str | None, **params: Any) -> HttpRequest:
    """Follow a collection from `resourceVersion` on."""
    return HttpRequest("GET", _all(kind, namespace), query(watch=True, **params), {"accept": JSON})


def create(
    kind: Kind,
    obj: Obj,
    *,
    subresource: str | None = None,
    dry_run: bool = False,
    field_manager: str | None = None,
    field_validation: str | None = None,
) -> HttpRequest:
    """Create an object in its own namespace; with `subresource`, create that of an object (eviction, token…)."""
    meta = metadata(kind, obj)
    if subresource:
        path = _at(kind, meta.get("namespace"), meta.get("name"), subresource)
    else:
        path = kind.path(meta.get("namespace"))
    params = _write_query(dry_run, field_manager, field_validation)
    return HttpRequest("POST", path, params, _headers(JSON), encode(obj))


def update(
    kind: Kind,
    obj: Obj,
    *,
    subresource: str | None = None,
    dry_run: bool = False,
    field_manager: str | None = None,
    field_validation: str | None = None,
) -> HttpRequest:
    """Replace an object or its subresource."""
    meta = metadata(kind, obj)
    path = _at(kind, meta.get("namespace"), meta.get("name"), subresource)
    params = _write_query(dry_run, field_manager, field_validation)
    return HttpRequest("PUT", path, params, _headers(JSON), encode(obj))


def patch(
    kind: Kind,
    namespace: str | None,
    name: str,
    body: Any,
    patch_type: PatchType,
    *,
    subresource: str | None = None,
    dry_run: bool = False,
    field_manager: str | None = None,
    field_validation: str | None = None,
    force: bool | None = None,
) -> HttpRequest:
    """Patch an object or its subresource. Raises InvalidRequest for an apply without field manager.

    The type of the patch may be given as its content type, too.
    """
    patch_type = _patch_type(patch_type)
    if patch_type is PatchType.APPLY and not field_manager:
        raise InvalidRequest("a server-side apply needs a field manager")
    params = _write_query(dry_run, field_manager, field_validation, force=force)
    encoded = _plain_in_yaml(encode(body)) if patch_type is PatchType.APPLY else encode(body)
    return HttpRequest("PATCH", _at(kind, namespace, name, subresource), params, _headers(patch_type.value), encoded)


def _patch_type(given: str) -> PatchType:
    try:
        return PatchType(given)
    except ValueError as e:
        known = ", ".join(PatchType)
        raise InvalidRequest(f"there is no type of patch {given!r}; there are: {known}") from e


def typed(kind: Kind, obj: Obj, subresource: str | None = None) -> Obj:
    """An object with its apiVersion and kind, which custom resources must carry; other subresources have their own.

    Raises InvalidRequest for what is no object with metadata.
    """
    metadata(kind, obj)
    if (obj.get("apiVersion") and obj.get("kind")) or subresource not in (None, "", "status"):
        return obj
    return {"apiVersion": kind.api_version, "kind": kind.kind, **obj}


def to_apply(kind: Kind, obj: Mapping[str, Any]) -> Obj:
    """An intent with the type that its apply must carry (specification: 70 §6.2).

    Raises InvalidRequest for what no server takes: an object without a name, or with managedFields.
    """
    meta = metadata(kind, obj)
    if not meta.get("name"):
        raise InvalidRequest(f"a {kind.kind} to be applied needs metadata.name")
    if meta.get("managedFields"):
        raise InvalidRequest(
            f"the {kind.kind} {meta['name']} to be applied must not have metadata.managedFields; give only what you set"
        )
    return {"apiVersion": kind.api_version, "kind": kind.kind, **obj}


def delete(
    kind: Kind,
    namespace: str | None,
    name: str,
    *,
    propagation: str | None = None,
    uid: str | None = None,
    resource_version: str | None = None,
    grace_seconds: int | None = None,
    dry_run: bool = False,
) -> HttpRequest:
    """Delete one object, on preconditions of UID and resourceVersion where given."""
    return HttpRequest(
        "DELETE",
        _at(kind, namespace, name),
        (),
        _headers(JSON),
        encode(_delete_options(propagation, uid, resource_version, grace_seconds, dry_run)),
    )


def delete_collection(
    kind: Kind,
    namespace: str | None,
    *,
    propagation: str | None = None,
    grace_seconds: int | None = None,
    dry_run: bool = False,
    **params: Any,
) -> HttpRequest:
    """Delete everything that the selectors in `params` match."""
    body = encode(_delete_options(propagation, None, None, grace_seconds, dry_run))
    return HttpRequest("DELETE", _all(kind, namespace), query(**params), _headers(JSON), body)


def _delete_options(
    propagation: str | None, uid: str | None, version: str | None, grace: int | None, dry_run: bool
) -> Obj:
    options: Obj = {"kind": "DeleteOptions", "apiVersion": "v1"}
    if propagation:
        options["propagationPolicy"] = propagation
    preconditions = {k: v for k, v in (("uid", uid), ("resourceVersion", version)) if v}
    if preconditions:
        options["preconditions"] = preconditions
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    if dry_run:
        options["dryRun"] = ["All"]
    return options


def _headers(content_type: str) -> Mapping[str, str]:
    return {"accept": JSON, "content-type": content_type}


_CUSTOM = re.compile(r"/apis/([^/]+)/[^/]+/(?:namespaces/[^/]+/(?=[^/]))?([^/]+)")
_WARNING = re.compile(r'\d{3} \S+ "((?:[^"\\]|\\.)*)"')


def warnings(headers: Mapping[str, str]) -> list[str]:
    """The texts of an answer's Warning headers, several of which may be joined by commas (RFC 7234, 5.5)."""
    return [re.sub(r"\\(.)", r"\1", match[1]) for match in _WARNING.finditer(headers.get("warning", ""))]


def read(response: HttpResponse, request: HttpRequest | None = None) -> Obj:
    """The object in a successful answer: 2xx with a JSON object that is not a Status of failure.

    Raises the ApiError that any other answer stands for; its text names `request`.
    """
    if not is_success(response.status):
        raise read_error(response, request)
    try:
        body = orjson.loads(response.body)
    except orjson.JSONDecodeError as e:
        shown = repr(response.body[:80]) if response.body else "nothing"
        raise ApiError(f"the server's answer{_to(request)} is not JSON, but {shown}", code=502) from e
    if not isinstance(body, dict):
        raise ApiError(f"the server's answer{_to(request)} is not a JSON object, but {response.body[:80]!r}", code=502)
    if body.get("status") == "Failure" and body.get("kind") == "Status":
        raise error_from_status(body)
    return body


def read_list(answer: Obj, kind: Kind) -> Obj:
    """The answer to a list, if it is one. Raises ApiError."""
    if isinstance(answer.get("metadata"), dict) and isinstance(answer.get("items") or [], list):
        return answer
    raise ApiError(f"the server's answer to a list of {kind.plural} has no metadata or no items", code=502)


def is_success(status: int) -> bool:
    """Whether an HTTP status is that of an answer to be read: 2xx only, as API servers send nobody elsewhere."""
    return 200 <= status < 300


def read_error(response: HttpResponse, request: HttpRequest | None = None) -> ApiError:
    """The error that a failed answer stands for, whatever its body is; `request` is what it answers."""
    retry_after = response.headers.get("retry-after", "").strip()
    wait = seconds(retry_after) if retry_after.isdecimal() else None
    try:
        body = orjson.loads(response.body)
    except orjson.JSONDecodeError:
        body = None
    if not isinstance(body, dict) or body.get("kind") != "Status":
        text = response.body[:300].decode(errors="replace").strip() or "no text"
        body = {"message": f"the server answered {response.status}{_to(request)}: {text}{_hint(response, request)}"}
    return error_from_status(body, response.status, wait)


def _to(request: HttpRequest | None) -> str:
    return f" to {request.method} {request.path}" if request else ""


def _hint(response: HttpResponse, request: HttpRequest | None) -> str:
    """What an answer without a Status may mean."""
    if 300 <= response.status < 400:
        elsewhere = response.headers.get("location")
        return "; an API server sends nobody elsewhere" + (f", as this one does, to {elsewhere}" if elsewhere else "")
    match = _CUSTOM.match(request.path) if request and response.status == 404 else None
    if match is None:
        return ""
    return f"; if {match[2]}.{match[1]} are custom resources, their CustomResourceDefinition may not be installed"
