"""Merging an applied configuration into an object, by the structure of its type. Pure; results may share parts.

Source: Kubernetes documentation, "Server-Side Apply", on merge strategy.
"""

from __future__ import annotations

from typing import Any

import orjson

from lwskit.embedded.strategic import go_text
from lwskit.embedded.structure import Node

_MISSING: Any = object()


class UndeclaredError(Exception):
    """The configuration has a field that its type does not have, or a value of another form."""

    def __init__(self, path: str, detail: str) -> None:
        super().__init__(f"{path}: {detail}")
        self.path = path


def check(node: Node, value: Any, path: str = "") -> None:
    """Raises UndeclaredError when the value has fields that the type lacks."""
    if value is None or node.shape == "deduced":
        return
    if node.shape == "leaf":
        _check_scalar(node.scalar, value, path)
        return
    if node.shape == "map":
        if not isinstance(value, dict):
            raise UndeclaredError(path, f"expected map, got {_shown(value)}")
        for name, item in value.items():
            child = node.child(name)
            if child is None:
                raise UndeclaredError(f"{path}.{name}", "field not declared in schema")
            check(child, item, f"{path}.{name}")
        return
    if not isinstance(value, list):
        raise UndeclaredError(path, f"expected list, got {_shown(value)}")
    seen: set[str] = set()
    for i, item in enumerate(value):
        if node.shape == "keyed" and not isinstance(item, dict):
            raise UndeclaredError(path, f"element {i}: associative list with keys may not have non-map elements")
        if node.shape == "keyed" and all(item.get(k) is None and node.defaults.get(k) is None for k in node.keys):
            raise UndeclaredError(
                path,
                f"element {i}: associative list with keys has an element that omits all key fields "
                f"{list_text(node.keys)} (and doesn't have default values for any key fields)",
            )
        key = node.item_key(item)
        if key in seen:
            raise UndeclaredError(path, f"duplicate entries for key [{_key_text(node, item)}]")
        seen.add(key)
        if node.element is not None:
            check(node.element, item, f"{path}[{_key_text(node, item)}]")


def _check_scalar(scalar: str, value: Any, path: str) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if scalar == "numeric" and not number:
        raise UndeclaredError(path, f"expected numeric (int or float), got {_GO_NAMES[type(value)]}")
    if scalar == "string" and not isinstance(value, str):
        raise UndeclaredError(path, f"expected string, got {_shown(value)}")
    if scalar == "boolean" and not isinstance(value, bool):
        raise UndeclaredError(path, f"expected boolean, got {_shown(value)}")


_GO_NAMES = {
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}


def _shown(value: Any) -> str:
    """A value as the real server's texts print it."""
    return "&{" + go_text(value) + "}"


def list_text(names: tuple[str, ...]) -> str:
    """Names in brackets, quoted."""
    return "[" + " ".join(f'"{n}"' for n in names) + "]"


def _key_text(node: Node, item: Any) -> str:
    if node.shape == "set":
        return f"={orjson.dumps(item).decode()}"
    found = {k: item.get(k, node.defaults.get(k)) for k in node.keys}
    return ",".join(f'{k}="{v}"' if isinstance(v, str) else f"{k}={v}" for k, v in sorted(found.items()))


def merge(node: Node, live: Any, config: Any) -> Any:
    """The live value with everything that the configuration says; what it does not mention stays."""
    shape = node.shape
    if shape == "deduced":
        shape = "map" if isinstance(live, dict) and isinstance(config, dict) else "leaf"
    if shape == "map":
        if isinstance(config, dict):
            if not isinstance(live, dict) or not live:
                return dict(config)
            out = dict(live)
            for name, item in config.items():
                child = node.child(name)
                if name in live and child is not None:
                    out[name] = merge(child, live[name], item)
                else:
                    out[name] = item
            return out
        return live if config is None and live else config
    if shape in ("keyed", "set"):
        if isinstance(config, list):
            return _merge_lists(node, live, config) if isinstance(live, list) and live else list(config)
        return live if config is None and live else config
    return config


def _merge_lists(node: Node, live: list[Any], config: list[Any]) -> list[Any]:
    """Both lists' items: the configuration's order holds among its own, live ones keep their place between them."""
    ours = [(node.item_key(i), i) for i in live]
    theirs = [(node.item_key(i), i) for i in config]
    old = dict(ours)
    new = dict(theirs)
    shared = [k for k, _ in theirs if k in old]
    out: list[Any] = []
    done: set[str] = set()
    i = j = 0
    while i < len(ours) or j < len(theirs):
        if i < len(ours):
            key, item = ours[i]
            if key not in new:
                out.append(item)
                i += 1
                continue
            awaited = next((k for k in shared if k not in done), None)
            at_same = j < len(theirs) and theirs[j][0] == key
            if not at_same and (key in done or (awaited is not None and awaited != key)):
                # An item of the configuration whose turn comes later, or came before.
                i += 1
                continue
        if j < len(theirs):
            key, item = theirs[j]
            j += 1
            if i < len(ours) and ours[i][0] == key:
                i += 1
            if key in done:
                continue
            done.add(key)
            element = node.element
            out.append(merge(element, old[key], item) if key in old and element is not None else item)
    return out
