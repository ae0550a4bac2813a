"""How server-side apply sees types: structs, maps, keyed lists, sets, and what is replaced as a whole. Pure.

Source: Kubernetes documentation, "Server-Side Apply", on merge strategy and list and map types.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import orjson

from lwskit.embedded.schema import EMBEDDED, INT_OR_STRING, PRESERVE, Schema
from lwskit.runtime.typed import Field, TypeRef, TypeTable

Shape = Literal["leaf", "map", "keyed", "set", "deduced", "list"]


class Node:
    """One type: `leaf` is replaced as a whole; `map` has declared fields, others, or both; `keyed` and `set` are lists.

    `deduced` is data without a type: its maps merge, everything else in it is a leaf. `scalar` says which values a
    leaf takes: string, numeric, boolean or any scalar; empty for any value. `inside` is the form that the value of a
    leaf, or an item of a set, must have (there, a `list` is one without keys).
    """

    __slots__ = ("_fields", "defaults", "element", "inside", "keys", "scalar", "shape")

    def __init__(
        self,
        shape: Shape,
        *,
        element: Node | None = None,
        keys: tuple[str, ...] = (),
        defaults: Mapping[str, Any] | None = None,
        scalar: str = "",
        inside: Node | None = None,
    ) -> None:
        self.shape: Shape = shape
        self.scalar = scalar
        self.inside = inside
        self.element = element
        self.keys = keys
        self.defaults = defaults or {}
        self._fields: dict[str, Node] = {}

    def declared(self, name: str) -> Node | None:
        """The node of a declared field of a map, or None."""
        return self._fields.get(name)

    def child(self, name: str) -> Node | None:
        """The node of a map's field, declared or not; None when the map can have no such field."""
        return self._fields.get(name) or self.element

    def item_key(self, item: Any) -> str:
        """The path element of an item of a list; the key fields that it lacks have their defaults."""
        if self.shape == "set":
            return "v:" + orjson.dumps(item).decode()
        found = {}
        for key in self.keys:
            value = item.get(key) if isinstance(item, dict) else None
            if value is None:
                value = self.defaults.get(key)
            if value is not None:
                found[key] = value
        return "k:" + orjson.dumps(found, option=orjson.OPT_SORT_KEYS).decode()


LEAF = Node("leaf")
_STRING, _NUMERIC, _BOOLEAN = (Node("leaf", scalar=s) for s in ("string", "numeric", "boolean"))
_SCALARS = {"string": _STRING, "integer": _NUMERIC, "number": _NUMERIC, "boolean": _BOOLEAN}
_ANY = Node("leaf", scalar="any")
_GO_SCALARS = {
    "string": _STRING,
    "bool": _BOOLEAN,
    "int32": _NUMERIC,
    "int64": _NUMERIC,
    "float64": _NUMERIC,
    "quantity": _ANY,
    "intorstring": _ANY,
}
DEDUCED = Node("deduced")
DEDUCED.element = DEDUCED


_ZERO: dict[str, Any] = {"string": "", "bool": False, "int32": 0, "int64": 0}


def _default(field: Field) -> Any:
    """The default of a key: its own, or nothing's value in a field that is always written."""
    if field.default is not None or field.omit_empty:
        return field.default
    return _ZERO.get(field.type.name)


class Structures:
    """The nodes of all kinds: built-in ones from the table of types, custom ones from their schemas."""

    def __init__(self, types: TypeTable) -> None:
        self._types = types
        self._structs: dict[str, Node] = {}
        self._customs: dict[int, tuple[Schema, Node]] = {}

    def builtin(self, type_name: str) -> Node:
        """The node of a struct of the table."""
        node = self._structs.get(type_name)
        if node is None:
            node = self._structs[type_name] = Node("map")
            for name, field in self._types.fields(type_name).items():
                node._fields[name] = self._field(field)
        return node

    def _field(self, field: Field) -> Node:
        ref = field.type
        if ref.shape in ("scalar", "any"):
            return _GO_SCALARS.get(ref.name, LEAF)
        if field.atomic:
            return Node("leaf", inside=self._inside(ref))
        if ref.shape == "list":
            assert ref.element is not None
            if field.list_type == "set":
                return Node("set", inside=self._ref(ref.element))
            if field.list_type == "map":
                defaults = {}
                if ref.element.shape == "struct":
                    fields = self._types.fields(ref.element.name)
                    defaults = {k: _default(fields[k]) for k in field.list_keys if k in fields}
                return Node("keyed", element=self._ref(ref.element), keys=field.list_keys, defaults=defaults)
            return Node("leaf", inside=self._inside(ref))
        return self._ref(ref)

    def _inside(self, ref: TypeRef) -> Node:
        """The form of a value that is replaced as a whole."""
        if ref.shape == "struct":
            return self.builtin(ref.name)
        if ref.element is None:
            return _GO_SCALARS.get(ref.name, LEAF)
        return Node("list" if ref.shape == "list" else "map", element=self._ref(ref.element))

    def _ref(self, ref: TypeRef) -> Node:
        if ref.shape == "struct":
            node = self.builtin(ref.name)
            return Node("leaf", inside=node) if self._types.atomic(ref.name) else node
        if ref.shape == "map":
            assert ref.element is not None
            return Node("map", element=self._ref(ref.element))
        if ref.shape == "list":
            return Node("leaf", inside=self._inside(ref))
        return _GO_SCALARS.get(ref.name, LEAF)

    def custom(self, schema: Schema) -> Node:
        """The node of a custom resource with that schema."""
        found = self._customs.get(id(schema))
        if found is None or found[0] is not schema:
            node = self._schema(schema, root=True)
            found = self._customs[id(schema)] = (schema, node)
        return found[1]

    def _schema(self, schema: Schema, root: bool = False) -> Node:
        if schema.get(INT_OR_STRING):
            return _ANY
        kind = schema.get("type")
        if kind == "array":
            items = schema.get("items") or {}
            match schema.get("x-kubernetes-list-type"):
                case "set":
                    return Node("set", inside=self._schema(items))
                case "map":
                    keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
                    properties = items.get("properties") or {}
                    defaults: dict[str, Any] = {}
                    for key in keys:
                        if "default" in properties.get(key, {}):
                            defaults[key] = properties[key]["default"]
                    return Node("keyed", element=self._schema(items), keys=keys, defaults=defaults)
                case _:
                    return Node("leaf", inside=Node("list", element=self._schema(items)))
        if kind == "object" or "properties" in schema or PRESERVE in schema or EMBEDDED in schema:
            if schema.get("x-kubernetes-map-type") == "atomic":
                whole = {k: v for k, v in schema.items() if k != "x-kubernetes-map-type"}
                return Node("leaf", inside=self._schema(whole))
            node = Node("map")
            for name, found in (schema.get("properties") or {}).items():
                node._fields[name] = self._schema(found)
            additional = schema.get("additionalProperties")
            if isinstance(additional, dict):
                node.element = self._schema(additional)
            elif schema.get(PRESERVE) or additional:
                if kind is None and not node._fields:
                    return DEDUCED
                node.element = DEDUCED
            if root or schema.get(EMBEDDED):
                node._fields["apiVersion"] = node._fields["kind"] = LEAF
                node._fields["metadata"] = self.builtin("meta.v1.ObjectMeta")
            return node
        return _SCALARS.get(kind or "", LEAF)
