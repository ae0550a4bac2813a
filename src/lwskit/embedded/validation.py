"""The rules of objects, by kind: what a real server refuses with 422. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lwskit.embedded import crds, validate_apps, validate_core, validate_meta, validate_pod, validate_service
from lwskit.embedded.failures import FieldError, invalid_value
from lwskit.embedded.resources import Resource
from lwskit.runtime.objects import Obj

Rules = Callable[[Obj, Obj | None], Iterable[FieldError]]


def _pod(new: Obj, old: Obj | None) -> Iterable[FieldError]:
    if old is None:
        return validate_pod.spec(new["spec"], "spec")
    return validate_pod.update(new, old)


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


def create(resource: Resource, obj: Obj) -> list[FieldError]:
    """The broken rules of a new object."""
    errors = validate_meta.create(resource, obj)
    if resource.custom is not None:
        return [*errors, *_custom(resource, obj)]
    rules = _RULES.get(resource.storage)
    return [*errors, *rules(obj, None)] if rules else errors


def update(
    resource: Resource, new: Obj, old: Obj, subresource: str, given: Mapping[str, Any] | None = None
) -> list[FieldError]:
    """The broken rules of a changed object; `given` is the metadata that the client sent."""
    errors = validate_meta.update(resource, new, old, given or {})
    if resource.custom is not None:
        return [*errors, *_custom(resource, new)]
    if subresource == "status":
        if resource.storage == "apps/statefulsets":
            errors.extend(validate_apps.stateful_status(new.get("status") or {}))
        elif resource.storage == "/services":
            errors.extend(validate_service.status(new))
        return errors
    rules = _RULES.get(resource.storage) if subresource in ("", "scale") else None
    return [*errors, *rules(new, old)] if rules else errors


def _custom(resource: Resource, obj: Obj) -> list[FieldError]:
    assert resource.custom is not None
    errors = [] if obj["kind"] == resource.kind else [invalid_value("kind", obj["kind"], f"must be {resource.kind}")]
    return [*errors, *resource.custom.validator.errors(obj)]


def warnings(resource: Resource, new: Obj, subresource: str) -> Iterable[str]:
    """What a client is told of an object that is accepted."""
    if resource.custom is None and subresource == "" and resource.storage == "/services":
        return validate_service.warnings(new)
    return ()
