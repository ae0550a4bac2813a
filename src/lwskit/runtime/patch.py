"""The difference of two objects as a patch: RFC 7386 (merge) and RFC 6902 (JSON patch). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lwskit.runtime.errors import InvalidRequest
from lwskit.runtime.objects import Obj, version_of

_ABSENT: Final = object()
_SPARED: Final = 8
"""So many operations more than the new list has items are made before the list is replaced whole."""
_MOVED: Final = 100
"""So many operations that move what is behind them, each of which takes a server a copy of the list, are made."""


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
    both ends stays, and items are added or removed where the rest differs. A list that would need many operations is
    replaced whole.
    """
    operations: list[Obj] = []
    _difference("", old, new, operations)
    return operations


def _difference(path: str, old: Any, new: Any, out: list[Obj]) -> None:
    if old is new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        began, kept, before = len(out), 0, old.get
        for key, value in new.items():
            was = before(key, _ABSENT)
            if was is value:
                kept += 1
                continue
            where = f"{path}/{_escape(key) if '/' in key or '~' in key else key}"
            if was is _ABSENT:
                out.append({"op": "add", "path": where, "value": value})
            else:
                kept += 1
                _difference(where, was, value, out)
        if kept < len(old):
            out[began:began] = [{"op": "remove", "path": f"{path}/{_escape(key)}"} for key in old if key not in new]
    elif isinstance(old, list) and isinstance(new, list):
        _list_difference(path, old, new, out)
    elif not same(old, new):
        out.append({"op": "replace", "path": path, "value": new})


def _list_difference(path: str, old: Sequence[Any], new: Sequence[Any], out: list[Obj]) -> None:
    began, moved = len(out), 0
    most = began + len(new) + _SPARED
    if len(old) == len(new):
        for place, (was, value) in enumerate(zip(old, new, strict=True)):
            if was is not value:
                _difference(f"{path}/{place}", was, value, out)
                if len(out) > most:
                    break
    else:
        moved = _rearranged(path, old, new, out)
    if moved > _MOVED or len(out) > most:
        out[began:] = [{"op": "replace", "path": path, "value": new}]


def _rearranged(path: str, old: Sequence[Any], new: Sequence[Any], out: list[Obj]) -> int:
    """The difference of lists of unlike lengths; returns how many operations move the items behind them.

    What is equal at both ends stays. In between, an item that is the same object in both is where the lists meet
    again; up to there items are added, removed or changed. Before each step the list is `new` up to `at` and then
    `old` from `was`.
    """
    at = 0
    end_old, end_new = len(old), len(new)
    while at < min(end_old, end_new) and same(old[at], new[at]):
        at += 1
    while min(end_old, end_new) > at and same(old[end_old - 1], new[end_new - 1]):
        end_old, end_new = end_old - 1, end_new - 1
    if end_old - end_new > _MOVED:
        return end_old - end_new
    was, moved = at, 0
    known: set[int] = set()
    kept: set[int] = set()
    if was < end_old and at < end_new:
        known, kept = {id(item) for item in old[at:end_old]}, {id(item) for item in new[at:end_new]}
    while was < end_old and at < end_new and moved <= _MOVED:
        before, value = old[was], new[at]
        if before is not value:
            is_added, is_removed = id(value) not in known, id(before) not in kept
            if is_removed and not is_added:
                out.append({"op": "remove", "path": f"{path}/{at}"})
                was, moved = was + 1, moved + 1
                continue
            if is_added and not is_removed:
                out.append({"op": "add", "path": f"{path}/{at}", "value": value})
                at, moved = at + 1, moved + 1
                continue
            _difference(f"{path}/{at}", before, value, out)
        was, at = was + 1, at + 1
    last = end_old == len(old)
    moved += end_old - was + (0 if last else end_new - at)
    if moved > _MOVED:
        return moved
    for gone in range(end_old - was, 0, -1):
        out.append({"op": "remove", "path": f"{path}/{at + gone - 1}"})
    for place in range(at, end_new):
        out.append({"op": "add", "path": f"{path}/{'-' if last else place}", "value": new[place]})
    return moved


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
