"""The revision of a DisaggregatedSet: what all roles' groups are made from, as a hash. Pure.

Specification: 50 §4. The hashed bytes are exact, so that sets which another implementation began keep their children.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import orjson

from lwskit.api import disaggregated_names as names
from lwskit.api import names as shared
from lwskit.disaggregated.model import Child
from lwskit.groups import encoding
from lwskit.groups.revisions import compact
from lwskit.runtime.objects import Obj, annotations_of
from lwskit.runtime.typed import DecodeError, TypeTable

_METADATA: Final = "meta.v1.ObjectMeta"
_SPEC: Final = "spec of a role"
_LEGACY_ROLE: Final = "role of before there were two algorithms"
_ROLE: Final = "role"
_TYPES: Final = {
    # A role, without what changes its count only.
    _ROLE: {"fields": {"name": {"t": "string"}, "metadata": {"t": _METADATA, "e": 1}, "spec": {"t": _SPEC, "e": 1}}},
    # A set's spec, without replicas and what is live, in the order of its declaration.
    _SPEC: {
        "fields": {
            "leaderWorkerTemplate": {"t": encoding.WHOLE_TEMPLATE_TYPE},
            "rolloutStrategy": {"t": "no rollout strategy"},
            "startupPolicy": {"t": "string"},
            "networkConfig": {"t": f"*{encoding.NETWORK_TYPE}", "e": 1},
            "scheduling": {"t": "*Scheduling", "e": 1},
            "groupIdentity": {"t": "string", "e": 1},
            "podTerminationPolicy": {"t": "string", "e": 1},
        }
    },
    "no rollout strategy": {"fields": {"type": {"t": "string"}}},
    _LEGACY_ROLE: {
        "fields": {
            "name": {"t": "string"},
            "groupIdentity": {"t": "string", "e": 1},
            "template": {"t": encoding.WHOLE_TEMPLATE_TYPE},
        }
    },
    "Scheduling": {
        "fields": {
            "schedulingPolicy": {"t": "*CompositePolicy", "e": 1},
            "schedulingConstraints": {"t": "*SchedulingConstraints", "e": 1},
            "disruptionMode": {"t": "*DisruptionMode", "e": 1},
            "replica": {"t": "*ReplicaScheduling", "e": 1},
        }
    },
    "ReplicaScheduling": {
        "fields": {
            "schedulingPolicy": {"t": "*CompositePolicy", "e": 1},
            "schedulingConstraints": {"t": "*SchedulingConstraints", "e": 1},
            "disruptionMode": {"t": "*DisruptionMode", "e": 1},
            "leader": {"t": "*RoleScheduling", "e": 1},
            "worker": {"t": "*RoleScheduling", "e": 1},
        }
    },
    "RoleScheduling": {
        "fields": {
            "schedulingPolicy": {"t": "*LeafPolicy", "e": 1},
            "schedulingConstraints": {"t": "*SchedulingConstraints", "e": 1},
            "disruptionMode": {"t": "*DisruptionMode", "e": 1},
            "resourceClaims": {"t": "[]RoleResourceClaim", "e": 1},
        }
    },
    "CompositePolicy": {"fields": {"basic": {"t": "*Nothing", "e": 1}, "gang": {"t": "*CompositeGang", "e": 1}}},
    "CompositeGang": {"fields": {"minGroupCount": {"t": "*int32", "e": 1}}},
    "LeafPolicy": {"fields": {"basic": {"t": "*Nothing", "e": 1}, "gang": {"t": "*LeafGang", "e": 1}}},
    "LeafGang": {"fields": {"minCount": {"t": "*int32", "e": 1}}},
    "SchedulingConstraints": {"fields": {"topology": {"t": "[]TopologyConstraint", "e": 1}}},
    "TopologyConstraint": {"fields": {"key": {"t": "string"}}},
    "DisruptionMode": {"fields": {"single": {"t": "*Nothing", "e": 1}, "all": {"t": "*Nothing", "e": 1}}},
    "RoleResourceClaim": {
        "fields": {
            "name": {"t": "string"},
            "resourceClaimName": {"t": "*string", "e": 1},
            "resourceClaimTemplateName": {"t": "*string", "e": 1},
        }
    },
    "Nothing": {"fields": {}},
}


@dataclass(frozen=True, slots=True)
class Resolved:
    """The revision of a set as it is now; or that the marker of the algorithm is to be written first and nothing else
    done in this pass; or why neither can be."""

    revision: str = ""
    must_mark: bool = False
    error: str = ""


def resolve(ds: Mapping[str, Any], owned: Sequence[Child]) -> Resolved:
    """The revision by the algorithm that the set is on, given the LeaderWorkerSets that it owns in any slice.

    A set of before there was a marker keeps its algorithm as long as nobody marks it. One that has a child of the
    revision by the current algorithm was marked: the marker got lost, or is not seen yet, and is written again rather
    than everything rolled out to a revision by the other one. Specification: 50 §4.1.
    """
    version = annotations_of(ds).get(names.REVISION_HASH_VERSION_ANNOTATION) or ""
    if version not in ("", names.HASH_VERSION):
        return Resolved(error=f'unsupported revision hash version "{version}"')
    if not version and not owned:
        return Resolved(must_mark=True)
    try:
        current = revision_of(ds)
        if version or any(child.revision == current for child in owned):
            return Resolved(current, must_mark=not version)
        return Resolved(legacy_revision_of(ds))
    except DecodeError as error:
        return Resolved(error=f"the revision cannot be computed: {error}")


def revision_of(ds: Mapping[str, Any]) -> str:
    """The revision by the current algorithm. Raises DecodeError, which names the field. Specification: 50 §4.2."""
    return _revision_again(_known(ds))


def legacy_revision_of(ds: Mapping[str, Any]) -> str:
    """The revision by the algorithm of before, which looks at templates and the order of roles only.

    Raises DecodeError, which names the field. Specification: 50 §4.3.
    """
    return _legacy_revision_again(_known(ds))


def hashed(ds: Mapping[str, Any]) -> str:
    """The text that is hashed: the roles by name, without what changes counts and pace only. Raises DecodeError.

    The identity is always written, the termination policy only where it is not the default. Specification: 50 §4.2.
    """
    return _hashed(_roles(ds))


def legacy_hashed(ds: Mapping[str, Any]) -> str:
    """The text that the algorithm of before hashes. Raises DecodeError. Specification: 50 §4.3."""
    return _legacy_hashed(_roles(ds))


def _roles(ds: Mapping[str, Any]) -> list[Obj]:
    return (ds.get("spec") or {}).get("roles") or []


def _known(ds: Mapping[str, Any]) -> bytes:
    return orjson.dumps(_roles(ds))


@lru_cache(maxsize=256)
def _revision_again(roles: bytes) -> str:
    """A pass comes each second while a rollout goes on, and nearly always finds the same roles."""
    return _digest(_hashed(json.loads(roles)))


@lru_cache(maxsize=64)
def _legacy_revision_again(roles: bytes) -> str:
    return _digest(_legacy_hashed(json.loads(roles)))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[: names.REVISION_LENGTH]


def _hashed(roles: list[Obj]) -> str:
    return compact([_role(role) for role in sorted(roles, key=lambda role: role.get("name", ""))])


def _role(role: Obj) -> Obj:
    spec = {name: value for name, value in (role.get("spec") or {}).items() if name != "rolloutStrategy"}
    spec["groupIdentity"] = spec.get("groupIdentity") or shared.IDENTITY_ORDINAL
    if spec.get("podTerminationPolicy") == shared.TERMINATION_DEFAULT:
        del spec["podTerminationPolicy"]
    return _table().encode(_ROLE, {**role, "spec": spec}, _path(role))


def _legacy_hashed(roles: list[Obj]) -> str:
    return compact([_legacy_role(role) for role in roles])


def _legacy_role(role: Obj) -> Obj:
    spec = role.get("spec") or {}
    identity = spec.get("groupIdentity")
    legacy = {
        "name": role.get("name"),
        "groupIdentity": "" if identity == shared.IDENTITY_ORDINAL else identity,
        "template": spec.get("leaderWorkerTemplate"),
    }
    return _table().encode(_LEGACY_ROLE, legacy, _path(role))


def _path(role: Obj) -> str:
    return f"spec.roles[{role.get('name', '')}]"


@lru_cache(maxsize=1)
def _table() -> TypeTable:
    return encoding.table().extended(_TYPES)
