"""The rules of objects, by kind: what a real server refuses with 422. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from lwskit.embedded import crds, validate_apps, validate_core, validate_meta, validate_pod, validate_service
from lwskit.embedded.failures import FieldError, forbidden_field, invalid_value
from lwskit.embedded.resources import Resource
from lwskit.embedded.schema_errors import embedded_errors
from lwskit.embedded.strategic import GO_TYPES, go_text
from lwskit.runtime.objects import Obj, annotations_of

Rules = Callable[[Obj, Obj | None], Iterable[FieldError]]


def _pod(new: Obj, old: Obj | None) -> Iterable[FieldError]:
    if old is None or not [*validate_pod.known_annotations(annotations_of(old), "")]:
        yield from validate_pod.known_annotations(annotations_of(new), "metadata.annotations")
    yield from validate_pod.spec(new["spec"], "spec")
    if old is not None:
        yield from validate_pod.update(new, old)
        return
    if new["spec"].get("ephemeralContainers"):
        yield forbidden_field("spec.ephemeralContainers", "cannot be set on create")
    if new["spec"].get("nodeName") and new["spec"].get("schedulingGates"):
        yield forbidden_field("spec.nodeName", "cannot be set until all schedulingGates have been cleared")


def _workload(new: Obj, old: Obj | None) -> Iterable[FieldError]:
    yield from validate_apps.create(new)
    if old is not None:
        yield from validate_apps.update(new, old)


def _service(new: Obj, old: Obj | None) -> Iterable[FieldError]:
    if old is not None:
        yield from validate_service.update(new, old)
    yield from validate_service.create(new, old)


def _template(new: Obj, old: Obj | None) -> Iterable[FieldError]:
    return validate_pod.template(new.get("template") or {}, "template")


_STATUS_RULES: dict[str, Rules] = {
    "/services": lambda new, old: validate_service.status(new),
    "/pods": validate_pod.status,
    "apps/statefulsets": lambda new, old: validate_apps.stateful_status(new, old),
    "apps/deployments": lambda new, old: validate_apps.deployment_status(new, old),
    "apps/replicasets": lambda new, old: validate_apps.replica_set_status(new),
}
_RULES: dict[str, Rules] = {
    "/pods": _pod,
    "/podtemplates": _template,
    "/services": _service,
    "/configmaps": validate_core.data,
    "/secrets": validate_core.data,
    "/events": lambda new, old: validate_core.event(new) if old is None else (),
    "apps/statefulsets": _workload,
    "apps/deployments": _workload,
    "apps/replicasets": _workload,
    "apps/daemonsets": _workload,
    "apps/controllerrevisions": validate_apps.revision,
    "coordination.k8s.io/leases": lambda new, old: validate_core.lease(new),
    "apiextensions.k8s.io/customresourcedefinitions": lambda new, old: crds.validate(new),
    "admissionregistration.k8s.io/mutatingwebhookconfigurations": lambda new, old: validate_core.webhooks(new),
    "admissionregistration.k8s.io/validatingwebhookconfigurations": lambda new, old: validate_core.webhooks(new),
}


def create(resource: Resource, obj: Obj, warn: Callable[[str], None]) -> list[FieldError]:
    """The broken rules of a new object."""
    if resource.custom is not None:
        errors = _type(resource, obj) or [*validate_meta.create(resource, obj), *_custom(resource, obj, "")]
        return [*errors, *_expressions(resource, obj, None, errors, warn)]
    errors = validate_meta.create(resource, obj)
    rules = _RULES.get(resource.storage)
    return [*errors, *rules(obj, None)] if rules else errors


def update(
    resource: Resource,
    new: Obj,
    old: Obj,
    subresource: str,
    warn: Callable[[str], None],
    given: Mapping[str, Any] | None = None,
) -> list[FieldError]:
    """The broken rules of a changed object; `given` is the metadata that the client sent.

    `warn` is told of broken rules that are forgiven, since what breaks them did not change.
    """
    whole = validate_meta.common(new)
    changed = validate_meta.update(resource, new, old, given or {})
    if resource.custom is not None:
        # Changes of metadata are looked at twice, and what is wrong with them is told each time.
        errors = _type(resource, new) or [*changed, *_custom(resource, new, subresource)]
        return [*whole, *changed, *errors, *_expressions(resource, new, old, errors, warn)]
    errors = list(dict.fromkeys([*whole, *changed, *validate_meta.finalizers(new)]))
    table = _STATUS_RULES if subresource == "status" else _RULES if subresource in ("", "scale") else {}
    rules = table.get(resource.storage)
    return [*errors, *rules(new, old)] if rules else errors


def _expressions(
    resource: Resource, new: Obj, old: Obj | None, before: list[FieldError], warn: Callable[[str], None]
) -> list[FieldError]:
    """The broken validation rules of a custom object (expressions in its definition)."""
    custom = resource.custom
    if custom is None or custom.rules is None:
        return []
    return custom.rules.errors(new, old, before, warn)


def _type(resource: Resource, obj: Obj) -> list[FieldError]:
    """What is wrong with the kind of a custom object; nothing else is looked at then."""
    wanted = {"kind": resource.kind, "apiVersion": resource.api_version}
    return [invalid_value(n, obj[n], f"must be {text}") for n, text in wanted.items() if obj[n] != text]


def _custom(resource: Resource, obj: Obj, subresource: str) -> list[FieldError]:
    custom = resource.custom
    assert custom is not None
    errors = custom.validator.errors(obj)
    if subresource == "status":
        # The status is looked at alone there, and its fields are named from it on.
        errors = [_within_status(e) for e in errors if e.field.startswith("status")]
    else:
        errors.extend(embedded_errors(obj, custom.schema))
    if custom.scale is not None:
        paths = (
            [custom.scale.status_replicas]
            if subresource == "status"
            else [
                custom.scale.spec_replicas,
                custom.scale.status_replicas,
            ]
        )
        for path in paths:
            errors.extend(_replicas(obj, path))
        if custom.scale.label_selector:
            errors.extend(_inaccessible(_reached(obj, custom.scale.label_selector), "", str))
    return errors


def _within_status(error: FieldError) -> FieldError:
    short = error.field.removeprefix("status").removeprefix(".")
    return replace(error, message=error.message.replace(f": {error.field} in body", f": {short} in body"))


def _replicas(obj: Obj, path: str) -> Iterable[FieldError]:
    """The broken rules of a number of replicas that a custom resource keeps at `path`."""
    found = _reached(obj, path)
    errors = list(_inaccessible(found, 0, int))
    yield from errors
    if found is None or errors:
        return
    value = found[1]
    if value < 0:
        yield invalid_value(f".{path}", value, "should be a non-negative integer")
    elif value > 2**31 - 1:
        yield invalid_value(f".{path}", value, f"should be less than or equal to {2**31 - 1}")


def _reached(obj: Obj, path: str) -> tuple[str, Any, bool] | None:
    """The path, the value at its end or that in which it breaks off, and whether it is the end; None for nothing."""
    value: Any = obj
    for name in path.split("."):
        if value is None:
            return None
        if not isinstance(value, dict):
            return path, value, False
        if name not in value:
            return None
        value = value[name]
    return path, value, True


def _inaccessible(found: tuple[str, Any, bool] | None, empty: Any, wanted: type) -> Iterable[FieldError]:
    """The error of a value that cannot be read as `wanted`, or in which what was looked for cannot be."""
    if found is None:
        return
    path, value, end = found
    if end and type(value) is wanted:
        return
    kind = GO_TYPES.get(type(value), "<nil>" if end else "nil")
    named = ("int64" if wanted is int else "string") if end else "map[string]interface{}"
    text = f".{path} accessor error: {go_text(value)} is of the type {kind}, expected {named}"
    yield invalid_value(f".{path}", empty, text)
