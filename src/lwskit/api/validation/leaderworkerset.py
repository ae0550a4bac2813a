"""Rules for a LeaderWorkerSet that its CRD cannot say: on create, and what must not change on update.

Specification: 10 §6.2–6.5; §6.6 is in `scheduling`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lwskit.api import names
from lwskit.api.validation import formats
from lwskit.api.validation.errors import FieldError, invalid, not_supported, required
from lwskit.api.validation.metadata import validate_metadata
from lwskit.api.validation.reading import Reader
from lwskit.api.validation.scheduling import NO_SCHEDULING, SchedulingSupport, scheduling_faults

_RECREATING: Final = (names.RESTART_RECREATE_GROUP, names.RESTART_RECREATE_GROUP_AFTER_START)
_NOT_NEGATIVE: Final = "must be greater than or equal to 0"
_LARGEST: Final = 2**31 - 1
"""StatefulSets have such numbers in 32 bits: what is larger could be stored, and then not be put to use."""


def _scaled(value: int | str, total: int, round_up: bool) -> int | None:
    """A number, or a percentage of `total`; None if the text is no percentage."""
    if isinstance(value, int):
        return value
    if formats.percent(value) or len(value) > 18:
        return None
    share = int(value[:-1]) * total
    return -(-share // 100) if round_up else share // 100


def _amount(reader: Reader, name: str, default: int) -> tuple[int | str, list[FieldError]]:
    """A number or percentage, and its faults (§6.3)."""
    path, value = reader.at(name), reader.value.get(name)
    if value is None:
        return default, []
    if isinstance(value, str):
        faults = [invalid(path, value, fault) for fault in formats.percent(value)]
        digits = value[:-1].lstrip("0")
        if not faults and (len(digits) > len("100") or int(digits or 0) > 100):
            faults.append(invalid(path, value, "must not be greater than 100%"))
        return value, faults
    if isinstance(value, int) and not isinstance(value, bool):
        if value > _LARGEST:
            return value, [invalid(path, value, f"must be less than or equal to {_LARGEST}")]
        return value, [invalid(path, value, _NOT_NEGATIVE)] if value < 0 else []
    return default, [invalid(path, value, "must be an integer or percentage (e.g '5%%')")]


def _rolling_update(config: Reader, replicas: int) -> list[FieldError]:
    """Rules 6 to 11: the pace of a rolling update."""
    if not config.present:
        return []
    unavailable, errors = _amount(config, "maxUnavailable", names.DEFAULT_MAX_UNAVAILABLE)
    surge, more = _amount(config, "maxSurge", names.DEFAULT_MAX_SURGE)
    errors += more
    partition = config.integer("partition")
    if partition is not None and partition < 0:
        errors.append(invalid(config.at("partition"), partition, _NOT_NEGATIVE))
    scaled_unavailable = _scaled(unavailable, replicas, round_up=False)
    scaled_surge = _scaled(surge, replicas, round_up=True)
    if scaled_unavailable is None:
        errors.append(invalid(config.at("maxUnavailable"), unavailable, "invalid value"))
    if scaled_surge is None:
        errors.append(invalid(config.at("maxSurge"), surge, "invalid value"))
    if not scaled_unavailable and not scaled_surge and replicas != 0:
        errors.append(invalid(config.at("maxUnavailable"), unavailable, "must not be 0 when `maxSurge` is 0"))
    return errors


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


def _restarts(template: Reader) -> list[FieldError]:
    """Rule 14, and the same for the back-off (20 §12)."""
    errors: list[FieldError] = []
    recreates = (template.text("restartPolicy") or names.RESTART_RECREATE_GROUP) in _RECREATING
    limit, backoff = template.integer("maxGroupRestarts"), template.child("restartBackoff")
    unsupported = "{} is only supported when restartPolicy recreates the group"
    if limit is not None and not recreates:
        path = template.at("maxGroupRestarts")
        errors.append(invalid(path, limit, unsupported.format("maxGroupRestarts")))
    if not backoff.present:
        return errors
    if not recreates:
        errors.append(invalid(backoff.path, dict(backoff.value), unsupported.format("restartBackoff")))
    base, cap = backoff.integer("baseSeconds"), backoff.integer("capSeconds")
    for name, seconds in (("baseSeconds", base), ("capSeconds", cap)):
        if seconds is not None and seconds < 1:
            errors.append(invalid(backoff.at(name), seconds, "must be greater than 0"))
    base = names.DEFAULT_BACKOFF_BASE_SECONDS if base is None else base
    cap = names.DEFAULT_BACKOFF_CAP_SECONDS if cap is None else cap
    if base > cap >= 1:
        errors.append(invalid(backoff.at("baseSeconds"), base, "baseSeconds must not exceed capSeconds"))
    return errors


def _identity(spec: Reader, template: Reader, config: Reader, meta: Mapping[str, Any], size: int) -> list[FieldError]:
    """Rules 15 to 19: what goes with which identity of groups."""
    errors: list[FieldError] = []
    path = spec.at("groupIdentity")
    if spec.text("groupIdentity") != names.IDENTITY_HASH:
        if spec.text("groupReplacementPolicy") == names.REPLACEMENT_IMMEDIATE:
            detail = "Immediate is only supported with groupIdentity Hash"
            errors.append(invalid(spec.at("groupReplacementPolicy"), names.REPLACEMENT_IMMEDIATE, detail))
        return errors
    refused: list[str] = []
    if template.items("volumeClaimTemplates"):
        refused.append("volumeClaimTemplates are")
    if config.value.get("partition"):
        refused.append("rollingUpdateConfiguration.partition is")
    leader = template.child("leaderTemplate")
    leader = leader if leader.present else template.child("workerTemplate")
    if leader.child("spec").text("hostname"):
        refused.append("a leader pod hostname is")
    for what in refused:
        errors.append(invalid(path, names.IDENTITY_HASH, f"{what} not supported with groupIdentity Hash"))
    suffix = names.HASH_WORKER_SUFFIX if size > 1 else names.HASH_LEADER_SUFFIX
    limit, name = names.MAX_NAME_LENGTH - suffix, meta.get("name")
    if isinstance(name, str) and len(name.encode()) > limit:
        errors.append(invalid("metadata.name", name, f"{formats.too_long(limit)} with groupIdentity Hash"))
    return errors


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
    errors += _rolling_update(config, replicas)
    policy = template.child("subGroupPolicy")
    annotations = meta.get("annotations")
    annotations = annotations if isinstance(annotations, dict) else {}
    if policy.present:
        errors += _sub_groups(policy, size)
    elif names.SUBGROUP_EXCLUSIVE_TOPOLOGY_ANNOTATION in annotations:
        key = names.SUBGROUP_EXCLUSIVE_TOPOLOGY_ANNOTATION
        detail = "cannot have subgroup-exclusive-topology without subGroupSize set"
        errors.append(invalid(f"metadata.annotations.{key}", annotations[key], detail))
    errors += _restarts(template)
    errors += _identity(spec, template, config, meta, size)
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
