"""Functions over lists, sets and maps. Pure.

Sources: Kubernetes documentation, "Common Expression Language in Kubernetes", on list and set functions; cel-go's
documentation of its lists, sets and comprehensions extensions.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from lwskit.embedded.cel.functions import define
from lwskit.embedded.cel.standard import add
from lwskit.embedded.cel.values import Duration, EvaluationError, Map, Uint, compare, equal, is_list, no_overload

_SORTED = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")


@define("isSorted", *(f"(list({t})) -> bool" for t in _SORTED), member=True)
def _is_sorted(items: Any) -> bool:
    found = list(items)
    return all(compare(a, b) <= 0 for a, b in pairwise(found))


def _sum_of(zero: Any) -> Any:
    def total(items: Any) -> Any:
        found = zero
        for item in items:
            found = add(found, item)
        return found

    return total


for _name, _zero in (("int", 0), ("uint", Uint(0)), ("double", 0.0), ("duration", Duration(0))):
    define("sum", f"(list({_name})) -> {_name}", member=True)(_sum_of(_zero))


def _extreme(name: str, sign: int) -> Any:
    def found(items: Any) -> Any:
        values = iter(items)
        best = next(values, values)
        if best is values:
            raise EvaluationError(f"{name} called on empty list")
        for value in values:
            with suppress(EvaluationError):  # What has no order is passed over.
                if compare(best, value) == sign:
                    best = value
        return best

    return found


define("min", *(f"(list({t})) -> {t}" for t in _SORTED), member=True)(_extreme("min", 1))
define("max", *(f"(list({t})) -> {t}" for t in _SORTED), member=True)(_extreme("max", -1))


@define("indexOf", "(list(A), A) -> int", member=True)
def _index_of(items: Any, wanted: Any) -> int:
    return next((i for i, item in enumerate(items) if equal(item, wanted)), -1)


@define("lastIndexOf", "(list(A), A) -> int", member=True)
def _last_index_of(items: Any, wanted: Any) -> int:
    return next((i for i in range(len(items) - 1, -1, -1) if equal(items[i], wanted)), -1)


@define("slice", "(list(T), int, int) -> list(T)", member=True)
def _slice(items: Any, start: int, end: int) -> list[Any]:
    text = f"cannot slice({start}, {end}), "
    if start < 0 or end < 0:
        raise EvaluationError(f"{text}negative indexes not supported")
    if start > end:
        raise EvaluationError(f"{text}start index must be less than or equal to end index")
    if len(items) < end:
        raise EvaluationError(f"{text}list is length {len(items)}")
    return list(items)[start:end]


@define("flatten", "(list(list(T))) -> list(T)", "(list(dyn), int) -> list(dyn)", member=True)
def _flatten(items: Any, depth: int = 1) -> list[Any]:
    if not is_list(items):
        raise no_overload()
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    found: list[Any] = []
    for item in items:
        if depth and is_list(item):
            found += _flatten(item, depth - 1)
        else:
            found.append(item)
    return found


@define("sort", *(f"(list({t})) -> list({t})" for t in _SORTED), member=True)
def _sort(items: Any) -> Any:
    return _sort_by(items, items)


@define("@sortByAssociatedKeys", *(f"(list(T), list({t})) -> list(T)" for t in _SORTED), member=True)
def _sort_by(items: Any, keys: Any) -> Any:
    values, order = list(items), list(keys)
    if any(type(k) is not type(order[0]) for k in order):
        raise EvaluationError("list elements must have the same type")
    places = sorted(range(len(values)), key=cmp_to_key(lambda a, b: compare(order[a], order[b])))
    return [values[i] for i in places]


@define("lists.range", "(int) -> list(int)")
def _range(count: int) -> list[int]:
    if count < 0:
        raise EvaluationError(f"lists.range: size must be non-negative, got {count}")
    return list(range(count))


@define("reverse", "(list(T)) -> list(T)", member=True)
def _reverse(items: Any) -> list[Any]:
    return list(items)[::-1]


@define("distinct", "(list(T)) -> list(T)", member=True)
def _distinct(items: Any) -> list[Any]:
    found: list[Any] = []
    simple: set[Any] = set()
    for item in items:
        if isinstance(item, str):
            if item not in simple:
                simple.add(item)
                found.append(item)
        elif not any(equal(item, other) for other in found):
            found.append(item)
    return found


@define("sets.contains", "(list(T), list(T)) -> bool")
def _contains(items: Any, wanted: Any) -> bool:
    found = list(items)
    return all(any(equal(item, one) for item in found) for one in wanted)


@define("sets.equivalent", "(list(T), list(T)) -> bool")
def _equivalent(one: Any, two: Any) -> bool:
    return _contains(one, two) and _contains(two, one)


@define("sets.intersects", "(list(T), list(T)) -> bool")
def _intersects(one: Any, two: Any) -> bool:
    found = list(one)
    return any(equal(item, other) for other in two for item in found)


@define("cel.@mapInsert", "(map(K, V), K, V) -> map(K, V)", "(map(K, V), map(K, V)) -> map(K, V)")
def _insert(target: Map, *more: Any) -> Map:
    made = Map((k, target.find(k)) for k in target)
    entries = [(k, more[0].find(k)) for k in more[0]] if len(more) == 1 else [more]
    for key, value in entries:
        made.put(key, value)
    return made
