"""Rules for `spec.scheduling`: what a manager serves, who may ask for it, and that it stays.

Specification: 10 §6.6 rules 1–7 and 9, 40 §4. What a level says is checked in `scheduling_levels`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lwskit.api import names
from lwskit.api.scheduling import FIELDS, GANG, ROLES, active_levels, part, policy_of
from lwskit.api.validation.errors import FieldError, forbidden, invalid, not_supported, required
from lwskit.api.validation.reading import Reader
from lwskit.api.validation.scheduling_levels import PATH, level_faults

_DELEGATION: Final = (names.GROUP_TEMPLATE_NAME_ANNOTATION, names.PARENT_COMPOSITE_POD_GROUP_ANNOTATION)


@dataclass(frozen=True, slots=True)
class SchedulingSupport:
    """What a manager has for sets whose pods are scheduled together; by default nothing.

    `gate` is the feature gate WorkloadAwareScheduling, `provider` the configured one of `names.SCHEDULER_PROVIDERS`.
    `has_kind` tells whether the cluster serves a kind of `names.SCHEDULING_API_VERSION`; None leaves that open.
    """

    gate: bool = False
    provider: str | None = None
    has_kind: Callable[[str], bool] | None = None


NO_SCHEDULING: Final = SchedulingSupport()
"""A manager without scheduling of pods together."""


def scheduling_faults(
    new: Mapping[str, Any], old: Mapping[str, Any] | None, support: SchedulingSupport
) -> list[FieldError]:
    """Faults of the scheduling of a set that is to be created, or that is to replace `old`, in the order of the rules.

    A set that has it already can be changed with the gate off, and then no provider is asked for. Specification: 10
    §6.6.
    """
    errors: list[FieldError] = []
    found = Reader((part(new, "spec") or {}).get("scheduling"), PATH, errors)
    before = part(old, "spec", "scheduling")
    if not found.present:
        removed = before is not None and not errors
        return [forbidden(PATH, "cannot remove scheduling after creation")] if removed else errors
    if not support.gate and before is None:
        return [forbidden(PATH, f"requires the {names.WORKLOAD_AWARE_SCHEDULING_GATE} feature gate")]
    _read_through(found)
    levels = active_levels(found.value)
    if support.gate:
        errors += _provider(found.value, levels, support)
    if support.provider == names.PROVIDER_KUBERNETES:
        errors += _delegation(new, levels)
    if before is not None:
        errors += [
            forbidden(_annotation(key), "is immutable once spec.scheduling is set")
            for key in _DELEGATION
            if _annotations(new).get(key) != _annotations(old).get(key)
        ]
    elif old is not None:
        errors.append(forbidden(PATH, "cannot add scheduling after creation"))
    if len(levels) > 1:
        detail = f"exactly one active scheduling level is required, got [{' '.join(levels)}]"
        return [*errors, invalid(PATH, found.value, detail)]
    return errors + level_faults(new, old if before is not None else None, levels[0])


def _read_through(scheduling: Reader) -> None:
    """Report every setting that is no object, of whatever level: it must not just count as not set."""
    replica = scheduling.child("replica")
    for settings in (scheduling, replica, *(replica.child(role) for role in ROLES)):
        for field in FIELDS:
            settings.child(field)


def _annotations(obj: Any) -> Mapping[str, Any]:
    return part(obj, "metadata", "annotations") or {}


def _annotation(key: str) -> str:
    return f"metadata.annotations[{key}]"


def _provider(scheduling: Mapping[str, Any], levels: list[str], support: SchedulingSupport) -> list[FieldError]:
    """Rules 3, 4 and 9: whether there is a provider, and what it can do."""
    if not support.provider:
        return [required(PATH, "requires a configured scheduler provider")]
    if support.provider == names.PROVIDER_VOLCANO:
        return _volcano(scheduling, levels[0]) if len(levels) == 1 else []
    if support.provider != names.PROVIDER_KUBERNETES:
        return [not_supported(PATH, support.provider, names.SCHEDULER_PROVIDERS)]
    version = names.SCHEDULING_API_VERSION
    return [
        forbidden(PATH, f'{version} {kind} API is not available: no matches for kind "{kind}" in version "{version}"')
        for kind in names.SCHEDULING_KINDS
        if support.has_kind is not None and not support.has_kind(kind)
    ]


def _volcano(scheduling: Mapping[str, Any], level: str) -> list[FieldError]:
    """Rule 9: Volcano schedules whole groups as gangs and nothing else; even empty settings ask for more."""
    if level != names.LEVEL_REPLICA:
        return [forbidden(PATH, "the Volcano provider supports the typed API only at replica level")]
    replica = part(scheduling, "replica")
    unsupported = {
        "schedulingPolicy": ("Basic policy", policy_of(replica, level) != GANG),
        "schedulingConstraints": ("typed scheduling constraints", part(replica, "schedulingConstraints") is not None),
        "disruptionMode": ("typed disruption mode", part(replica, "disruptionMode") is not None),
    }
    return [
        forbidden(f"{PATH}.replica.{field}", f"the Volcano provider does not support {what}")
        for field, (what, asked) in unsupported.items()
        if asked
    ]


def _delegation(lws: Mapping[str, Any], levels: list[str]) -> list[FieldError]:
    """Rule 5: a set that is scheduled by a Workload of its parent's."""
    template, parent = (_annotations(lws).get(key) for key in _DELEGATION)
    template_path, parent_path = (_annotation(key) for key in _DELEGATION)
    if template is None:
        detail = "requires the group-template-name delegation annotation"
        return [] if parent is None else [forbidden(parent_path, detail)]
    errors: list[FieldError] = []
    if not template:
        errors.append(required(template_path, "must name a parent Workload template"))
    owners = (part(lws, "metadata") or {}).get("ownerReferences")
    owners = owners if isinstance(owners, list) else []
    if not any(isinstance(owner, dict) and owner.get("controller") is True for owner in owners):
        errors.append(forbidden(template_path, "delegated scheduling requires a controller owner"))
    if parent == "":
        errors.append(required(parent_path, "must name a parent CompositePodGroup"))
    if levels == [names.LEVEL_ROLE]:
        errors.append(forbidden(template_path, "delegated scheduling supports only whole-LWS or replica mode"))
    return errors
