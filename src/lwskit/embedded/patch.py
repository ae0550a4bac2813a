"""JSON patch and merge patch. Pure; results share nothing with the patch, but may share with the document.

Sources: RFC 6902, RFC 6901, RFC 7386.
"""

from __future__ import annotations

from typing import Any

from lwskit.embedded.schema import clone


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

    Raises PatchError for a patch that is malformed or does not fit the document.
    """
    if not isinstance(operations, list):
        raise PatchError("json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp", malformed=True)
    root = [document]
    for operation in operations:
        if not isinstance(operation, dict) or "op" not in operation or "path" not in operation:
            raise PatchError("an operation needs op and path", malformed=True)
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
                raise PatchError(f"testing value {path} failed: test failed")
        case _:
            raise PatchError(f"Unexpected kind: {op}")


def _value(operation: dict[str, Any]) -> Any:
    return operation.get("value")


def _steps(path: str) -> list[str]:
    if path == "":
        return []
    return [s.replace("~1", "/").replace("~0", "~") for s in path.split("/")[1:]]


def _missing(op: str, path: str) -> PatchError:
    kind = "doc is missing path" if op in ("add", "copy", "move") else "doc is missing key"
    if op == "remove":
        return PatchError(
            f"remove operation does not apply: doc is missing path: {path!r}: missing value".replace("'", '"')
        )
    if op == "replace":
        return PatchError(f"replace operation does not apply: doc is missing path: {path}: missing value")
    return PatchError(f"{op} operation does not apply: {kind}: {path}: missing value")


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
