"""Rules for the one level of `spec.scheduling` that a set selects: its fields, and what they must agree with.

Specification: 10 §6.6 rule 8, 40 §4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lwskit.api import names
from lwskit.api.scheduling import (
    BASIC,
    GANG,
    active_levels,
    members_of,
    part,
    parts_of,
    policy_of,
    topology_keys,
)
from lwskit.api.validation import formats
from lwskit.api.validation.errors import FieldError, duplicate, forbidden, invalid, required, too_many
from lwskit.api.validation.reading import Reader

PATH: Final = "spec.scheduling"
_POLICIES: Final = (BASIC, GANG)
_DISRUPTION_MODES: Final = ("single", "all")
_CLAIM_SOURCES: Final = ("resourceClaimName", "resourceClaimTemplateName")


def level_faults(new: Mapping[str, Any], old: Mapping[str, Any] | None, level: str) -> list[FieldError]:
    """Faults of a set that selects just this level; `old` is what it was if it had scheduling.

    Specification: 10 §6.6 rule 8.
    """
    errors: list[FieldError] = []
    former = None
    if old is not None:
        if active_levels(part(old, "spec", "scheduling")) == [level]:
            former = old
        else:
            errors.append(forbidden(PATH, "cannot switch the active scheduling level after creation"))
        was, now = _priority_class(old), _priority_class(new)
        if None not in (was, now) and was != now:
            detail = "cannot change priorityClassName while workload-aware scheduling is configured"
            errors.append(forbidden("spec.leaderWorkerTemplate", detail))
    for path in parts_of(level):
        settings = _settings(new, path, errors)
        errors += _fields(settings)
        if former is not None:
            errors += _immutable(settings, _settings(former, path, []), level)
    return errors + _of_groups(new, level) + _combinations(new, level)


def _settings(lws: Mapping[str, Any], path: Sequence[str], errors: list[FieldError]) -> Reader:
    """One of a level's objects."""
    reader = Reader(part(lws, "spec", "scheduling"), PATH, errors)
    for name in path:
        reader = reader.child(name)
    return reader


def _template(lws: Mapping[str, Any], role: str) -> Mapping[str, Any] | None:
    """The spec of the pods of a role."""
    group = part(lws, "spec", "leaderWorkerTemplate")
    own = part(group, "leaderTemplate") if role == names.ROLE_LEADER else None
    return part(own if own is not None else part(group, "workerTemplate"), "spec")


