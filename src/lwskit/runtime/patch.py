"""The difference of two objects as a patch: RFC 7386 (merge) and RFC 6902 (JSON patch). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lwskit.runtime.errors import InvalidRequest
from lwskit.runtime.objects import Obj, version_of


def same(a: Any, b: Any) -> bool:
    """Whether two JSON values are equal, where `true` is not 1 (as Python has it)."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(value, b[key]) for key, value in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return type(a) is type(b) and a == b if isinstance(a, str) or isinstance(b, str) else a == b


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

    Objects are compared key by key, lists place by place: what follows the common length is appended, or removed from
    the end.
    """
    return list(_difference("", old, new))


def _difference(path: str, old: Any, new: Any) -> Iterator[Obj]:
    if same(old, new):
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in old:
            if key not in new:
                yield {"op": "remove", "path": f"{path}/{_escape(key)}"}
        for key, value in new.items():
            if key in old:
                yield from _difference(f"{path}/{_escape(key)}", old[key], value)
            else:
                yield {"op": "add", "path": f"{path}/{_escape(key)}", "value": value}
    elif isinstance(old, list) and isinstance(new, list):
        yield from _list_difference(path, old, new)
    else:
        yield {"op": "replace", "path": path, "value": new}


def _list_difference(path: str, old: Sequence[Any], new: Sequence[Any]) -> Iterator[Obj]:
    common = min(len(old), len(new))
    for place in range(common):
        yield from _difference(f"{path}/{place}", old[place], new[place])
    for place in reversed(range(common, len(old))):
        yield {"op": "remove", "path": f"{path}/{place}"}
    for value in new[common:]:
        yield {"op": "add", "path": f"{path}/-", "value": value}


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
