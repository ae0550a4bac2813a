"""The difference of two objects as a patch: RFC 7386 (merge) and RFC 6902 (JSON patch). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lwskit.runtime.errors import InvalidRequest
from lwskit.runtime.objects import Obj, version_of

_ABSENT: Final = object()
_SPARED: Final = 8
"""So many operations more than the new list has items are made before the list is replaced whole."""


def same(a: Any, b: Any) -> bool:
    """Whether two JSON values are equal, where `true` is not 1 (as Python has it)."""
    if a is b:
        return True
    if isinstance(a, bool) or isinstance(b, bool):
        return False
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(value, b[key]) for key, value in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return a == b


def merge_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> Obj:
    """The merge patch that turns `old` into `new`: removed keys become null, lists are replaced whole.

    Keys of `new` whose value is None cannot be told from removed ones, as the format has it (RFC 7386).
    """
    patch: Obj = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if key in old and same(before, value):
            continue
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            patch[key] = merge_patch(before, value)
        else:
            patch[key] = value
    return patch


def merge_from(original: Mapping[str, Any], modified: Mapping[str, Any], *, optimistic_lock: bool = False) -> Obj:
    """The body of a merge patch from a copy read before to the one that was changed.

    With `optimistic_lock` it carries the original's resourceVersion, so that the server answers Conflict when somebody
    else was faster. Raises InvalidRequest when the original has none. Specification: 70 §6.2.
    """
    body = merge_patch(original, modified)
    if optimistic_lock:
        version = version_of(original)
        if not version:
            raise InvalidRequest("an optimistic lock needs the resourceVersion of the object that was read")
        body["metadata"] = {**(body.get("metadata") or {}), "resourceVersion": version}
    return body


def json_patch(old: Any, new: Any) -> list[Obj]:
    """The JSON patch that turns `old` into `new`; empty when they are equal.

    Parts that are the same object in both are not looked at, so that a patch costs what was changed and not what there
    is. Objects are compared key by key. Lists of one length are compared place by place; in others, what is equal at
    both ends stays, and items are added or removed where the rest differs. A list that would need many more operations
    than it has items is replaced whole.
    """
    operations: list[Obj] = []
    _difference("", old, new, operations)
    return operations


def _difference(path: str, old: Any, new: Any, out: list[Obj]) -> None:
    if old is new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        if not new.keys() >= old.keys():
            out.extend({"op": "remove", "path": f"{path}/{_escape(key)}"} for key in old if key not in new)
        before = old.get
        for key, value in new.items():
            was = before(key, _ABSENT)
            if was is value:
                continue
            where = f"{path}/{_escape(key) if '/' in key or '~' in key else key}"
            if was is _ABSENT:
                out.append({"op": "add", "path": where, "value": value})
            else:
                _difference(where, was, value, out)
    elif isinstance(old, list) and isinstance(new, list):
        _list_difference(path, old, new, out)
    elif not same(old, new):
        out.append({"op": "replace", "path": path, "value": new})


def _list_difference(path: str, old: Sequence[Any], new: Sequence[Any], out: list[Obj]) -> None:
    first, end_old, end_new = 0, len(old), len(new)
    if end_old != end_new:
        common = min(end_old, end_new)
        while first < common and same(old[first], new[first]):
            first += 1
        while min(end_old, end_new) > first and same(old[end_old - 1], new[end_new - 1]):
            end_old, end_new = end_old - 1, end_new - 1
    began, common = len(out), min(end_old, end_new)
    for place in range(first, common):
        if old[place] is not new[place]:
            _difference(f"{path}/{place}", old[place], new[place], out)
    for place in range(end_old - 1, common - 1, -1):
        out.append({"op": "remove", "path": f"{path}/{place}"})
    for place in range(common, end_new):
        where = place if end_old < len(old) else "-"
        out.append({"op": "add", "path": f"{path}/{where}", "value": new[place]})
    if len(out) - began > len(new) + _SPARED:
        out[began:] = [{"op": "replace", "path": path, "value": new}]


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
