"""JSON patch and merge patch. Pure; results share nothing with the patch, but may share with the document.

Sources: RFC 6902, RFC 6901, RFC 7386.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import orjson

from lwskit.embedded.schema import clone

_MISSING = ": missing value"
_NUMBER = re.compile(r"[+-]?[0-9]+")


class PatchError(ValueError):
    """A patch that cannot be read or does not fit the document; `malformed` tells which of the two."""

    def __init__(self, text: str, *, malformed: bool = False) -> None:
        super().__init__(text)
        self.malformed = malformed


def merge(document: Any, patch: Any) -> Any:
    """The document after a merge patch (RFC 7386): null removes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        return clone(patch)
    out = dict(document) if isinstance(document, dict) else {}
    for name, value in patch.items():
        if value is None:
            out.pop(name, None)
        else:
            out[name] = merge(out.get(name), value)
    return out


def json_patch(document: Any, operations: Any) -> Any:
    """The document after a JSON patch (RFC 6902). The document is changed: it must belong to the caller.

    As in a real server, a replace may name a field of an object that is not there, and a copy of such a field is null.
    Raises PatchError for a patch that is malformed or does not fit the document.
    """
    check_operations(operations)
    root = [document]
    for operation in operations:
        _apply(root, operation)
    return root[0]


def check_operations(operations: Any) -> None:
    """Raises PatchError (malformed) when these are not operations of a JSON patch."""
    into = "Go value of type []handlers.jsonPatchOp"
    if not isinstance(operations, list):
        raise PatchError(f"json: cannot unmarshal {json_kind(operations)} into {into}", malformed=True)
    for operation in operations:
        if not isinstance(operation, dict):
            kind = json_kind(operation)
            raise PatchError(
                f"json: cannot unmarshal {kind} into Go value of type handlers.jsonPatchOp", malformed=True
            )
        for name in ("op", "path", "from"):
            value = operation.get(name)
            if value is not None and not isinstance(value, str):
                field = f"Go struct field jsonPatchOp.{name} of type string"
                raise PatchError(f"json: cannot unmarshal {json_kind(value)} into {field}", malformed=True)


def json_kind(value: Any) -> str:
    """The JSON type of a value as refusals name it."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    return {str: "string", list: "array", dict: "object", type(None): "null"}[type(value)]


def _apply(root: list[Any], operation: Mapping[str, Any]) -> None:
    op, path = operation.get("op", "unknown"), operation.get("path")
    if op not in ("add", "remove", "replace", "move", "copy", "test"):
        raise PatchError(f"Unexpected kind: {op}")
    if path is None:
        raise PatchError(f"{op} operation failed to decode path: missing value")
    value = clone(operation.get("value"))
    if op in ("replace", "test") and path == "":
        if op == "test":
            _expect(root[0], value, path)
        elif not isinstance(value, dict | list):
            raise PatchError("replace operation value must be object or array")
        else:
            root[0] = value
        return
    if op in ("move", "copy"):
        source = operation.get("from")
        if source is None:
            raise PatchError(f"{op} operation failed to decode from: missing value")
        parent, key = _place(root[0], source, f"{op} operation does not apply: doc is missing from path: {source}")
        shown = f"error in {op} for {f'path: {key!r}' if op == 'move' else f'from: {source!r}'}"
        with _explained(shown):
            value = clone(_get(parent, key))
            if op == "move":
                _remove(parent, key)
        lacking = f"{op} operation does not apply: doc is missing destination path: {path}"
        failing = f"error in move for path: '{path}'" if op == "move" else "error while adding value during copy"
    else:
        what = "is missing path" if op == "test" else "doc is missing path"
        lacking = f"{op} operation does not apply: {what}: " + (f'"{path}"' if op in ("add", "remove") else path)
        failing = f"error in {op} for path: '{path}'"
    parent, key = _place(root[0], path, lacking)
    match op:
        case "remove":
            with _explained(failing):
                _remove(parent, key)
        case "replace":
            try:
                _get(parent, key)
            except PatchError:
                raise PatchError(f"replace operation does not apply: doc is missing key: {path}{_MISSING}") from None
            parent[key if isinstance(parent, dict) else _index(parent, key)] = value
        case "test":
            with _explained(failing):
                found = _get(parent, key)
            _expect(found, value, path)
        case _:
            with _explained(failing):
                _add(parent, key, value)


@contextmanager
def _explained(prefix: str) -> Iterator[None]:
    """Puts a prefix before the text of a refusal."""
    try:
        yield
    except PatchError as e:
        raise PatchError(f"{prefix}: {e}") from None


def _expect(found: Any, wanted: Any, path: str) -> None:
    same = orjson.dumps(found, option=orjson.OPT_SORT_KEYS) == orjson.dumps(wanted, option=orjson.OPT_SORT_KEYS)
    if not same:
        raise PatchError(f"testing value {path} failed: test failed")


def _place(document: Any, path: str, lacking: str) -> tuple[Any, str]:
    """The object or list in which a path ends, and its last step there. Raises PatchError, of the text `lacking`."""
    steps = [s.replace("~1", "/").replace("~0", "~") for s in path.split("/")[1:]]
    value = document
    for step in steps[:-1]:
        try:
            value = _get(value, step)
        except PatchError:
            value = None
        if not isinstance(value, dict | list):
            break
    if not steps or not isinstance(value, dict | list):
        raise PatchError(f"{lacking}{_MISSING}")
    return value, steps[-1]


def _get(parent: Any, key: str) -> Any:
    return parent.get(key) if isinstance(parent, dict) else parent[_index(parent, key)]


def _index(items: list[Any], step: str, size: int | None = None) -> int:
    """The index that a step means in a list of `size` items; negative ones count from the end."""
    size = len(items) if size is None else size
    if not _NUMBER.fullmatch(step):
        raise PatchError(f"value was not a proper array index: '{step}'")
    index = int(step)
    if not -size <= index < size:
        raise PatchError(f"Unable to access invalid index: {index}")
    return index + size if index < 0 else index


def _add(parent: Any, key: str, value: Any) -> None:
    if isinstance(parent, dict):
        parent[key] = value
    else:
        parent.insert(len(parent) if key == "-" else _index(parent, key, len(parent) + 1), value)


def _remove(parent: Any, key: str) -> None:
    if isinstance(parent, list):
        del parent[_index(parent, key)]
    elif key in parent:
        del parent[key]
    else:
        raise PatchError(f"Unable to remove nonexistent key: {key}: missing value")
