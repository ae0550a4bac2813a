"""Rules for what a group is like that hold wherever one is described: its restarts, and what goes with its identity.

Specification: 10 §6.2 rules 14 to 18, 20 §12.
"""

from __future__ import annotations

from typing import Final

from lwskit.api import names
from lwskit.api.validation.errors import FieldError, invalid
from lwskit.api.validation.reading import Reader

_RECREATING: Final = (names.RESTART_RECREATE_GROUP, names.RESTART_RECREATE_GROUP_AFTER_START)


def restart_faults(template: Reader) -> list[FieldError]:
    """Faults of the restarts of a `leaderWorkerTemplate` (rule 14, and the same for the back-off)."""
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


def is_hashed(spec: Reader) -> bool:
    """Whether groups have keys and no numbers."""
    return spec.value.get("groupIdentity") == names.IDENTITY_HASH


def hash_suffix(size: int) -> int:
    """Characters that names in Hash mode have behind that of their set, for groups of so many pods."""
    return names.HASH_WORKER_SUFFIX if size > 1 else names.HASH_LEADER_SUFFIX


def identity_faults(spec: Reader, template: Reader, config: Reader) -> list[FieldError]:
    """What does not go with the identity of groups (rules 15 to 18).

    The arguments are a LeaderWorkerSet's spec, its `leaderWorkerTemplate` and its `rollingUpdateConfiguration`.
    """
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
    return errors
