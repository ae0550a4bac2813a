"""Custom resources: from a CustomResourceDefinition to what is served. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from lwskit.embedded.failures import FieldError, invalid_value, not_supported, required
from lwskit.embedded.resources import Resource, Subresource
from lwskit.embedded.schema import RULES, Schema, has_rules
from lwskit.embedded.schema_errors import SchemaValidator
from lwskit.runtime.objects import Obj

if TYPE_CHECKING:
    from lwskit.embedded.rules import Rules

_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_SUB_VERBS = ("get", "patch", "update")


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where a custom resource keeps what its scale subresource shows; paths without the leading dot."""

    spec_replicas: str
    status_replicas: str
    label_selector: str = ""


@dataclass(frozen=True)
class CustomVersion:
    """The schema side of one version of a custom resource."""

    schema: Schema
    validator: SchemaValidator
    preserve: bool = False
    scale: ScalePaths | None = None
    columns: tuple[Mapping[str, Any], ...] = ()
    selectable_fields: frozenset[str] = frozenset()
    storage_version: str = ""
    rules: Rules | None = None


def complete(crd: Obj) -> None:
    """Set, in place, the names and the conversion that a CRD may leave out (API reference: CRD names)."""
    spec = crd["spec"]
    names = spec["names"]
    if names.get("kind"):
        if not names.get("singular"):
            names["singular"] = names["kind"].lower()
        if not names.get("listKind"):
            names["listKind"] = f"{names['kind']}List"
    spec.setdefault("conversion", {"strategy": "None"})


def validate(crd: Obj) -> list[FieldError]:
    """The broken rules of a CRD, as far as they make it unusable."""
    errors: list[FieldError] = []
    spec = crd["spec"]
    names = spec["names"]
    expected = f"{names.get('plural', '')}.{spec.get('group', '')}"
    if crd["metadata"].get("name") != expected:
        text = 'must be spec.names.plural+"."+spec.group'
        errors.append(invalid_value("metadata.name", crd["metadata"].get("name", ""), text))
    if not spec.get("group"):
        errors.append(required("spec.group"))
    for field in ("plural", "singular", "kind", "listKind"):
        if not names.get(field):
            errors.append(required(f"spec.names.{field}"))
    if spec.get("scope") not in ("Cluster", "Namespaced"):
        errors.append(not_supported("spec.scope", spec.get("scope", ""), ("Cluster", "Namespaced")))
    versions = spec.get("versions") or []
    if sum(1 for v in versions if v.get("storage")) != 1:
        shown = [v.get("name") for v in versions]
        text = "must have exactly one version marked as storage version"
        errors.append(invalid_value("spec.versions", shown, text))
    schemas = [(version.get("schema") or {}).get("openAPIV3Schema") for version in versions]
    # A schema that all versions share is taken for one of the whole definition, and named once.
    shared = bool(schemas) and all(s == schemas[0] for s in schemas)
    for i, schema in enumerate(schemas[:1] if shared else schemas):
        where = "spec.validation.openAPIV3Schema" if shared else f"spec.versions[{i}].schema.openAPIV3Schema"
        if schema is None:
            errors.append(required(f"spec.versions[{i}].schema.openAPIV3Schema"))
        elif not schema.get("type"):
            errors.append(required(f"{where}.type", "must not be empty at the root"))
        elif schema["type"] != "object":
            errors.append(invalid_value(f"{where}.type", schema["type"], "must be object at the root"))
        elif RULES.encode() in orjson.dumps(schema):
            # What rules are written in is read only where there are some.
            from lwskit.embedded import rule_checks

            errors.extend(rule_checks.errors(schema, where))
    return errors


def _rules(schema: Schema) -> Rules | None:
    if not has_rules(schema):
        return None
    from lwskit.embedded import rules

    return rules.compiled(orjson.dumps(schema))


def status(crd: Obj, now: str) -> dict[str, Any]:
    """The status of a CRD whose names are accepted and which is served."""
    old = crd.get("status") or {}
    names = {k: v for k, v in crd["spec"]["names"].items() if v}
    storage = next(v["name"] for v in crd["spec"]["versions"] if v.get("storage"))
    stored = list(old.get("storedVersions") or ())
    if storage not in stored:
        stored.append(storage)
    conditions = old.get("conditions") or [
        _condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
        _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", now),
    ]
    return {"conditions": conditions, "acceptedNames": names, "storedVersions": stored}


def _condition(kind: str, reason: str, message: str, now: str) -> dict[str, str]:
    return {"type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}


def resources(crd: Obj) -> list[Resource]:
    """What a CRD makes the server serve: one resource per served version, the storage version's table for all."""
    spec = crd["spec"]
    names = spec["names"]
    storage_version = next(v["name"] for v in spec["versions"] if v.get("storage"))
    found = []
    for version in spec["versions"]:
        if not version.get("served"):
            continue
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        declared = version.get("subresources") or {}
        subresources: dict[str, Subresource] = {}
        if "status" in declared:
            subresources["status"] = Subresource("status", names["kind"], verbs=_SUB_VERBS)
        scale = declared.get("scale")
        if scale:
            subresources["scale"] = Subresource("scale", "Scale", "autoscaling", "v1", _SUB_VERBS)
        custom = CustomVersion(
            schema=schema,
            validator=SchemaValidator(schema),
            preserve=bool(spec.get("preserveUnknownFields")),
            scale=_scale_paths(scale) if scale else None,
            columns=tuple(version.get("additionalPrinterColumns") or ()),
            selectable_fields=frozenset(f["jsonPath"].removeprefix(".") for f in version.get("selectableFields") or ()),
            storage_version=storage_version,
            rules=_rules(schema),
        )
        found.append(
            Resource(
                group=spec["group"],
                version=version["name"],
                kind=names["kind"],
                plural=names["plural"],
                singular=names.get("singular", ""),
                namespaced=spec["scope"] == "Namespaced",
                verbs=_VERBS,
                short_names=tuple(names.get("shortNames") or ()),
                categories=tuple(names.get("categories") or ()),
                subresources=subresources,
                list_kind=names.get("listKind", ""),
                generation=True,
                unconditional_update=False,
                storage=f"{spec['group']}/{names['plural']}",
                custom=custom,
            )
        )
    return found


def _scale_paths(scale: Mapping[str, str]) -> ScalePaths:
    return ScalePaths(
        scale["specReplicasPath"].removeprefix("."),
        scale["statusReplicasPath"].removeprefix("."),
        (scale.get("labelSelectorPath") or "").removeprefix("."),
    )
