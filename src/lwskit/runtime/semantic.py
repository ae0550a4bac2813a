"""Whether two objects mean the same, however they are spelled. Pure (specification: 70 §12, deep compare)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from lwskit.runtime import quantity
from lwskit.runtime.patch import same

QUANTITY_MAPS = frozenset(
    {"requests", "limits", "capacity", "overhead", "allocatable", "hard", "used", "allocatedResources"}
)
"""Fields that hold a map of resource quantities by name (Kubernetes API reference)."""
QUANTITY_FIELDS = frozenset({"divisor", "sizeLimit", "averageValue"})
"""Fields that hold one quantity."""

FREE_MAPS = frozenset({"annotations", "labels", "matchLabels", "nodeSelector", "data", "stringData", "binaryData"})
"""Maps whose keys are the users' own, so that no key below them says what its value is."""

EMPTY_MEANS_ABSENT = (
    FREE_MAPS
    | QUANTITY_MAPS
    | {"metadata", "spec", "status", "resources", "strategy", "updateStrategy", "volumeAttributes", "parameters"}
)
"""Fields whose empty map says no more than its absence. Elsewhere it may say something: `emptyDir: {}` is a volume,
and an empty selector selects everything."""

_TIME_FIELD = re.compile(r"(Time|Timestamp|At)$")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")

Path = tuple[str, ...]


def semantic_equal(a: Any, b: Any) -> bool:
    """Whether two objects, or parts of them, mean the same.

    Quantities and times are compared by value where a field is known to hold one; null, an empty list, and the empty
    map of a field in EMPTY_MEANS_ABSENT equal no value at all. Everything else is compared as JSON. When in doubt the
    answer is False: an update too many does no harm. Specification: 70 §12.
    """
    return _equal(a, b, ())


def is_quantity(path: Path) -> bool:
    """Whether the value at a path of field names (list places left out) is a resource quantity."""
    return bool(path) and (path[-1] in QUANTITY_FIELDS or (len(path) > 1 and path[-2] in QUANTITY_MAPS))


def same_quantity(a: Any, b: Any) -> bool:
    """Whether two values are quantities of the same amount; False for what is none."""
    try:
        return quantity.equal(a, b)
    except ValueError:
        return False


def _equal(a: Any, b: Any, path: Path) -> bool:
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return all(_equal(a.get(key), b.get(key), (*path, key)) for key in {**a, **b})
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_equal(x, y, path) for x, y in zip(a, b, strict=True))
    if a is None or b is None:
        return _absent(a, path) and _absent(b, path)
    if same(a, b):
        return True
    if any(step in FREE_MAPS for step in path[:-1]):
        return False
    return (is_quantity(path) and same_quantity(a, b)) or (_is_time(path) and _same_time(a, b))


def _absent(value: Any, path: Path) -> bool:
    if isinstance(value, Mapping):
        if value:
            # A map of nothing but absent fields is as good as an empty one.
            return _empty_allowed(path) and all(_absent(inner, (*path, key)) for key, inner in value.items())
        return _empty_allowed(path)
    return value is None or value == []


def _empty_allowed(path: Path) -> bool:
    # In a CustomResourceDefinition, `subresources: {status: {}}` switches one on.
    return not path or (path[-1] in EMPTY_MEANS_ABSENT and "subresources" not in path)


def _is_time(path: Path) -> bool:
    return bool(path) and _TIME_FIELD.search(path[-1]) is not None


def _same_time(a: Any, b: Any) -> bool:
    if not (isinstance(a, str) and isinstance(b, str) and _TIME.fullmatch(a) and _TIME.fullmatch(b)):
        return False
    try:
        return datetime.fromisoformat(a) == datetime.fromisoformat(b)
    except ValueError:
        return False
