"""Rules for a LeaderWorkerSet that its CRD cannot say: on create, and what must not change on update.

Specification: 10 §6.2–6.5; §6.6 is in `scheduling`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lwskit.api import disaggregated_names, names
from lwskit.api.validation import formats
from lwskit.api.validation.errors import FieldError, invalid, not_supported, required
from lwskit.api.validation.groups import hash_suffix, identity_faults, is_hashed, restart_faults
from lwskit.api.validation.metadata import validate_metadata
from lwskit.api.validation.pace import pace_faults
from lwskit.api.validation.reading import Reader
from lwskit.api.validation.scheduling import NO_SCHEDULING, SchedulingSupport, scheduling_faults

_OWNERS: Final = 1000
"""Owners that are looked at."""


def _sub_groups(policy: Reader, size: int) -> list[FieldError]:
    """§6.4: a group must divide into sub-groups."""
    path, part = policy.at("subGroupSize"), policy.integer("subGroupSize")
    kind = policy.text("subGroupPolicyType")
    if part is None:
        return [required(path, "subGroupSize is required")] if policy.value.get("subGroupSize") is None else []
    if part < 1:
        return [invalid(path, part, "subGroupSize must be equal or greater than 1")]
    errors: list[FieldError] = []
    if size % part != 0 and (size - 1) % part != 0:
        errors.append(invalid(path, part, "size or size - 1 must be divisible by subGroupSize"))
    if size < part:
        errors.append(invalid(path, part, "subGroupSize cannot be larger than size"))
    if kind == names.SUBGROUP_LEADER_EXCLUDED and (size - 1) % part != 0:
        errors.append(invalid(path, part, "size-1 must be divisible by subGroupSize when using LeaderExcluded"))
    return errors


def _hash_name(spec: Reader, meta: Mapping[str, Any], size: int) -> list[FieldError]:
    """Rule 19: what is named after the set and a group's key needs room for the key."""
    limit, name = names.MAX_NAME_LENGTH - hash_suffix(size), meta.get("name")
    if not is_hashed(spec) or not isinstance(name, str) or len(name.encode()) <= limit:
        return []
    return [invalid("metadata.name", name, f"{formats.too_long(limit)} with groupIdentity Hash")]


def _is_child(meta: Mapping[str, Any]) -> bool:
    """Whether a DisaggregatedSet makes the set and rolls it out by its count, never by its own rolling update."""
    owners = meta.get("ownerReferences")
    return any(
        isinstance(owner, dict)
        and owner.get("controller") is True
        and (owner.get("apiVersion"), owner.get("kind")) == (disaggregated_names.API_VERSION, disaggregated_names.KIND)
        for owner in (owners[:_OWNERS] if isinstance(owners, list) else ())
    )


def _general(obj: Mapping[str, Any]) -> list[FieldError]:
    meta = obj.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    errors = validate_metadata(meta, formats.dns_1035_label)
    spec = Reader(obj.get("spec"), "spec", errors)
    template = spec.child("leaderWorkerTemplate")
    given_replicas, given_size = spec.integer("replicas"), template.integer("size")
    replicas = names.DEFAULT_REPLICAS if given_replicas is None else given_replicas
    size = names.DEFAULT_SIZE if given_size is None else given_size
    if replicas < 0:
        errors.append(invalid(spec.at("replicas"), replicas, "replicas must be equal or greater than 0"))
    if replicas > names.MAX_REPLICAS:
        detail = f"replicas must be equal or less than {names.MAX_REPLICAS}"
        errors.append(invalid(spec.at("replicas"), replicas, detail))
    if size < 1:
        errors.append(invalid(template.at("size"), size, "size must be equal or greater than 1"))
    if replicas * size > names.MAX_PODS:
        detail = f"the product of replicas and worker replicas must not exceed {names.MAX_PODS}"
        errors.append(invalid(spec.at("replicas"), replicas, detail))
    config = spec.child("rolloutStrategy").child("rollingUpdateConfiguration")
    errors += pace_faults(config, replicas, rolls=not _is_child(meta))
    policy = template.child("subGroupPolicy")
    annotations = meta.get("annotations")
    annotations = annotations if isinstance(annotations, dict) else {}
    if policy.present:
        errors += _sub_groups(policy, size)
    elif names.SUBGROUP_EXCLUSIVE_TOPOLOGY_ANNOTATION in annotations:
        key = names.SUBGROUP_EXCLUSIVE_TOPOLOGY_ANNOTATION
        detail = "cannot have subgroup-exclusive-topology without subGroupSize set"
        errors.append(invalid(f"metadata.annotations.{key}", annotations[key], detail))
    errors += restart_faults(template)
    errors += identity_faults(spec, template, config)
    errors += _hash_name(spec, meta, size)
    termination = spec.text("podTerminationPolicy")
    if termination and termination not in names.POD_TERMINATION_POLICIES:
        errors.append(not_supported(spec.at("podTerminationPolicy"), termination, names.POD_TERMINATION_POLICIES))
    return errors


def _spec(obj: Mapping[str, Any]) -> Reader:
    """The spec of an object whose faults have been or will be reported elsewhere."""
    return Reader(obj.get("spec"), "spec", [])


def _update(new: Mapping[str, Any], old: Mapping[str, Any]) -> list[FieldError]:
    """§6.5: what must not change."""
    errors: list[FieldError] = []
    spec, before = _spec(new), _spec(old)
    policy = spec.child("leaderWorkerTemplate").child("subGroupPolicy")
    old_policy = before.child("leaderWorkerTemplate").child("subGroupPolicy")
    path = policy.at("subGroupSize")
    part, old_part = policy.integer("subGroupSize"), old_policy.integer("subGroupSize")
    if policy.present and old_policy.present:
        if part is not None and old_part is not None and part != old_part:
            errors.append(invalid(path, part, "field is immutable"))
    elif policy.present:
        errors.append(invalid(path, part, "cannot enable subGroupSize after the lws is already created"))
    elif old_policy.present:
        errors.append(invalid(path, old_part, "cannot remove subGroupSize after enabled"))
    network = spec.child("networkConfig")
    if network.present and network.value.get("subdomainPolicy") is None:
        errors.append(invalid(network.at("subdomainPolicy"), None, "cannot set subdomainPolicy as null"))
    immutable = (("groupIdentity", names.IDENTITY_ORDINAL), ("podTerminationPolicy", names.TERMINATION_DEFAULT))
    for name, default in immutable:
        if (spec.text(name) or default) != (before.text(name) or default):
            errors.append(invalid(spec.at(name), spec.text(name), f"{name} is immutable"))
    return errors


def validate_create(obj: Mapping[str, Any], support: SchedulingSupport = NO_SCHEDULING) -> list[FieldError]:
    """Faults of a LeaderWorkerSet that is to be created, in the order of the rules; none is fine.

    `support` is what the manager has for pods that are scheduled together. Values that are not set count as their
    defaults; those of a wrong type are reported at their path. Specification: 10 §6.1–6.4, §6.6.
    """
    return _general(obj) + scheduling_faults(obj, None, support)


def validate_update(
    new: Mapping[str, Any], old: Mapping[str, Any], support: SchedulingSupport = NO_SCHEDULING
) -> list[FieldError]:
    """Faults of a LeaderWorkerSet that is to replace `old`: those of `validate_create` and what must not change.

    Specification: 10 §6.1–6.6.
    """
    return _general(new) + scheduling_faults(new, old, support) + _update(new, old)
