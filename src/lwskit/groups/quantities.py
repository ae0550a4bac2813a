"""Quantities of an object spelled as the API's types spell them (`1000m` as `1`), with nothing else looked at. Pure.

Where quantities are follows from the table of types: a walk is made of it that goes nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from lwskit.runtime import quantity, typed

Walk = Callable[[Any], Any]
"""From a value to the one with canonical quantities: the same object where nothing changes, else a copy."""

_MOST: Final = 10_000
"""Longer lists and maps are left as they are: nothing that can run has so many containers, volumes or resources."""


def walk_of(types: typed.TypeTable, name: str) -> Walk:
    """The walk of the values of a struct of a table. Raises KeyError for a type that the table does not have.

    What is no quantity, or lies where a value is not of its type, stays as it is; so do lists and maps of more than
    10,000 entries.
    """
    return _struct(name, types) or _kept


def _walk(ref: typed.TypeRef, types: typed.TypeTable) -> Walk | None:
    """The walk of a type's values; None where no quantity can be."""
    match ref.shape:
        case "scalar":
            return _spelled if ref.name == "quantity" else None
        case "struct":
            return _struct(ref.name, types)
        case "any":
            return None
    assert ref.element is not None
    inner = _walk(ref.element, types)
    if inner is None:
        return None
    return _each(list, enumerate, inner) if ref.shape == "list" else _each(dict, dict.items, inner)


def _struct(name: str, types: typed.TypeTable) -> Walk | None:
    found = [(field.name, _walk(field.type, types)) for field in types.fields(name).values()]
    walks = tuple((field, walk) for field, walk in found if walk is not None)
    if not walks:
        return None

    def struct(value: Any) -> Any:
        if type(value) is not dict:
            return value
        changed = value
        for field, walk in walks:
            if field in value:
                before = value[field]
                after = walk(before)
                if after is not before:
                    changed = {**changed, field: after}
        return changed

    return struct


def _each(kind: type, entries: Callable[[Any], Iterable[tuple[Any, Any]]], inner: Walk) -> Walk:
    """The walk of a list's or a map's values; `entries` are their places with what is there."""

    def each(value: Any) -> Any:
        if type(value) is not kind or len(value) > _MOST:
            return value
        changed = value
        for place, before in entries(value):
            after = inner(before)
            if after is not before:
                if changed is value:
                    changed = value.copy()
                changed[place] = after
        return changed

    return each


def _spelled(value: Any) -> Any:
    if value is None:
        return value
    try:
        text = quantity.canonical(value)
    except quantity.QuantityError:
        return value
    return value if text == value else text


def _kept(value: Any) -> Any:
    return value
