"""Rules for the names that are made of those of a DisaggregatedSet and its roles.

Specification: 50 §3, §19.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from lwskit.api import disaggregated_names as names
from lwskit.api.names import MAX_NAME_LENGTH
from lwskit.api.validation.errors import FieldError, invalid, shown
from lwskit.api.validation.groups import hash_suffix, is_hashed
from lwskit.api.validation.roles import Role

_DASHES: Final = 3
"""Of the name of a child: set, slice, revision and role with one between each two."""
_LOOKED_AT: Final = 1024
"""Characters of a name that are read for that of a scaler, which is too long by far with so many."""
_REVISION_HASH: Final = 11
"""What StatefulSets put behind their names in a label of their pods: a dash and up to ten characters."""


def scaler_faults(set_name: str, roles: Sequence[Role]) -> list[FieldError]:
    """Names of scalers that are too long, and those that two of them would have."""
    errors: list[FieldError] = []
    taken: dict[str, str] = {}
    for path, name, generated in _scalers(set_name, roles):
        if len(generated) > names.MAX_SCALER_NAME:
            detail = f"would produce scaler name {shown(generated)} exceeding {names.MAX_SCALER_NAME} characters"
            errors.append(invalid(path, name, detail))
        if generated in taken:
            errors.append(invalid(path, name, f"generated scaler name collides with {taken[generated]}"))
        taken.setdefault(generated, path)
    return errors


def _scalers(set_name: str, roles: Sequence[Role]) -> Iterator[tuple[str, str, str]]:
    """Of each scaler that the set will have: the path and the value of the name's field, and the scaler's name.

    A role with the name of another is the schema's business.
    """
    seen: set[tuple[str, ...]] = set()
    whole = set_name[:_LOOKED_AT]
    for role in roles:
        if (role.name,) in seen:
            continue
        seen.add((role.name,))
        name = role.name[:_LOOKED_AT]
        if role.is_external and not role.subroles:
            yield role.reader.at("name"), role.name, names.scaler_name(whole, name)
        for sub in role.subroles:
            if sub.is_external and (role.name, sub.name) not in seen:
                yield sub.reader.at("name"), sub.name, names.scaler_name(whole, name, sub.name[:_LOOKED_AT])
            seen.add((role.name, sub.name))


def length_faults(set_name: str, roles: Sequence[Role], slices: int) -> list[FieldError]:
    """Roles whose LeaderWorkerSets would have names that are too long for what is named after them in turn."""
    errors: list[FieldError] = []
    fixed = _DASHES + len(str(max(slices - 1, 0))) + names.REVISION_LENGTH
    for role in roles:
        suffix = _suffix(role)
        length, limit = len(set_name) + len(role.name) + fixed + suffix, MAX_NAME_LENGTH - fixed - suffix
        if length > MAX_NAME_LENGTH:
            detail = (
                f"the generated names ({length} chars) would exceed the DNS-1035 limit of {MAX_NAME_LENGTH} characters "
                "(accounting for StatefulSet revision hash labels); reduce the DisaggregatedSet name and/or role name "
                f"(combined limit: {limit} characters)"
            )
            errors.append(invalid(role.reader.at("name"), role.name, detail))
    return errors


def _suffix(role: Role) -> int:
    """Characters behind the name of a child in the longest name or label that is made of it."""
    if is_hashed(role.spec):
        return hash_suffix(role.size)
    return 1 + len(str(max((role.replicas or 0) - 1, 0))) + _REVISION_HASH
