"""DeleteOptions: from the body of a deletion, or from its query.

Source: API reference, DeleteOptions; answers of kube-apiserver.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from lwskit.embedded import negotiation
from lwskit.embedded.codec import GO_HEADER, Codec, json_kind, parse_error, read_yaml
from lwskit.embedded.failures import FieldError, bad_request, invalid_options, invalid_value, not_supported
from lwskit.embedded.list_options import go_bool, go_integer
from lwskit.runtime.typed import DecodeError

_TYPE = "meta.v1.DeleteOptions"
_POLICIES = ("Foreground", "Background", "Orphan")
_SCHEME = "pkg/runtime/scheme.go:111"
_NAMED = {"propagationPolicy": "v1.DeletionPropagation", "uid": "types.UID"}
"""How a real server calls the types of fields that are texts for everybody else."""


@dataclass(frozen=True, slots=True)
class Options:
    """DeleteOptions as far as the server acts on them; `grace` in seconds."""

    grace: int | None = None
    policy: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    dry_run: bool = False
    cascading: bool = False
    """Whether the client asked for dependents to go too in the oldest way, `orphanDependents: false`."""
    extra: Mapping[str, Any] = field(default_factory=dict)


def from_request(codec: Codec, body: bytes | None, content_type: str, params: Mapping[str, str]) -> Options:
    """From the body of a DELETE, or from its query if there is no body.

    Raises InvalidRequest, Invalid and UnsupportedMediaType.
    """
    if not body:
        return _checked(_from_query(params))
    if negotiation.body_type(content_type) == negotiation.YAML:
        document = read_yaml(body)
    else:
        try:
            document = orjson.loads(body)
        except orjson.JSONDecodeError as e:
            raise bad_request(f"couldn't get version/kind; json parse error: {parse_error(body, e)}") from e
    return from_document(codec, document)


def from_document(codec: Codec, document: Any) -> Options:
    """From a DeleteOptions object as a client wrote it. Raises InvalidRequest and Invalid."""
    if document is None:
        document = {}
    if not isinstance(document, dict):
        text = f"json: cannot unmarshal {json_kind(document)} into Go value of type {GO_HEADER}"
        raise bad_request(f"couldn't get version/kind; json parse error: {text}")
    for name in ("apiVersion", "kind"):
        if not isinstance(document.get(name), str | None):
            kind = json_kind(document[name])
            text = f"json: cannot unmarshal {kind} into Go struct field .{name} of type string"
            raise bad_request(f"couldn't get version/kind; json parse error: {text}")
    version, kind = document.get("apiVersion") or "meta.k8s.io/v1", document.get("kind")
    if kind not in (None, "", "DeleteOptions"):
        raise bad_request(f'no kind "{kind}" is registered for version "{version}" in scheme "{_SCHEME}"')
    try:
        codec.types.encode(_TYPE, document)
    except DecodeError as e:
        text, _ = codec.go_texts(_TYPE, _TYPE, e, document)
        last = e.path.rpartition(".")[2]
        if last in _NAMED:
            text = text.removesuffix(" of type string") + f" of type {_NAMED[last]}"
        raise bad_request(text) from e
    return _checked(document)


def _from_query(params: Mapping[str, str]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if "gracePeriodSeconds" in params:
        given["gracePeriodSeconds"] = go_integer(params["gracePeriodSeconds"])
    if "orphanDependents" in params:
        given["orphanDependents"] = go_bool(params["orphanDependents"])
    if "propagationPolicy" in params:
        given["propagationPolicy"] = params["propagationPolicy"]
    if "dryRun" in params:
        given["dryRun"] = [params["dryRun"]]
    return given


def _checked(given: Mapping[str, Any]) -> Options:
    errors: list[FieldError] = []
    policy, orphan = given.get("propagationPolicy"), given.get("orphanDependents")
    if policy is not None and orphan is not None:
        text = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(invalid_value("propagationPolicy", policy, text))
    if policy is not None and policy not in _POLICIES:
        errors.append(not_supported("propagationPolicy", policy, [*_POLICIES, "nil"]))
    dry_run = given.get("dryRun") or []
    errors.extend(not_supported("dryRun", dry_run, ["All"]) for value in dry_run if value != "All")
    if errors:
        raise invalid_options("DeleteOptions", errors)
    if orphan is not None and policy is None:
        policy = "Orphan" if orphan else "Background"
    preconditions = given.get("preconditions") or {}
    grace = given.get("gracePeriodSeconds")
    return Options(
        grace=1 if grace is not None and grace < 0 else grace,
        policy=policy,
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
        dry_run=bool(dry_run),
        cascading=orphan is False,
    )
