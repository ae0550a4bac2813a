"""A request to the API, taken apart: verb, resource, place, parameters. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import unquote

from lwskit.embedded import negotiation
from lwskit.embedded.failures import (
    FieldError,
    bad_request,
    forbidden_field,
    invalid_options,
    invalid_value,
    method_not_allowed,
    no_such_resource,
    not_found,
    not_supported,
    required,
    too_long,
)
from lwskit.embedded.list_options import go_bool
from lwskit.embedded.resources import Registry, Resource
from lwskit.runtime.client.requests import PatchType
from lwskit.runtime.client.transport import HttpRequest
from lwskit.runtime.errors import UnsupportedMediaType

_PATCH_TYPES = (PatchType.JSON, PatchType.MERGE, PatchType.STRATEGIC, PatchType.APPLY)
_CUSTOM_PATCH_TYPES = (PatchType.JSON, PatchType.MERGE, PatchType.APPLY)
_MANAGER_LIMIT = 128

_BY_PATH = "by its path"
_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
_VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class UnknownPathError(Exception):
    """A path that is not the API's: answered with a plain 404."""


@dataclass(slots=True)
class Call:
    """One request for a resource. `warnings` collects what the answer's Warning headers will say."""

    request: HttpRequest
    user: str
    verb: str
    resource: Resource
    namespace: str
    name: str
    subresource: str
    params: dict[str, str]
    warnings: list[str] = field(default_factory=list)
    untidy: bool = False
    """Whether an apply left empty things in a custom object's metadata, which its stored form has but nobody sees."""

    @property
    def content_type(self) -> str:
        """The media type of the body, without parameters."""
        return self.request.headers.get("content-type", "").partition(";")[0].strip()

    @property
    def dry_run(self) -> bool:
        """Whether nothing is to be stored."""
        return "dryRun" in self.params

    @property
    def manager(self) -> str:
        """Who owns the fields that this request sets: the field manager, or the first part of the user agent."""
        given = self.params.get("fieldManager")
        if given:
            return given
        agent = self.request.headers.get("user-agent", "")
        return agent.partition("/")[0][:128] or "unknown"

    @property
    def validation(self) -> str:
        """How unknown fields are treated: Ignore, Warn or Strict."""
        return self.params.get("fieldValidation") or "Warn"


def read_call(request: HttpRequest, user: str, registry: Registry) -> Call:
    """Take a request apart. Raises UnknownPathError, and the ApiError for a resource or verb that is not served."""
    parts = [p for p in unquote(request.path).split("/") if p]
    if len(parts) >= 2 and parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    elif len(parts) >= 3 and parts[0] == "apis":
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise UnknownPathError
    if not registry.has_group(group):
        raise UnknownPathError
    if not registry.has_group(group, version) or not rest:
        raise no_such_resource()
    params = dict(reversed(request.query))
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = (*rest, "", "", "")[:3]
    if rest[:1] == ["watch"] and len(rest) > 1:
        params["watch"] = _BY_PATH
        plural, name, subresource = (*rest[1:], "", "", "")[:3]
    resource = registry.find(group, version, plural)
    if resource is None and not registry.has_builtin(group):
        raise UnknownPathError
    if resource is None or len(rest) > 3 or (namespace and not resource.namespaced):
        raise no_such_resource()
    verb = _verb(request, resource, name, subresource, params)
    call = Call(request, user, verb, resource, namespace, name, subresource, params)
    _check(call)
    return call


def _verb(request: HttpRequest, resource: Resource, name: str, subresource: str, params: dict[str, str]) -> str:
    if request.method == "HEAD":
        return "get" if name else "list"
    verb = _VERBS.get(request.method)
    if verb is None:
        raise method_not_allowed()
    if not name:
        if verb == "get":
            return "watch" if go_bool(params.get("watch")) else "list"
        if verb == "delete":
            return "deletecollection"
    elif verb == "get" and params.get("watch") == _BY_PATH and not subresource:
        field_selector = params.get("fieldSelector")
        only = f"metadata.name={name}"
        params["fieldSelector"] = f"{field_selector},{only}" if field_selector else only
        return "watch"
    return verb


