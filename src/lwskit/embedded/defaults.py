"""Defaults of built-in kinds: a table recorded from a real API server, and code for those that depend on other fields.

The table: {"types": {"core.v1.Container": {"terminationMessagePolicy": "File"}, …}}. A value that is an object with
the single key "nested" holds defaults of the struct that stands there, for that place only. Pure.
"""

from __future__ import annotations

import importlib.resources
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson

from lwskit.embedded.defaults_code import CONDITIONAL
from lwskit.embedded.schema import clone
from lwskit.runtime.objects import Obj
from lwskit.runtime.typed import TypeRef, TypeTable

Visit = Callable[[Any], None]


class Defaults:
    """Fills in the defaults of built-in objects, in place."""

    def __init__(self, types: TypeTable, table: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        if table is None:
            raw = importlib.resources.files("lwskit.embedded").joinpath("builtin-defaults.json").read_bytes()
            table = orjson.loads(raw)["types"]
        self._types = types
        self._table: Mapping[str, Mapping[str, Any]] = table or {}
        self._visits: dict[str, Visit | None] = {}
        self._building: set[str] = set()

    def apply(self, type_name: str, obj: Obj) -> None:
        """Set the defaults of an object of a struct type of the table, in place."""
        visit = self._visit(type_name)
        if visit is not None:
            visit(obj)

    def _visit(self, type_name: str) -> Visit | None:
        """What to do with values of a type, None for nothing; compiled once for each type."""
        if type_name in self._visits:
            return self._visits[type_name]
        if type_name in self._building or type_name not in self._types:
            return None
        self._building.add(type_name)
        children: list[tuple[str, Visit]] = []
        for name, field in self._types.fields(type_name).items():
            inner = self._element(field.type)
            if inner is not None:
                children.append((name, inner))
        self._building.discard(type_name)
        plain = {k: v for k, v in self._table.get(type_name, {}).items() if not _is_nested(v)}
        nested = {k: v["nested"] for k, v in self._table.get(type_name, {}).items() if _is_nested(v)}
        visit = _compose(plain, nested, children, CONDITIONAL.get(type_name))
        self._visits[type_name] = visit
        return visit

    def _element(self, ref: TypeRef) -> Visit | None:
        if ref.shape == "struct":
            return self._visit(ref.name)
        if ref.shape == "list" and ref.element is not None:
            inner = self._element(ref.element)
            return None if inner is None else lambda items: _each(inner, items)
        if ref.shape == "map" and ref.element is not None:
            inner = self._element(ref.element)
            return None if inner is None else lambda items: _each(inner, items.values())
        return None


def _each(visit: Visit, items: Iterable[Any]) -> None:
    for item in items:
        visit(item)


def _is_nested(value: Any) -> bool:
    return isinstance(value, dict) and list(value) == ["nested"]


def _compose(
    plain: Mapping[str, Any],
    nested: Mapping[str, Mapping[str, Any]],
    children: list[tuple[str, Visit]],
    code: Visit | None,
) -> Visit | None:
    if not (plain or nested or children or code):
        return None

    def visit(value: Any) -> None:
        if not isinstance(value, dict):
            return
        if code is not None:
            code(value)
        for name, default in plain.items():
            if value.get(name) in (None, ""):
                value[name] = clone(default)
        for name, inner in children:
            found = value.get(name)
            if found is not None:
                inner(found)
        for name, more in nested.items():
            found = value.get(name)
            if isinstance(found, dict):
                for key, default in more.items():
                    found.setdefault(key, clone(default))

    return visit