def _templates(lws: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [_template(lws, role) or {} for role in (names.ROLE_LEADER, names.ROLE_WORKER)]


def _priority_class(lws: Mapping[str, Any]) -> str | None:
    """The priority class that all templates name, empty for none; None if they differ."""
    classes = [template.get("priorityClassName") or "" for template in _templates(lws)]
    return classes[0] if classes[0] == classes[1] else None


def _size(lws: Mapping[str, Any]) -> int:
    size = Reader(part(lws, "spec", "leaderWorkerTemplate"), "", []).integer("size")
    return names.DEFAULT_SIZE if size is None else size


def _one_of(reader: Reader, choices: Sequence[str]) -> list[FieldError]:
    """A choice is an object with exactly one of these fields."""
    if not reader.present:
        return []
    count = sum(reader.child(name).present for name in choices)
    if count == 1:
        return []
    listed = ", ".join(f"`{name}`" for name in choices)
    return [invalid(reader.path, reader.value, f"must specify {'exactly ' if count else ''}one of: {listed}")]


def _fields(settings: Reader) -> list[FieldError]:
    """Rules 8 d and e: the fields of one of a level's objects, each by itself."""
    policy = settings.child("schedulingPolicy")
    errors = _one_of(policy, _POLICIES)
    gang = policy.child(GANG)
    if gang.value.get("minGroupCount") is not None:
        errors.append(forbidden(gang.at("minGroupCount"), "minGroupCount is not supported"))
    count = gang.integer("minCount")
    if count is not None and count < 1:
        errors.append(invalid(gang.at("minCount"), count, "must be greater than or equal to 1"))
    errors += _topology(settings.child("schedulingConstraints"))
    errors += _one_of(settings.child("disruptionMode"), _DISRUPTION_MODES)
    return errors + _claims(settings)


def _topology(constraints: Reader) -> list[FieldError]:
    errors: list[FieldError] = []
    entries = constraints.items("topology")
    if len(entries) > names.MAX_TOPOLOGY_CONSTRAINTS:
        errors.append(too_many(constraints.at("topology"), len(entries), names.MAX_TOPOLOGY_CONSTRAINTS))
    for i, entry in enumerate(entries):
        reader = Reader(entry, f"{constraints.at('topology')}[{i}]", errors)
        key = reader.text("key")
        if reader.present and not key and not reader.value.get("key"):
            errors.append(required(reader.at("key"), ""))
        errors += [invalid(reader.at("key"), key, fault) for fault in (formats.label_key(key) if key else ())]
    return errors


def _claims(settings: Reader) -> list[FieldError]:
    errors: list[FieldError] = []
    entries = settings.items("resourceClaims")
    path = settings.at("resourceClaims")
    if len(entries) > names.MAX_RESOURCE_CLAIMS:
        errors.append(too_many(path, len(entries), names.MAX_RESOURCE_CLAIMS))
    seen: set[str] = set()
    for i, entry in enumerate(entries):
        claim = Reader(entry, f"{path}[{i}]", errors)
        if not claim.present:
            continue
        name = claim.text("name")
        if not name:
            errors.append(required(claim.at("name"), ""))
        elif name in seen:
            errors.append(duplicate(claim.path, name))
        else:
            errors += [invalid(claim.at("name"), name, fault) for fault in formats.dns_1123_label(name)]
        seen.add(name)
        sources = [source for source in _CLAIM_SOURCES if claim.text(source)]
        if len(sources) != 1:
            listed = ", ".join(f"`{source}`" for source in _CLAIM_SOURCES)
            detail = f"must specify {'exactly ' if sources else ''}one of: {listed}"
            errors.append(invalid(claim.path, entry, detail))
        for source in sources:
            faults = formats.dns_1123_subdomain(claim.text(source))
            errors += [invalid(claim.at(source), claim.text(source), fault) for fault in faults]
    return errors


def _immutable(settings: Reader, former: Reader, level: str) -> list[FieldError]:
    """Rule 8 d for changes: what a level asks for stays, in whatever words."""
    wanted, was = _meaning(settings, level), _meaning(former, level)
    return [
        invalid(settings.at(field), settings.value.get(field), "field is immutable")
        for field in wanted
        if wanted[field] != was[field]
    ]


def _meaning(settings: Reader, level: str) -> dict[str, Any]:
    """What each field of one of a level's objects asks for, defaults filled in."""
    mode = part(settings.value, "disruptionMode") or {}
    claims = settings.value.get("resourceClaims")
    return {
        "schedulingPolicy": policy_of(settings.value, level),
        "schedulingConstraints": topology_keys(settings.value),
        "disruptionMode": [name for name in _DISRUPTION_MODES if part(mode, name) is not None],
        "resourceClaims": [_claim(claim) for claim in (claims if isinstance(claims, list) else ())],
    }


def _claim(claim: Any) -> tuple[Any, ...]:
    """A claim of a role, or of a pod, as what makes two the same."""
    claim = claim if isinstance(claim, Mapping) else {}
    return tuple(claim.get(field) or "" for field in ("name", *_CLAIM_SOURCES))


def _of_groups(lws: Mapping[str, Any], level: str) -> list[FieldError]:
    """Rules 8 f and g: roles need workers, and a gang of a role is all of its pods."""
    if level != names.LEVEL_ROLE:
        return []
    errors: list[FieldError] = []
    size = _size(lws)
    if size < 2:
        detail = "leader/worker scheduling requires size >= 2"
        errors.append(invalid("spec.leaderWorkerTemplate.size", size, detail))
    for path in parts_of(level):
        gang = _settings(lws, path, []).child("schedulingPolicy").child(GANG)
        count, members = gang.integer("minCount"), members_of(path[-1], size)
        if count is not None and count != members and members > 0:
            errors.append(invalid(gang.at("minCount"), count, f"must equal complete leaf membership {members}"))
    return errors


def _combinations(lws: Mapping[str, Any], level: str) -> list[FieldError]:
    """Rules 8 h to l: what pods that are scheduled together must agree on, and what excludes it."""
    errors: list[FieldError] = []
    settings = [_settings(lws, path, []) for path in parts_of(level)]
    gang = any(policy_of(each.value, level) == GANG for each in settings)
    late_workers = (part(lws, "spec") or {}).get("startupPolicy") == names.STARTUP_LEADER_READY
    if gang and level != names.LEVEL_ROLE and late_workers:
        detail = "a gang containing the leader and workers is incompatible with startupPolicy LeaderReady"
        errors.append(forbidden(PATH, detail))
    exclusive = (part(lws, "metadata", "annotations") or {}).get(names.EXCLUSIVE_TOPOLOGY_ANNOTATION)
    if exclusive and (gang or any(topology_keys(each.value) for each in settings)):
        detail = "gang scheduling or workload topology constraints cannot be combined with exclusive topology in alpha"
        errors.append(forbidden(PATH, detail))
    if _priority_class(lws) is None:
        errors.append(invalid(PATH, None, "all managed pod templates must use the same priorityClassName"))
    if any(template.get("schedulingGroup") is not None for template in _templates(lws)):
        errors.append(forbidden(PATH, "managed pod templates must not set spec.schedulingGroup"))
    if level == names.LEVEL_ROLE:
        for each, path in zip(settings, parts_of(level), strict=True):
            errors += _unmatched_claims(each, _template(lws, path[-1]) or {})
    return errors


def _unmatched_claims(settings: Reader, template: Mapping[str, Any]) -> list[FieldError]:
    """Rule 8 l: the pods of a role refer to the claims that the role shares."""
    references = template.get("resourceClaims")
    known = [_claim(claim) for claim in (references if isinstance(references, list) else ())]
    detail = "must have a matching reference in every member pod template"
    return [
        invalid(f"{settings.at('resourceClaims')}[{i}]", claim, detail)
        for i, claim in enumerate(settings.items("resourceClaims"))
        if _claim(claim) not in known
    ]
