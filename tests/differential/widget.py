"""The custom resource of the differential runs: every kind of list and map, defaults, and all subresources."""

from __future__ import annotations

from typing import Any

GROUP, VERSION, PLURAL, KIND = "differential.example.com", "v1", "widgets", "Widget"
_STRING = {"type": "string"}
_INTEGER = {"type": "integer"}

_ITEM = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "protocol": {"type": "string", "default": "TCP"},
        "value": _STRING,
        "weight": {"type": "integer", "default": 5},
        "tags": {"type": "array", "items": _STRING, "x-kubernetes-list-type": "set"},
    },
}
_SPEC = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 9, "default": 1},
        "size": {"type": "string", "enum": ["small", "large"], "default": "small"},
        "code": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
        "set": {"type": "array", "items": _STRING, "x-kubernetes-list-type": "set", "maxItems": 4},
        "numbers": {"type": "array", "items": _INTEGER, "x-kubernetes-list-type": "set"},
        "items": {
            "type": "array",
            "items": _ITEM,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name", "protocol"],
        },
        "atoms": {"type": "array", "items": {"type": "object", "properties": {"a": _INTEGER, "b": _STRING}}},
        "bundle": {
            "type": "object",
            "x-kubernetes-map-type": "atomic",
            "properties": {"a": _INTEGER, "b": _STRING},
        },
        "labels": {"type": "object", "additionalProperties": _STRING},
        "nested": {
            "type": "object",
            "default": {},
            "properties": {
                "flag": {"type": "boolean", "default": True},
                "text": _STRING,
                "deep": {"type": "object", "properties": {"a": _INTEGER, "b": {"type": "integer", "default": 2}}},
            },
        },
        "maybe": {"type": "string", "nullable": True},
        "either": {"x-kubernetes-int-or-string": True},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "ratio": {"type": "number"},
    },
}
_STATUS = {
    "type": "object",
    "properties": {
        "replicas": _INTEGER,
        "selector": _STRING,
        "phase": {"type": "string", "enum": ["Old", "New"]},
        "conditions": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["type", "status"],
                "properties": {"type": _STRING, "status": _STRING, "reason": _STRING},
            },
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
    },
}

CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{PLURAL}.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": PLURAL, "singular": "widget", "kind": KIND, "listKind": "WidgetList"},
        "versions": [
            {
                "name": VERSION,
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": _SPEC, "status": _STATUS}}},
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
            }
        ],
    },
}