def _check(call: Call) -> None:
    resource = call.resource
    if call.subresource:
        found = resource.subresources.get(call.subresource)
        if found is None:
            raise not_found(resource, call.name) if resource.custom else no_such_resource()
        if call.verb not in found.verbs:
            raise method_not_allowed()
        _check_options(call)
        return
    if call.verb not in resource.verbs:
        raise method_not_allowed()
    if call.verb == "create" and call.name:
        if resource.custom is None:
            raise method_not_allowed()
        # A real server does not look at the name then.
        call.name = ""
    if call.verb in ("update", "patch") and not call.name:
        raise method_not_allowed()
    if call.verb not in ("list", "watch") and resource.namespaced and not call.namespace:
        if resource.custom is not None:
            raise UnknownPathError
        if call.verb == "create":
            raise bad_request("an empty namespace may not be set during creation")
        if call.verb == "deletecollection":
            raise method_not_allowed()
        raise no_such_resource()
    _check_name(call.name)
    _check_options(call)


def _check_name(name: str) -> None:
    """Raises InvalidRequest for a name that no path of the API has."""
    if name in (".", ".."):
        raise bad_request(f"Name parameter invalid: \"{name}\": may not be '{name}'")
    if "%" in name:
        raise bad_request(f"Name parameter invalid: \"{name}\": may not contain '%'")


def _check_options(call: Call) -> None:
    """Raises UnsupportedMediaType, NotAcceptable and Invalid for what is refused before the body is read."""
    accept, given = (call.request.headers.get(name, "") for name in ("accept", "content-type"))
    if call.verb == "patch":
        _check_patch_type(call)
    if call.resource.custom is None:
        streams = negotiation.STREAMS if call.verb in ("list", "watch") else ()
        negotiation.routed(accept, *negotiation.OBJECTS, *streams)
    negotiation.output(accept)
    if call.verb == "create":
        negotiation.body_type(given)
    _check_parameters(call)
    if call.verb == "update":
        negotiation.body_type(given)


def _check_parameters(call: Call) -> None:
    kind = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}.get(call.verb)
    if kind is None:
        return
    errors: list[FieldError] = []
    if kind == "PatchOptions":
        applies = call.content_type == PatchType.APPLY
        if applies and not call.params.get("fieldManager"):
            errors.append(required("fieldManager", "is required for apply patch"))
        if not applies and call.params.get("force"):
            errors.append(forbidden_field("force", "may not be specified for non-apply patch"))
    errors.extend(_manager_errors(call.params.get("fieldManager", "")))
    dry_run = call.params.get("dryRun")
    if dry_run is not None and dry_run != "All":
        errors.append(not_supported("dryRun", [dry_run], ["All"]))
    if call.params.get("fieldValidation", "") not in _VALIDATIONS:
        errors.append(not_supported("fieldValidation", call.params["fieldValidation"], _VALIDATIONS))
    if errors:
        raise invalid_options(kind, errors)


def _check_patch_type(call: Call) -> None:
    if call.resource.custom is None and call.content_type not in _PATCH_TYPES:
        raise UnsupportedMediaType("415: Unsupported Media Type", details={})
    if call.resource.custom is not None and call.content_type not in _CUSTOM_PATCH_TYPES:
        raise negotiation.unsupported(*_CUSTOM_PATCH_TYPES)


def _manager_errors(name: str) -> list[FieldError]:
    errors = [too_long("fieldManager", _MANAGER_LIMIT)] if len(name.encode()) > _MANAGER_LIMIT else []
    if not name.isprintable():
        errors.append(invalid_value("fieldManager", name, "should only contain printable characters"))
    return errors
