"""Strategic merge patch of built-in kinds. Pure; the result may share parts with its arguments.

Source: Kubernetes documentation, "Update API Objects in Place Using kubectl patch", and the community's description of
strategic merge patch: directives `$patch`, `$retainKeys`, `$setElementOrder/…`, `$deleteFromPrimitiveList/…`.
"""

from __future__ import annotations

from typing import Any

from lwskit.embedded.schema import clone
from lwskit.runtime.errors import ApiError, Invalid, InvalidRequest
from lwskit.runtime.typed import Field, TypeRef, TypeTable

_PATCH, _RETAIN = "$patch", "$retainKeys"
_ORDER, _DELETE = "$setElementOrder/", "$deleteFromPrimitiveList/"
GO_TYPES = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    int: "int64",
    float: "float64",
    bool: "bool",
}
"""What the real server's texts call the types of values."""


def merge(document: Any, patch: Any, types: TypeTable, type_name: str | None) -> Any:
    """The document after the patch. Raises the ApiError for directives that cannot be followed."""
    ref = TypeRef("struct", type_name) if type_name else None
    return _Merger(types).maps(dict(document), clone(patch), ref)


def _broken(text: str) -> ApiError:
    return ApiError(text, code=500, reason="")


def _without_nulls(value: Any) -> None:
    """Drop, in place, the fields that are null."""
    if isinstance(value, dict):
        for name in [k for k, v in value.items() if v is None]:
            del value[name]
        for item in value.values():
            _without_nulls(item)
    elif isinstance(value, list):
        for item in value:
            _without_nulls(item)


