"""Which webhooks of the stored configurations a request goes to. Pure.

Source: Kubernetes documentation, "Dynamic Admission Control" (rules, selectors, matchPolicy).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lwskit.embedded.resources import Resource
from lwskit.runtime.objects import Obj, Selector


@dataclass(frozen=True, slots=True)
class Attributes:
    """What a webhook is told about a request besides the objects."""

    operation: str
    resource: Resource
    subresource: str
    namespace: str
    name: str
    user: str
    dry_run: bool
    options: Obj
    warnings: list[str] = field(default_factory=list)


def matching_version(
    webhook: Mapping[str, Any], attributes: Attributes, versions: Iterable[Resource]
) -> Resource | None:
    """The version of the resource in which this webhook wants to see the request, or None.

    `versions` are all that the resource is served in; only matchPolicy Equivalent looks at others than the request's.
    """
    for rule in webhook.get("rules") or ():
        if _matches(rule, attributes, attributes.resource):
            return attributes.resource
    if webhook.get("matchPolicy", "Equivalent") == "Equivalent":
        for version in versions:
            for rule in webhook.get("rules") or ():
                if _matches(rule, attributes, version):
                    return version
    return None


def _matches(rule: Mapping[str, Any], attributes: Attributes, resource: Resource) -> bool:
    def inside(name: str, value: str) -> bool:
        given = rule.get(name) or ()
        return "*" in given or value in given

    scope = rule.get("scope", "*")
    namespaced = resource.namespaced
    if (scope == "Namespaced" and not namespaced) or (scope == "Cluster" and namespaced):
        return False
    return (
        inside("operations", attributes.operation)
        and inside("apiGroups", resource.group)
        and inside("apiVersions", resource.version)
        and any(_names(text, resource.plural, attributes.subresource) for text in rule.get("resources") or ())
    )


def _names(text: str, plural: str, subresource: str) -> bool:
    wanted, slash, sub = text.partition("/")
    if wanted not in ("*", plural):
        return False
    if not slash:
        return subresource == ""
    return sub in ("*", subresource)


def selected(
    webhook: Mapping[str, Any],
    attributes: Attributes,
    namespace_labels: Mapping[str, str] | None,
    objects: Iterable[Obj | None],
) -> bool:
    """Whether the selectors match: the namespace's labels (None: there is no namespace), and the objects'."""
    selector = webhook.get("namespaceSelector")
    if selector and namespace_labels is not None and not Selector.from_object(selector).matches(namespace_labels):
        return False
    selector = webhook.get("objectSelector")
    if not selector:
        return True
    wanted = Selector.from_object(selector)
    return any(wanted.matches((o.get("metadata") or {}).get("labels") or {}) for o in objects if o)


def review(uid: str, attributes: Attributes, seen: Resource, obj: Obj | None, old: Obj | None) -> dict[str, Any]:
    """The AdmissionReview that a webhook gets (API reference: admission.k8s.io/v1)."""
    asked = attributes.resource
    request: dict[str, Any] = {
        "uid": uid,
        "kind": {"group": seen.group, "version": seen.version, "kind": seen.kind},
        "resource": {"group": seen.group, "version": seen.version, "resource": seen.plural},
    }
    if attributes.subresource:
        request["subResource"] = attributes.subresource
    request["requestKind"] = {"group": asked.group, "version": asked.version, "kind": asked.kind}
    request["requestResource"] = {"group": asked.group, "version": asked.version, "resource": asked.plural}
    if attributes.subresource:
        request["requestSubResource"] = attributes.subresource
    if attributes.name:
        request["name"] = attributes.name
    if attributes.namespace:
        request["namespace"] = attributes.namespace
    request |= {
        "operation": attributes.operation,
        "userInfo": {"username": attributes.user, "groups": ["system:masters", "system:authenticated"]},
        "object": obj,
        "oldObject": old,
        "dryRun": attributes.dry_run,
        "options": attributes.options,
    }
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
