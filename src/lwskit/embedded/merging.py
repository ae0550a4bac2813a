"""Merging an applied configuration into an object, by the structure of its type. Pure; results may share parts.

Source: Kubernetes documentation, "Server-Side Apply", on merge strategy.
"""

from __future__ import annotations

from typing import Any

from lwskit.embedded.structure import Node

_MISSING: Any = object()


class UndeclaredError(Exception):
    """The configuration has a field that its type does not have, or a value of another form."""

    def __init__(self, path: str, detail: str) -> None:
        super().__init__(f"{path}: {detail}")
        self.path = path


def check(node: Node, value: Any, path: str = "") -> None:
    """Raises UndeclaredError when the value has fields that the type lacks."""
    if value is None or node.shape in ("leaf", "deduced"):
        return
    if node.shape == "map":
        if not isinstance(value, dict):
            raise UndeclaredError(path, f"expected map, got {value!r}")
        for name, item in value.items():
            child = node.child(name)
            if child is None:
                raise UndeclaredError(f"{path}.{name}", "field not declared in schema")
            check(child, item, f"{path}.{name}")
        return
    if not isinstance(value, list):
        raise UndeclaredError(path, f"expected list, got {value!r}")
    seen: set[str] = set()
    for i, item in enumerate(value):
        if node.shape == "keyed" and not isinstance(item, dict):
            raise UndeclaredError(path, f"element {i}: associative list with keys may not have non-map elements")
        key = node.item_key(item)
        if key in seen:
            raise UndeclaredError(path, f"duplicate entries for key [{_key_text(node, item)}]")
        seen.add(key)
        for name in node.keys:
            if item.get(name) is None and node.defaults.get(name) is None:
                raise UndeclaredError(
                    path,
                    f"element {i}: associative list with keys has an element that omits key field "
                    f'"{name}" (and doesn\'t have default value)',
                )
        if node.element is not None:
            check(node.element, item, f"{path}[{_key_text(node, item)}]")


def _key_text(node: Node, item: Any) -> str:
    if node.shape == "set":
        return f"={item!r}"
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
