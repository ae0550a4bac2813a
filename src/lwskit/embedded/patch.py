"""JSON patch and merge patch. Pure; results share nothing with the patch, but may share with the document.

Sources: RFC 6902, RFC 6901, RFC 7386.
"""

from __future__ import annotations

from typing import Any

from lwskit.embedded.schema import clone
from lwskit.runtime.errors import Invalid, InvalidRequest


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

    Raises InvalidRequest for a malformed patch and Invalid for one that does not fit the document.
    """
    if not isinstance(operations, list):
        raise InvalidRequest(
            "error decoding patch: json: cannot unmarshal object into Go value of type jsonpatch.Patch"
        )
    root = [document]
    for operation in operations:
        if not isinstance(operation, dict) or "op" not in operation or "path" not in operation:
            raise InvalidRequest("error decoding patch: an operation needs op and path")
        _apply(root, operation)
    return root[0]


def _apply(root: list[Any], operation: dict[str, Any]) -> None:
    op, path = operation["op"], operation["path"]
    steps = _steps(path)
    match op:
        case "add":
            _add(root, steps, clone(_value(operation)), op, path)
        case "remove":
            _remove(root, steps, op, path)
        case "replace":
            _find(root, steps, op, path)
            _set(root, steps, clone(_value(operation)))
        case "move":
            source = operation.get("from", "")
            value = _find(root, _steps(source), op, path)
            _remove(root, _steps(source), op, source)
            _add(root, steps, value, op, path)
        case "copy":
            value = _find(root, _steps(operation.get("from", "")), op, path)
            _add(root, steps, clone(value), op, path)
        case "test":
            if _find(root, steps, op, path, missing_ok=True) != operation.get("value"):
                raise Invalid(
                    "the server rejected our request due to an error in our request",
                    details={"causes": [{"message": f"testing value {path} failed", "reason": "FieldValueInvalid"}]},
                )
        case _:
            raise InvalidRequest(f'error decoding patch: Unexpected kind: "{op}"')


def _value(operation: dict[str, Any]) -> Any:
    return operation.get("value")


def _steps(path: str) -> list[str]:
    if path == "":
        return []
    return [s.replace("~1", "/").replace("~0", "~") for s in path.split("/")[1:]]


def _missing(op: str, path: str) -> Invalid:
    del op, path
    return Invalid("the server rejected our request due to an error in our request", details={})


def _index(items: list[Any], step: str, limit: int) -> int | None:
    if step.isdecimal() and int(step) < limit:
        return int(step)
    if step.startswith("-") and step[1:].isdecimal() and 0 < int(step[1:]) <= len(items):
        return len(items) - int(step[1:])
    return None


def _find(root: list[Any], steps: list[str], op: str, path: str, missing_ok: bool = False) -> Any:
    value = root[0]
    for step in steps:
        if isinstance(value, dict) and step in value:
            value = value[step]
            continue
        if isinstance(value, list):
            index = _index(value, step, len(value))
            if index is not None:
                value = value[index]
                continue
        if missing_ok:
            return None
        raise _missing(op, path)
    return value


def _set(root: list[Any], steps: list[str], value: Any) -> None:
    if not steps:
        root[0] = value
        return
    parent = _find(root, steps[:-1], "replace", "")
    if isinstance(parent, list):
        index = _index(parent, steps[-1], len(parent))
        assert index is not None
        parent[index] = value
    else:
        parent[steps[-1]] = value


def _add(root: list[Any], steps: list[str], value: Any, op: str, path: str) -> None:
    if not steps:
        root[0] = value
        return
    parent = _find(root, steps[:-1], op, path)
    last = steps[-1]
    if isinstance(parent, dict):
        parent[last] = value
    elif isinstance(parent, list):
        index = len(parent) if last == "-" else _index(parent, last, len(parent) + 1)
        if index is None:
            raise _missing(op, path)
        parent.insert(index, value)
    else:
        raise _missing(op, path)


def _remove(root: list[Any], steps: list[str], op: str, path: str) -> None:
    _find(root, steps, op, path)
    if not steps:
        root[0] = None
        return
    parent = _find(root, steps[:-1], op, path)
    if isinstance(parent, list):
        index = _index(parent, steps[-1], len(parent))
        assert index is not None
        del parent[index]
    else:
        del parent[steps[-1]]
