"""OpenAPI schemas of built-in types, from the table of types, and of custom resources, from their CRDs. Pure.

Field names, types, list types and patch strategies are there; of built-in types only metadata has descriptions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lwskit.embedded.resources import Resource
from lwskit.runtime.typed import Field, TypeRef, TypeTable

Schema = dict[str, Any]

_META = "io.k8s.apimachinery.pkg.apis.meta."
_PREFIXES = {
    "meta": _META,
    "apiextensions": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.",
}
_SCALARS: dict[str, Schema] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "float64": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
    "duration": {"type": "string"},
    "any": {"type": "object"},
}
_NAMED: dict[str, tuple[str, Schema]] = {
    "quantity": ("io.k8s.apimachinery.pkg.api.resource.Quantity", {"oneOf": [{"type": "string"}, {"type": "number"}]}),
    "intorstring": (
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    ),
    "time": (f"{_META}v1.Time", {"type": "string", "format": "date-time"}),
    "microtime": (f"{_META}v1.MicroTime", {"type": "string", "format": "date-time"}),
}
_FIELDS = f"{_META}v1.FieldsV1"
_DESCRIBED = {
    "meta.v1.ObjectMeta": {
        "annotations": "Texts by name for programs and people, not for selecting; 256 KiB altogether at most.",
        "creationTimestamp": "When the object was created; the server sets it.",
        "deletionGracePeriodSeconds": "How long the object has to end, from its deletion; the server sets it.",
        "deletionTimestamp": "When the object is to be gone at the latest, if it is being deleted; the server sets it.",
        "finalizers": "What has to be done before the object goes; whoever did it takes its entry away.",
        "generateName": "What the name begins with if there is none; the server adds five characters.",
        "generation": "Counts the changes of what is wanted; the server sets it.",
        "labels": "Short texts by name, by which objects are selected.",
        "managedFields": "Which program owns which fields; the server keeps it.",
        "name": "The name, which no other object of the kind has in the namespace; it cannot be changed.",
        "namespace": "The namespace that the object is in; it cannot be changed.",
        "ownerReferences": "The objects that this one belongs to; when they are gone it goes, too.",
        "resourceVersion": "Changes with every write; a change with another one than the current is refused.",
        "selfLink": "No longer used.",
        "uid": "Tells the object from all others, also from those of the same name; the server sets it.",
    },
    "meta.v1.ManagedFieldsEntry": {
        "apiVersion": "The version in which the fields are named.",
        "fieldsType": "The form of the list of fields: FieldsV1.",
        "fieldsV1": "The fields that the manager owns.",
        "manager": "The program.",
        "operation": "How the fields came to the manager: Apply or Update.",
        "subresource": "The subresource through which they did.",
        "time": "When this entry changed last.",
    },
    "meta.v1.OwnerReference": {
        "apiVersion": "The group and version of the owner.",
        "blockOwnerDeletion": "Whether a foreground deletion of the owner waits for this object.",
        "controller": "Whether the owner is the one that manages this object.",
        "kind": "The kind of the owner.",
        "name": "The name of the owner.",
        "uid": "The UID of the owner.",
    },
}


def schema_name(type_name: str) -> str:
    """The name of a built-in type in OpenAPI documents."""
    group, rest = type_name.split(".", 1)
    return _PREFIXES.get(group, f"io.k8s.api.{group}.") + rest


def custom_name(resource: Resource) -> str:
    """The name of a custom resource's schema: its group backwards, the version and the kind."""
    return ".".join([*reversed(resource.group.split(".")), resource.version, resource.kind])


class Schemas:
    """Collects the schemas of one document; a type that is asked for brings what it refers to."""

    def __init__(self, types: TypeTable) -> None:
        self._types = types
        self.components: dict[str, Schema] = {}

    def builtin(self, type_name: str) -> str:
        """Add a struct of the table; returns its name in the document."""
        name = schema_name(type_name)
        if name in self.components:
            return name
        schema: Schema = {"type": "object"}
        self.components[name] = schema
        fields = self._types.fields(type_name)
        schema["properties"] = {f.name: self._field(f) for f in fields.values()}
        for one, text in _DESCRIBED.get(type_name, {}).items():
            schema["properties"][one]["description"] = text
        if type_name == "meta.v1.ManagedFieldsEntry":
            self.components.setdefault(_FIELDS, {"type": "object"})
            schema["properties"]["fieldsV1"]["allOf"] = [{"$ref": f"#/components/schemas/{_FIELDS}"}]
            del schema["properties"]["fieldsV1"]["type"]
        needed = sorted(f.name for f in fields.values() if f.required)
        if needed:
            schema["required"] = needed
        if self._types.atomic(type_name):
            schema["x-kubernetes-map-type"] = "atomic"
        return name

    def _ref(self, ref: TypeRef, *, wrapped: bool) -> Schema:
        if ref.shape == "list":
            assert ref.element is not None
            return {"type": "array", "items": self._ref(ref.element, wrapped=True)}
        if ref.shape == "map":
            assert ref.element is not None
            return {"type": "object", "additionalProperties": self._ref(ref.element, wrapped=True)}
        if ref.shape == "struct":
            name = self.builtin(ref.name)
        elif ref.name in _NAMED:
            name, schema = _NAMED[ref.name]
            self.components.setdefault(name, dict(schema))
        else:
            return dict(_SCALARS[ref.name])
        pointer = {"$ref": f"#/components/schemas/{name}"}
        return {"allOf": [pointer]} if wrapped else pointer

    def _field(self, field: Field) -> Schema:
        schema = self._ref(field.type, wrapped=True)
        if field.list_type:
            schema["x-kubernetes-list-type"] = field.list_type
        if field.list_keys:
            schema["x-kubernetes-list-map-keys"] = list(field.list_keys)
        if field.atomic and field.type.shape == "map":
            schema["x-kubernetes-map-type"] = "atomic"
        if field.patch_strategy:
            schema["x-kubernetes-patch-strategy"] = ",".join(field.patch_strategy)
        if field.merge_key:
            schema["x-kubernetes-patch-merge-key"] = field.merge_key
        if field.default is not None:
            schema["default"] = field.default
        return schema

    def resource(self, resource: Resource, type_name: str | None) -> str:
        """Add the schema of a resource's objects, marked with their kind; returns its name."""
        if resource.custom is not None:
            name = custom_name(resource)
            schema = _custom(resource.custom.schema)
            properties = schema.setdefault("properties", {})
            properties["apiVersion"] = {"description": "The group and version that the object is of.", "type": "string"}
            properties["kind"] = {"description": "The kind of the object.", "type": "string"}
            meta = self.builtin("meta.v1.ObjectMeta")
            pointer = {"$ref": f"#/components/schemas/{meta}"}
            properties["metadata"] = {"description": "What all objects have.", "allOf": [pointer]}
            self.components[name] = schema
        elif type_name is not None:
            name = self.builtin(type_name)
        else:
            name = f"io.k8s.api.{resource.group.partition('.')[0] or 'core'}.{resource.version}.{resource.kind}"
            self.components[name] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        kinds = self.components[name].setdefault("x-kubernetes-group-version-kind", [])
        kinds.append(gvk(resource))
        return name


def gvk(resource: Resource) -> dict[str, str]:
    """The kind of a resource's objects as documents name it."""
    return {"group": resource.group, "kind": resource.kind, "version": resource.version}


def _custom(schema: Mapping[str, Any]) -> Schema:
    """A CRD's schema, copied as deep as it is changed later."""
    copy = dict(schema)
    if "properties" in copy:
        copy["properties"] = dict(copy["properties"])
    return copy
