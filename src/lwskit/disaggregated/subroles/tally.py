"""How many groups of a child each sub-role has: the annotations that say so, read, checked and written. Pure.

Specification: 50 §3, §13.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from lwskit.api import disaggregated_names as names
from lwskit.api import names as base
from lwskit.disaggregated.model import Child
from lwskit.disaggregated.spec import Role
from lwskit.groups.model import DecisionError
from lwskit.runtime.objects import annotations_of

Counts = Mapping[str, int]
"""Groups by the name of the sub-role."""

_SHOWN = 60


def issued(child: Child) -> Counts | None:
    """How the child's `spec.replicas` divides, None where nothing says so yet.

    Raises DecisionError for an annotation that cannot be read, or whose counts do not add up to `spec.replicas`.
    """
    found = _counts(child, names.SUBROLE_REPLICAS_ANNOTATION)
    if found is not None and sum(found.values()) != child.replicas:
        raise DecisionError(
            f"annotation {names.SUBROLE_REPLICAS_ANNOTATION} of LeaderWorkerSet {child.name} adds up to "
            f"{sum(found.values())} groups and spec.replicas is {child.replicas}; nothing is changed there until they "
            f"agree: set spec.replicas to {sum(found.values())}, or remove the annotation to have the groups shared "
            "out anew"
        )
    return found


def initial(child: Child) -> Counts | None:
    """The counts that its rollout goes by, None where nothing says so yet.

    Raises DecisionError for an annotation that cannot be read, or that does not add up to `initial-replicas`.
    """
    found = _counts(child, names.INITIAL_SUBROLE_REPLICAS_ANNOTATION)
    if found is not None and child.initial is not None and sum(found.values()) != child.initial:
        raise DecisionError(
            f"annotation {names.INITIAL_SUBROLE_REPLICAS_ANNOTATION} of LeaderWorkerSet {child.name} adds up to "
            f"{sum(found.values())} and {names.INITIAL_REPLICAS_ANNOTATION} is {child.initial}; nothing is changed "
            "there until they agree: remove both annotations to have them made anew from spec.replicas"
        )
    return found


def planned(child: Child) -> Counts | None:
    """The counts that the child is on its way to, None where no change is unfinished.

    Raises DecisionError for an annotation that cannot be read.
    """
    return _counts(child, names.SUBROLE_PLAN_ANNOTATION)


def _counts(child: Child, key: str) -> Counts | None:
    text = annotations_of(child.obj).get(key)
    if text is None:
        return None
    found, fault = _read(text)
    if fault:
        raise DecisionError(
            f"annotation {key} of LeaderWorkerSet {child.name} is {_short(text)}: {fault}; it must be a JSON object of "
            f"whole numbers from 0 to {base.INT32_MAX} that add up to no more"
        )
    return found


@lru_cache(maxsize=1024)
def _read(text: str) -> tuple[Counts, str]:
    """The counts that a text says, and what is wrong with it."""
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return {}, "no JSON"
    if not isinstance(found, dict):
        return {}, "no JSON object"
    for name, count in found.items():
        if isinstance(count, bool) or not isinstance(count, int):
            return {}, f"the count of {_short(name)} is no whole number"
        if not 0 <= count <= base.INT32_MAX:
            return {}, f"the count of {_short(name)} is out of range"
    if sum(found.values()) > base.INT32_MAX:
        return {}, "the sum is out of range"
    return MappingProxyType(found), ""


def _short(value: object) -> str:
    if isinstance(value, str):
        return repr(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…")
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _require(counts: Counts) -> None:
    """Raises DecisionError for what is no mapping from names to whole numbers."""
    if not isinstance(counts, Mapping):
        raise DecisionError(f"{_short(counts)} are no counts of sub-roles; it must be a mapping from names to numbers")
    for name, count in counts.items():
        if not isinstance(name, str) or type(count) is not int or count < 0:
            raise DecisionError(
                f"sub-role {_short(name)} is to have {_short(count)} groups; a name is a text, and a count a whole "
                "number, 0 or more"
            )


def written(counts: Counts) -> str:
    """Counts as an annotation says them. Raises DecisionError for what are no counts."""
    _require(counts)
    return json.dumps(dict(counts), sort_keys=True, separators=(",", ":"))


def fitted(wanted: Counts, total: int) -> Counts:
    """`total` groups shared out where nothing says how: in the order of names each gets what is wanted of it while
    there are any, and the first one what is left over (50 §13).

    Raises DecisionError for groups that there is no sub-role for, and for what are no counts.
    """
    _require(wanted)
    if type(total) is not int or total < 0:
        raise DecisionError(f"{_short(total)} groups are to be shared out; it must be a whole number, 0 or more")
    if total and not wanted:
        raise DecisionError(f"{total} groups are to be shared out among no sub-roles; name one at least")
    found: dict[str, int] = {}
    left = total
    for name in sorted(wanted):
        found[name] = min(wanted[name], left)
        left -= found[name]
    if left:
        found[min(wanted)] += left
    return found


def of(child: Child, role: Role | None) -> Counts:
    """How the child's groups divide over the parts of its role, by sub-role; `{"": n}` where there are none.

    `role` is the role in the set's spec, None where it has it no more: then the child stays divided as it was. Names
    that the role no longer has are in it as long as groups are issued to them. Before the first use all groups are of
    the first name. Raises DecisionError as `issued` does.
    """
    return _by_part(role, issued(child), child.replicas)


def initial_of(child: Child, role: Role | None) -> Counts:
    """What the rollout of the child goes by, over the same parts; without any notes it is as `of` has it.

    Raises DecisionError as `initial` does.
    """
    return _by_part(role, initial(child), child.initial if child.initial is not None else child.replicas)


def _by_part(role: Role | None, found: Counts | None, total: int) -> Counts:
    if role is None:
        return found if found is not None else {"": total}
    if not role.subroles:
        return {"": total}
    wanted = dict.fromkeys((sub.name for sub in role.subroles), 0)
    return {**wanted, **(found if found is not None else fitted(wanted, total))}
