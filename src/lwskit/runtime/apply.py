"""Whether a server-side apply would change anything. Pure.

An apply is needless when every field of the intent has the live value and the manager owns exactly the intent's fields;
which lists have keys and which values are owned as a whole is read from the manager's own entry in managedFields.
Specification: architecture, rule 5; Kubernetes documentation, "Server-Side Apply" and FieldsV1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from lwskit.runtime.objects import Obj
from lwskit.runtime.patch import same
from lwskit.runtime.semantic import is_quantity, same_quantity

_IDENTITY = frozenset({"name", "namespace", "uid", "resourceVersion", "managedFields"})
_KEY_DEFAULTS = {"protocol": "TCP"}
"""What a server assumes for a key of a list item that is not given."""
_DEFAULTS: Mapping[str, tuple[Any, ...]] = {
    "apiVersion": ("v1",),
    "divisor": ("0",),
    "expirationSeconds": (3600,),
    "kind": ("PersistentVolumeClaim",),
    "protocol": ("TCP",),
    "status": ({"phase": "Pending"},),
    "volumeMode": ("Filesystem",),
}
"""What servers add inside values that are owned as a whole (Kubernetes API reference: Pod, PersistentVolumeClaim)."""

_Path = tuple[str, ...]


def apply_needed(live: Obj | None, intent: Obj, manager: str) -> bool:
    """Whether applying `intent` as `manager` would change the live object or what the manager owns of it.

    `live` must still have the manager's Apply entry in managedFields. When in doubt the answer is True.
    """
    if live is None:
        return True
    fields = owned_fields(live, intent.get("apiVersion", ""), manager)
    if fields is None:
        return True
    return not _agrees(_without_identity(intent), _without_identity(live), fields, ())


def owned_fields(live: Obj, api_version: str, manager: str) -> Obj | None:
    """The FieldsV1 of what the manager has applied to the object in that API version, or None."""
    for entry in live["metadata"].get("managedFields") or ():
        is_ours = entry.get("manager") == manager and entry.get("operation") == "Apply"
        if is_ours and not entry.get("subresource") and entry.get("apiVersion") == api_version:
            return entry.get("fieldsV1") or {}
    return None


def _without_identity(obj: Obj) -> Obj:
    rest = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind")}
    metadata = {key: value for key, value in (rest.pop("metadata", None) or {}).items() if key not in _IDENTITY}
    return {"metadata": metadata, **rest} if metadata else rest


def _agrees(want: Any, live: Any, node: Mapping[str, Any], path: _Path) -> bool:
    """Whether a value is live as wanted and `node`, the fields owned below it, names exactly its fields."""
    inner = {key: value for key, value in node.items() if key != "."}
    if not inner:
        return _equal(want, live, path)
    if isinstance(want, Mapping) and isinstance(live, Mapping):
        return _maps_agree(want, live, inner, path)
    if isinstance(want, list) and isinstance(live, list):
        return _lists_agree(want, live, inner, path)
    return False


def _maps_agree(want: Mapping[str, Any], live: Mapping[str, Any], inner: Mapping[str, Any], path: _Path) -> bool:
    for key, value in want.items():
        child = inner.get(f"f:{key}")
        if child is None:
            # Owning an empty value or not makes no difference to anyone.
            if not _is_empty(value):
                return False
        elif not _agrees(value, live.get(key), child, (*path, key)):
            return False
    return all(want.get(name[2:]) is not None for name in inner)


def _lists_agree(want: list[Any], live: list[Any], inner: Mapping[str, Any], path: _Path) -> bool:
    if any(name.startswith("v:") for name in inner):
        owned = [orjson.loads(name[2:]) for name in inner]
        return len(owned) == len(want) and all(value in owned and value in live for value in want)
    items = {name: orjson.loads(name[2:]) for name in inner if name.startswith("k:")}
    if len(items) != len(want) or len(items) != len(inner):
        return False
    last = -1
    for item in want:
        name = next((name for name, keys in items.items() if _has(item, keys)), None)
        if name is None:
            return False
        keys = items.pop(name)
        place = next((place for place, other in enumerate(live) if _has(other, keys)), -1)
        # The order of an applied list is part of what is applied.
        if place <= last or not _agrees(item, live[place], inner[name], path):
            return False
        last = place
    return True


def _has(item: Any, keys: Mapping[str, Any]) -> bool:
    return isinstance(item, Mapping) and all(
        same(item.get(key, _KEY_DEFAULTS.get(key)), value) for key, value in keys.items()
    )


def _equal(want: Any, live: Any, path: _Path) -> bool:
    """Whether a value that is owned as a whole is live, apart from what servers add to it."""
    if isinstance(want, Mapping) and isinstance(live, Mapping):
        return all(_equal(value, live.get(key), (*path, key)) for key, value in want.items()) and all(
            key in want or _is_empty(value) or value in _DEFAULTS.get(key, ()) for key, value in live.items()
        )
    if _is_sequence(want) and _is_sequence(live):
        return len(want) == len(live) and all(_equal(a, b, path) for a, b in zip(want, live, strict=True))
    if live is None:
        return _is_empty(want) or want in (False, 0, "")
    if want is None:
        return _is_empty(live)
    return same(want, live) or (is_quantity(path) and same_quantity(want, live))


def _is_empty(value: Any) -> bool:
    return value is None or value in ({}, [])


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
