"""Merging an applied configuration into an object, by the structure of its type. Pure; results may share parts.

Source: Kubernetes documentation, "Server-Side Apply", on merge strategy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from lwskit.embedded.strategic import GO_TYPES, go_text
from lwskit.embedded.structure import Node

_MISSING: Any = object()


class UndeclaredError(Exception):
    """The configuration has fields that its type does not have, or values of another form."""


def check(node: Node, value: Any) -> None:
    """Raises UndeclaredError when the value has fields that the type lacks, or values that it does not take."""
    errors = list(_errors(node, value, ""))
    if errors:
        texts = [f"{path}: {detail}" if path else detail for path, detail in errors]
        raise UndeclaredError(texts[0] if len(texts) == 1 else "\n".join(["errors:", *(f"  {t}" for t in texts)]))


def broken(node: Node, value: Any) -> bool:
    """Whether a stored value is not of its type; that keys stand there twice does not matter then."""
    return any(not detail.startswith("duplicate entries") for _, detail in _errors(node, value, ""))


def _errors(node: Node, value: Any, path: str) -> Iterator[tuple[str, str]]:
    if value is None or node.shape == "deduced":
        return
    if node.shape == "leaf":
        if node.inside is not None:
            yield from _errors(node.inside, value, path)
        else:
            yield from _scalar_errors(node.scalar, value, path)
    elif node.shape == "map":
        if not isinstance(value, dict):
            yield path, f"expected map, got {_shown(value)}"
            return
        for name, item in value.items():
            child = node.child(name)
            if child is None:
                yield f"{path}.{name}", "field not declared in schema"
                return
            yield from _errors(child, item, f"{path}.{name}")
    elif not isinstance(value, list):
        yield path, f"expected list, got {_shown(value)}"
    else:
        yield from _list_errors(node, value, path)


def _list_errors(node: Node, items: list[Any], path: str) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for i, item in enumerate(items):
        if node.shape == "list":
            if node.element is not None:
                yield from _errors(node.element, item, f"{path}[{i}]")
            continue
        broken = _item_error(node, item)
        if broken:
            yield path, f"element {i}: {broken}"
            return
        key = node.item_key(item)
        text = _key_text(node, item)
        if key in seen:
            yield path, f"duplicate entries for key [{text}]"
        seen.add(key)
        element = node.element or node.inside
        if element is not None:
            yield from _errors(element, item, f"{path}[{text}]")


def _item_error(node: Node, item: Any) -> str:
    """Why an item of a keyed list or a set has no key; empty if it has one."""
    if node.shape == "set":
        if isinstance(item, dict):
            return "associative list without keys has an element that's a map type"
        if isinstance(item, list):
            return "not supported: associative list with lists as elements"
        return "associative list without keys has an element that's an explicit null" if item is None else ""
    if item is None:
        return "associative list with keys may not have a null element"
    if not isinstance(item, dict):
        return "associative list with keys may not have non-map elements"
    if all(k not in item and node.defaults.get(k) is None for k in node.keys):
        names = list_text(node.keys)
        return (
            f"associative list with keys has an element that omits all key fields {names} "
            "(and doesn't have default values for any key fields)"
        )
    return ""


def _scalar_errors(scalar: str, value: Any, path: str) -> Iterator[tuple[str, str]]:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if scalar == "numeric" and not number:
        yield path, f"expected numeric (int or float), got {GO_TYPES[type(value)]}"
    if scalar == "string" and not isinstance(value, str):
        yield path, f"expected string, got &value.valueUnstructured{{Value:{_go_syntax(value)}}}"
    if scalar == "boolean" and not isinstance(value, bool):
        yield path, f"expected boolean, got {_shown(value)}"
    if scalar == "any" and isinstance(value, dict | list):
        yield path, f"expected any scalar, got {_shown(value)}"


def _shown(value: Any) -> str:
    """A value as the real server's texts print it."""
    return "&{" + go_text(value) + "}"


def _go_syntax(value: Any) -> str:
    """A value as a literal of the server's language."""
    if isinstance(value, dict):
        pairs = ", ".join(f"{orjson.dumps(k).decode()}:{_go_syntax(v)}" for k, v in sorted(value.items()))
        return f"map[string]interface {{}}{{{pairs}}}"
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(_go_syntax(v) for v in value) + "}"
    if value is None:
        return "interface {}(nil)"
    return orjson.dumps(value).decode()


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
