"""The parts of a set that a revision records, as the API's own types write them.

Specification: 20 §3.1. The bytes of a revision and so its hash follow from these rules: unknown fields are dropped,
quantities are canonical, empty fields are written or dropped as the table of types says.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from lwskit.api import names
from lwskit.groups.quantities import Walk, walk_of
from lwskit.runtime import typed

TEMPLATE_TYPE: Final = "LeaderWorkerTemplate"
"""What the table calls the type of `spec.leaderWorkerTemplate` as far as a revision records it."""
WHOLE_TEMPLATE_TYPE: Final = "LeaderWorkerTemplate and its live fields"
"""The same with the restart limit and back-off, which are not part of a revision of a set."""
NETWORK_TYPE: Final = "NetworkConfig"
"""What the table calls the type of `spec.networkConfig`."""

_BEFORE_LIVE: Final = {
    "leaderTemplate": {"t": "*core.v1.PodTemplateSpec", "e": 1},
    "workerTemplate": {"t": "core.v1.PodTemplateSpec", "r": 1},
    "size": {"t": "*int32", "e": 1},
    "restartPolicy": {"t": "string", "e": 1},
}
_LIVE: Final = {
    "maxGroupRestarts": {"t": "*int32", "e": 1},
    "restartBackoff": {"t": "*RestartBackoff", "e": 1},
}
_AFTER_LIVE: Final = {
    "subGroupPolicy": {"t": "*SubGroupPolicy", "e": 1},
    "volumeClaimTemplates": {"t": "[]core.v1.PersistentVolumeClaim", "e": 1},
    "persistentVolumeClaimRetentionPolicy": {
        "t": "*apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy",
        "e": 1,
    },
}
_OWN_TYPES: Final = {
    TEMPLATE_TYPE: {"fields": {**_BEFORE_LIVE, **_AFTER_LIVE}},
    WHOLE_TEMPLATE_TYPE: {"fields": {**_BEFORE_LIVE, **_LIVE, **_AFTER_LIVE}},
    "RestartBackoff": {
        "fields": {"baseSeconds": {"t": "*int32", "e": 1}, "capSeconds": {"t": "*int32", "e": 1}},
    },
    "SubGroupPolicy": {
        "fields": {"subGroupPolicyType": {"t": "*string", "e": 1}, "subGroupSize": {"t": "*int32", "e": 1}}
    },
    NETWORK_TYPE: {"fields": {"subdomainPolicy": {"t": "*string"}}},
}
_TEMPLATE_PATH: Final = "spec.leaderWorkerTemplate"
_NETWORK_PATH: Final = "spec.networkConfig"


@lru_cache(maxsize=1)
def table() -> typed.TypeTable:
    """The types of pod and claim templates and of the recorded parts of a set; read from the package once."""
    return typed.load_resource("lwskit.api", "pod-types.json").extended(_OWN_TYPES)


def leader_worker_template(spec: Mapping[str, Any]) -> dict[str, Any]:
    """`leaderWorkerTemplate` of a set's spec as a revision records it, without the keys of the patch.

    The restart limit and back-off are left out. Raises `typed.DecodeError`, which names the field, for a value of a
    wrong type. Specification: 20 §3.1.
    """
    return table().encode(TEMPLATE_TYPE, spec.get("leaderWorkerTemplate"), _TEMPLATE_PATH)


def network_config(spec: Mapping[str, Any]) -> dict[str, Any]:
    """`networkConfig` of a set's spec as a revision records it, without the key of the patch.

    What is not set is Shared, so that the default does not make another revision. Raises `typed.DecodeError`.
    Specification: 20 §3.1.
    """
    encoded = table().encode(NETWORK_TYPE, spec.get("networkConfig"), _NETWORK_PATH)
    return encoded if encoded["subdomainPolicy"] else {"subdomainPolicy": names.SUBDOMAIN_SHARED}


@lru_cache(maxsize=1)
def _spelling() -> Walk:
    return walk_of(table(), TEMPLATE_TYPE)


def canonical_quantities(lws: dict[str, Any]) -> dict[str, Any]:
    """A set whose quantities are spelled as the API's types spell them (`1000m` as `1`).

    Nothing else changes: the result shares with the argument all that stays as it is, and is the argument itself if
    nothing changes. What is no quantity, or lies where a value is not of its type, stays for the schema to refuse; so
    do lists and maps of more than 10,000 entries.
    """
    spec = lws.get("spec")
    if not isinstance(spec, dict):
        return lws
    template = spec.get("leaderWorkerTemplate")
    spelled = _spelling()(template)
    return lws if spelled is template else {**lws, "spec": {**spec, "leaderWorkerTemplate": spelled}}
