"""Rules for a DisaggregatedSet that its CRD cannot say. All hold on create and on update: nothing is immutable.

Specification: 50 §19.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from lwskit.api import disaggregated_names as names
from lwskit.api.names import (
    DEFAULT_MAX_SURGE,
    DEFAULT_MAX_UNAVAILABLE,
    EXCLUSIVE_TOPOLOGY_ANNOTATION,
    INT32_MAX,
    ROLLING_UPDATE,
    SUBGROUP_EXCLUSIVE_TOPOLOGY_ANNOTATION,
)
from lwskit.api.validation import formats
from lwskit.api.validation.errors import FieldError, forbidden, invalid, not_supported, required, shown
from lwskit.api.validation.generated_names import length_faults, scaler_faults
from lwskit.api.validation.groups import identity_faults, restart_faults
from lwskit.api.validation.pace import amount, stuck
from lwskit.api.validation.reading import Reader
from lwskit.api.validation.roles import Role, roles_of

_TOPOLOGIES: Final = (EXCLUSIVE_TOPOLOGY_ANNOTATION, SUBGROUP_EXCLUSIVE_TOPOLOGY_ANNOTATION)
_NO_PARTITION: Final = (
    "partition is not supported by DisaggregatedSet; "
    "rolling updates are managed across roles by the DisaggregatedSet controller"
)
_RESERVED: Final = "label is reserved for controller-managed sub-role assignment"
_TOO_MANY_GROUPS: Final = "static replica targets exceed the maximum LWS replica count"
_ONE_SLICE: Final = "spec.slices > 1 is not supported while any role has scaling.mode: External (alpha restriction)"


def validate(new: Mapping[str, Any]) -> list[FieldError]:
    """Faults of a DisaggregatedSet that is to be stored, in the order of the rules; none is fine.

    Values that are not set count as their defaults; those of a wrong type are reported at their path.
    """
    errors: list[FieldError] = []
    spec = Reader(new.get("spec"), "spec", errors)
    roles = roles_of(spec)
    slices = spec.integer("slices")
    slices = names.DEFAULT_SLICES if slices is None else slices
    name = _name(new)
    for role in roles:
        errors += _rollout(role)
    for role in roles:
        errors += _reserved(role)
        errors += restart_faults(role.template)
        errors += identity_faults(role.spec, role.template, role.pace)
    for role in roles:
        errors += _subroles(role)
    errors += scaler_faults(name, roles)
    if slices > 1 and any(role.is_external or any(sub.is_external for sub in role.subroles) for role in roles):
        errors.append(forbidden(spec.at("slices"), _ONE_SLICE))
    errors += length_faults(name, roles, slices)
    errors += _placement(spec.child("placementPolicy"), roles)
    return list({str(error): error for error in errors}.values())


class Remark(NamedTuple):
    """What is accepted and does not do what its author may think: the field, and a sentence."""

    path: str
    text: str


def warnings(new: Mapping[str, Any]) -> list[str]:
    """What users are warned of when they store a DisaggregatedSet."""
    return [remark.text for remark in remarks(new)]


def remarks(new: Mapping[str, Any]) -> list[Remark]:
    """The same with the fields that it is about."""
    name = _name(new)
    told: list[Remark] = []
    if name and formats.dns_1035_label(name[: formats.LABEL_LENGTH]):
        text = (
            f"LeaderWorkerSets are named after {shown(name)}, and their names begin with a letter and have only lower "
            "case letters, digits and dashes: none of this set can be created"
        )
        told.append(Remark("metadata.name", text))
    for role in roles_of(Reader(new.get("spec"), "spec", [])):
        path = role.spec.at("replicas")
        if (role.written or 0) <= 1:
            continue
        if role.subroles:
            text = (
                f"role {shown(role.name)} defines subRoles: parent spec.replicas is ignored; "
                "replicas are the sum of sub-role targets"
            )
            told.append(Remark(path, text))
        elif role.is_external:
            text = (
                f"role {shown(role.name)} sets scaling.mode: External and spec.replicas: {role.written} — "
                "spec.replicas is ignored; drive replicas via DisaggregatedSetRoleScaler "
                f"{shown(names.scaler_name(name, role.name))} instead"
            )
            told.append(Remark(path, text))
    return told


def _name(ds: Mapping[str, Any]) -> str:
    meta = ds.get("metadata")
    name = meta.get("name") if isinstance(meta, dict) else None
    return name if isinstance(name, str) else ""


def _rollout(role: Role) -> list[FieldError]:
    """How the role's own LeaderWorkerSets would roll: nothing of it but the pace counts."""
    errors: list[FieldError] = []
    kind = role.strategy.text("type")
    if kind not in ("", ROLLING_UPDATE):
        errors.append(not_supported(role.strategy.at("type"), kind, (ROLLING_UPDATE, "")))
    pace = role.pace
    if not pace.present:
        return errors
    if pace.integer("partition"):
        errors.append(forbidden(pace.at("partition"), _NO_PARTITION))
    replicas = role.replicas
    if replicas is None or replicas <= 0:
        return errors
    unavailable, faults = amount(pace, "maxUnavailable", DEFAULT_MAX_UNAVAILABLE)
    surge, more = amount(pace, "maxSurge", DEFAULT_MAX_SURGE)
    return errors + (faults + more or stuck(pace, unavailable, surge, replicas))


def _reserved(role: Role) -> list[FieldError]:
    """Labels that only the manager sets."""
    found = (metadata.child("labels") for metadata in (role.metadata, *role.templates()))
    key = names.SUBROLE_LABEL
    return [forbidden(f"{labels.path}[{key}]", _RESERVED) for labels in found if key in labels.value]


def _subroles(role: Role) -> list[FieldError]:
    if not role.subroles:
        return []
    errors: list[FieldError] = []
    if role.reader.value.get("scaling") is not None:
        errors.append(forbidden(role.reader.at("scaling"), "parent scaling must be omitted when subRoles is present"))
    total = sum(sub.counted for sub in role.subroles if not sub.is_external)
    if total > INT32_MAX:
        errors.append(invalid(role.reader.at("subRoles"), total, _TOO_MANY_GROUPS))
    return errors


def _placement(policy: Reader, roles: Sequence[Role]) -> list[FieldError]:
    kind = policy.text("type")
    if kind in ("", names.PLACEMENT_NONE):
        return []
    errors: list[FieldError] = []
    if not policy.text("topology"):
        errors.append(required(policy.at("topology"), "topology is required when type is not None"))
    for role in roles:
        key = next(_exclusive(role), None)
        if key is not None:
            detail = f'the "{key}" annotation must not be combined with a non-None spec.placementPolicy.type ({kind})'
            errors.append(forbidden(role.reader.path, detail))
    return errors


def _exclusive(role: Role) -> Iterator[str]:
    """Keys of annotations with which the role itself asks for a topology domain."""
    found = [metadata.child("annotations").value for metadata in (role.metadata, *reversed(role.templates()))]
    return (key for key in _TOPOLOGIES for annotations in found if key in annotations)
