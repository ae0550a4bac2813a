"""Strategic merge patch of built-in kinds. Pure; the result may share parts with its arguments.

Source: Kubernetes documentation, "Update API Objects in Place Using kubectl patch", and the community's description of
strategic merge patch: directives `$patch`, `$retainKeys`, `$setElementOrder/…`, `$deleteFromPrimitiveList/…`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lwskit.embedded.schema import clone
from lwskit.runtime.errors import ApiError, InvalidRequest
from lwskit.runtime.typed import Field, TypeRef, TypeTable

_PATCH, _RETAIN = "$patch", "$retainKeys"
_ORDER, _DELETE = "$setElementOrder/", "$deleteFromPrimitiveList/"


def merge(document: Any, patch: Any, types: TypeTable, type_name: str | None) -> Any:
    """The document after the patch. Raises the ApiError for directives that cannot be followed."""
    ref = TypeRef("struct", type_name) if type_name else None
    return _Merger(types).maps(document, patch, ref)


class _Merger:
    def __init__(self, types: TypeTable) -> None:
        self._types = types

    def _field(self, ref: TypeRef | None, name: str) -> tuple[TypeRef | None, Field | None]:
        """The type of a field of a struct or of a map's values, and the struct field with its strategy."""
        if ref is None:
            return None, None
        if ref.shape == "struct":
            field = self._types.fields(ref.name).get(name)
            return (field.type, field) if field else (None, None)
        return (ref.element, None) if ref.shape == "map" else (None, None)

    def maps(self, old: Any, patch: Any, ref: TypeRef | None) -> Any:
        """Merge one object into another."""
        if not isinstance(patch, dict):
            return clone(patch)
        action = patch.get(_PATCH)
        if action == "delete":
            return {}
        if action == "replace":
            return self._bare({k: v for k, v in patch.items() if k != _PATCH})
        if action not in (None, "merge"):
            raise ApiError(f"unknown patch type: {action} in map: {go_text(patch)}", code=500, reason="")
        out = dict(old) if isinstance(old, dict) else {}
        retained = patch.get(_RETAIN)
        if retained is not None:
            self._check_retained(patch, retained)
            out = {k: v for k, v in out.items() if k in retained}
        self._drop_primitives(out, patch)
        orders = {k[len(_ORDER) :]: v for k, v in patch.items() if k.startswith(_ORDER)}
        for name, value in patch.items():
            if name.startswith("$"):
                continue
            if value is None:
                out.pop(name, None)
                continue
            out[name] = self._value(out.get(name), value, *self._field(ref, name), orders.pop(name, None))
        for name, order in orders.items():
            if isinstance(out.get(name), list):
                _, field = self._field(ref, name)
                key = field.merge_key if field else ""
                out[name] = _ordered(out[name], out[name], order, key)
        return out

    def _check_retained(self, patch: Mapping[str, Any], retained: Any) -> None:
        given = {k for k in patch if not k.startswith("$") and patch[k] is not None}
        if not isinstance(retained, list) or not given <= set(retained):
            raise InvalidRequest("invalid patch format of retainKeys")

    def _drop_primitives(self, out: dict[str, Any], patch: Mapping[str, Any]) -> None:
        for name, values in patch.items():
            if name.startswith(_DELETE):
                field = name[len(_DELETE) :]
                if isinstance(out.get(field), list):
                    out[field] = [v for v in out[field] if v not in values]

    def _value(self, old: Any, value: Any, ref: TypeRef | None, field: Field | None, order: Any) -> Any:
        if isinstance(value, dict):
            if field is not None and "replace" in field.patch_strategy:
                return self._bare(value)
            return self.maps(old, value, ref)
        if isinstance(value, list):
            if field is not None and "merge" in field.patch_strategy:
                element = ref.element if ref else None
                return self._lists(old if isinstance(old, list) else [], value, element, field, order)
            return self._bare(value)
        return value

    def _lists(self, old: list[Any], patch: list[Any], element: TypeRef | None, field: Field, order: Any) -> list[Any]:
        key = field.merge_key
        if any(isinstance(item, dict) and item.get(_PATCH) == "replace" and len(item) == 1 for item in patch):
            return self._bare([i for i in patch if not (isinstance(i, dict) and i.get(_PATCH) == "replace")])
        if not key:
            out = list(old)
            out.extend(item for item in patch if item not in out)
            return _ordered(out, old, patch if order is None else order, "")
        out = list(old)
        for item in patch:
            if not isinstance(item, dict) or item.get(key) is None:
                raise ApiError(f"map: {go_text(item)} does not contain declared merge key: {key}", code=500, reason="")
            at = next((i for i, o in enumerate(out) if isinstance(o, dict) and o.get(key) == item[key]), None)
            if item.get(_PATCH) == "delete":
                out = [o for o in out if not (isinstance(o, dict) and o.get(key) == item[key])]
            elif at is None:
                out.append(self.maps({}, {k: v for k, v in item.items() if k != _PATCH}, element))
            else:
                out[at] = self.maps(out[at], item, element)
        return _ordered(out, old, patch if order is None else order, key)

    def _bare(self, value: Any) -> Any:
        """A copy without directives and nulls of objects."""
        if isinstance(value, dict):
            return {k: self._bare(v) for k, v in value.items() if not k.startswith("$") and v is not None}
        if isinstance(value, list):
            return [self._bare(v) for v in value]
        return value


def go_text(value: Any) -> str:
    """A value as a Go program prints it."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{k}:{go_text(v)}" for k, v in sorted(value.items())) + "]"
    if isinstance(value, list):
        return "[" + " ".join(go_text(v) for v in value) + "]"
    return str(value).lower() if isinstance(value, bool) else ("<nil>" if value is None else str(value))


def _ordered(merged: list[Any], old: list[Any], order: Any, key: str) -> list[Any]:
    """The merged list in the order that the patch sets; items that only the server has keep their place among them."""

    def mark(item: Any) -> Any:
        return item.get(key) if key and isinstance(item, dict) else item

    wanted = [mark(o) for o in order]
    places = [mark(o) for o in old]
    ours = sorted((i for i in merged if mark(i) in wanted), key=lambda i: wanted.index(mark(i)))
    theirs = [i for i in merged if mark(i) not in wanted]
    theirs.sort(key=lambda i: places.index(mark(i)) if mark(i) in places else len(places))
    out: list[Any] = []
    while ours and theirs:
        left, right = mark(theirs[0]), mark(ours[0])
        earlier = left in places and right in places and places.index(left) < places.index(right)
        out.append((theirs if earlier else ours).pop(0))
    return out + theirs + ours
