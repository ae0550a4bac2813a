"""What a change of a DisaggregatedSet does to its groups: what is made anew, and what goes. Pure.

Specification: 50 §4.2, §6, §12.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from lwskit.disaggregated import revision
from lwskit.disaggregated.spec import Role, read
from lwskit.lint.changes import differences, listed
from lwskit.lint.findings import GROUPS_REMOVED, ROLLS_GROUPS, Fault
from lwskit.runtime.objects import Obj
from lwskit.runtime.typed import DecodeError

_COUNTED: Final = "set scaling.mode to External for a role that something else counts"


def check(old: Obj, new: Obj) -> Iterator[Fault]:
    """What follows from storing `new` in place of `old`, both with their defaults."""
    causes = _causes(old, new)
    if causes:
        text = (
            "the set gets a new revision, for which every group of every role will be made anew, whether its role has "
            f"changed or not: {'; '.join(cause.told for cause in causes)}"
        )
        yield Fault(ROLLS_GROUPS, causes[0].path, text)
    before, after = read(old), read(new)
    if after.slices < before.slices:
        gone = before.slices - after.slices
        which = "1 slice is" if gone == 1 else f"{gone} slices are"
        text = f"{which} removed at once with all groups: slices goes from {before.slices} to {after.slices}"
        yield Fault(GROUPS_REMOVED, "spec.slices", text)
    for index, role in enumerate(after.roles):
        former = before.role(role.name)
        if former is not None:
            yield from _fewer(former, role, f"spec.roles[{index}]")


def _fewer(former: Role, role: Role, path: str) -> Iterator[Fault]:
    """Counts of a role that stays, or of its sub-roles, that get lower."""
    if not role.subroles and not former.subroles:
        if not role.is_external and not former.is_external:
            yield from _removed(f"role {role.name}", former.replicas, role.replicas, f"{path}.spec.replicas")
        return
    counts = {sub.name: sub for sub in former.subroles}
    for index, sub in enumerate(role.subroles):
        was = counts.get(sub.name)
        if was is not None and not sub.is_external and not was.is_external:
            what = f"sub-role {sub.name} of role {role.name}"
            yield from _removed(what, was.replicas, sub.replicas, f"{path}.subRoles[{index}].replicas")


def _removed(what: str, before: int, after: int, path: str) -> Iterator[Fault]:
    if after >= before:
        return
    gone = before - after
    which = "1 group is" if gone == 1 else f"{gone} groups are"
    text = f"{which} removed of {what} in each slice: replicas goes from {before} to {after}"
    yield Fault(GROUPS_REMOVED, path, text, _COUNTED)


class _Cause(NamedTuple):
    """What makes a new revision: the first field of a role, and all of it in words."""

    path: str
    told: str


def _causes(old: Obj, new: Obj) -> list[_Cause]:
    """The roles that make a new revision: those that change in the order that the changed set has, then lost ones."""
    try:
        before, after = (_roles(revision.hashed(ds)) for ds in (old, new))
    except DecodeError:
        return []
    found: list[_Cause] = []
    for index, role in enumerate(new["spec"]["roles"]):
        name, place = role["name"], f"spec.roles[{index}]"
        if name not in before:
            found.append(_Cause(place, f"role {name} is new, {place}"))
        elif fields := list(differences(before[name], after[name], place)):
            found.append(_Cause(fields[0], f"role {name} has changed in {listed(fields)}"))
    lost = [name for name in before if name not in after]
    return [*found, *(_Cause("spec.roles", f"role {name} is gone") for name in lost)]


def _roles(hashed: str) -> Mapping[str, Any]:
    return {role["name"]: role for role in json.loads(hashed)}