def _plain(value: Any) -> tuple[Any, bool]:
    """A value of a patch that is merged with nothing, without what has a directive; and whether it stays."""
    if isinstance(value, dict):
        if _PATCH in value:
            return None, False
        kept = {k: _plain(v) for k, v in value.items()}
        return {k: v for k, (v, keep) in kept.items() if keep}, True
    if isinstance(value, list):
        return [v for v, keep in (_plain(v) for v in value) if keep], True
    return value, True


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

    def maps(self, old: dict[str, Any], patch: dict[str, Any], ref: TypeRef | None) -> dict[str, Any]:
        """Merge a patch, which is used up, into an object; both belong to the caller."""
        action = patch.get(_PATCH)
        if _PATCH in patch:
            if action == "replace":
                return {k: v for k, v in patch.items() if k != _PATCH}
            if action == "delete":
                return {}
            raise _broken(f"unknown patch type: {action} in map: {go_text(patch)}")
        self._retain(old, patch)
        self._order_lists(old, patch, ref)
        for given, value in patch.items():
            deletes = given.startswith(_DELETE)
            name = given[len(_DELETE) :] if deletes else given
            if value is None:
                old.pop(name, None)
            elif name in old and _same_kind(old[name], value):
                self._put(old, name, self._merged(old[name], value, *self._field(ref, name), deletes=deletes))
            elif not deletes:
                _without_nulls(value)
                self._put(old, name, _plain(value))
        return old

    def _put(self, old: dict[str, Any], name: str, found: tuple[Any, bool]) -> None:
        value, keep = found
        if keep:
            old[name] = value
        else:
            old.pop(name, None)

    def _retain(self, old: dict[str, Any], patch: dict[str, Any]) -> None:
        """Drop the fields that the patch does not say to retain."""
        if _RETAIN not in patch:
            return
        retained = patch.pop(_RETAIN)
        given = {k for k, v in patch.items() if v is not None and not k.startswith((_DELETE, _ORDER))}
        if not isinstance(retained, list) or not given <= set(retained):
            raise InvalidRequest("invalid patch format of retainKeys")
        for name in [k for k in old if k not in retained]:
            del old[name]

    def _merged(
        self, old: Any, value: Any, ref: TypeRef | None, field: Field | None, *, deletes: bool = False
    ) -> tuple[Any, bool]:
        strategy = field.patch_strategy if field else ()
        if isinstance(value, dict):
            if "replace" in strategy:
                return value, True
            return self.maps(dict(old), value, ref), True
        if isinstance(value, list):
            if deletes or "merge" in strategy:
                key = field.merge_key if field else ""
                return self._lists(list(old), value, ref.element if ref else None, key, deletes), True
            return value, True
        return value, True

    def _lists(self, old: list[Any], patch: list[Any], element: TypeRef | None, key: str, deletes: bool) -> list[Any]:
        if not old and not patch:
            return old
        if not self._of_maps(old, patch):
            if deletes:
                return [v for v in old if v not in patch]
            merged = list(dict.fromkeys([*old, *patch]))
            return _ordered(merged, old, patch, "")
        if not key:
            raise _broken(f"cannot merge lists without merge key for {element.name if element else ''}")
        current, patch = self._special(old, patch, key)
        before = list(current)
        for item in patch:
            if key not in item:
                raise _no_merge_key(item, key)
            at = next((i for i, o in enumerate(current) if key in o and o[key] == item[key]), None)
            if at is None:
                current.append(item)
            else:
                current[at] = self.maps(dict(current[at]), dict(item), element)
        return _ordered(current, before, patch, key)

    def _of_maps(self, *lists: list[Any]) -> bool:
        """Whether lists hold objects. Raises ApiError for lists of lists and for mixed ones."""
        kinds = {type(item) for items in lists for item in items}
        if list in kinds:
            raise Invalid("the server rejected our request due to an error in our request", details={})
        if len(kinds) > 1:
            raise _broken(f"list element types are not identical: {go_text(list(lists))}")
        return dict in kinds

    def _special(self, old: list[Any], patch: list[Any], key: str) -> tuple[list[Any], list[Any]]:
        """Follow the directives among the items of a patch: what is left of the list, and of the patch."""
        rest: list[Any] = []
        replaces = False
        for item in patch:
            match item.get(_PATCH) if _PATCH in item else None:
                case None:
                    rest.append(item)
                case "delete":
                    if key not in item:
                        raise _no_merge_key(item, key)
                    old = [o for o in old if not (key in o and o[key] == item[key])]
                case "replace":
                    replaces = True
                case "merge":
                    raise _broken("merging lists cannot yet be specified in the patch")
                case other:
                    raise _broken(f"unknown patch type: {other} in map: {go_text(item)}")
        return (rest, []) if replaces else (old, rest)

    def _order_lists(self, old: dict[str, Any], patch: dict[str, Any], ref: TypeRef | None) -> None:
        """Merge the lists of which the patch sets the order, and take them out of it."""
        for given in [k for k in patch if k.startswith(_ORDER)]:
            order, name = patch.pop(given), given[len(_ORDER) :]
            if not isinstance(order, list):
                raise _broken(f"expected a []interface {{}}, but received a {GO_TYPES.get(type(order), '%!s(<nil>)')}")
            for found in (old.get(name, []), patch.get(name, [])):
                if not isinstance(found, list):
                    shown = GO_TYPES.get(type(found), "%!s(<nil>)")
                    raise _broken(f"expected a []interface {{}}, but received a {shown}")
            known, field = self._field(ref, name)
            key = field.merge_key if field else ""
            given_too = name in patch
            mine: list[Any] = patch.pop(name, None) or []
            _check_order(mine, order, key)
            if name not in old and not given_too:
                continue
            before: list[Any] = old.get(name) or []
            if name not in old:
                merged: list[Any] = _plain(mine)[0]
            elif mine:
                merged = self._merged(before, clone(mine), known, field)[0]
            else:
                merged = before
            if not before and not mine:
                raise _broken("no elements in any of the given slices")
            old[name] = _ordered(merged, before, order, key)


def _same_kind(one: Any, two: Any) -> bool:
    return type(one) is type(two)


def _no_merge_key(item: Any, key: str) -> ApiError:
    return _broken(f"map: {go_text(item)} does not contain declared merge key: {key}")


def _check_order(patch: list[Any], order: list[Any], key: str) -> None:
    """The items of a patch must stand in the order that it sets."""
    if not patch or not order:
        return
    items = [i for i in patch if not (isinstance(i, dict) and _PATCH in i)]
    at = 0
    for place in order:
        if at >= len(items):
            return
        if key:
            for side in (items[at], place):
                if not isinstance(side, dict):
                    raise _broken(f"expected a map[string]interface {{}}, but received a {GO_TYPES[type(side)]}")
                if key not in side:
                    raise _no_merge_key(side, key)
        if (items[at].get(key) == place.get(key)) if key else items[at] == place:
            at += 1
    if at < len(items):
        text = f"The order in patch list:\n{go_text(patch)}\n doesn't match {_ORDER[:-1]} list:\n{go_text(order)}\n"
        raise _broken(text)


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
