"""Defaults that the mutating webhook fills in: those that a schema cannot express, and those of other versions.

Specification: 10 §5. Values of a wrong type are left as they are, so that the schema refuses them by their path.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from lwskit.api import names


def _fill(target: dict[str, Any], name: str, value: Any) -> None:
    """Set a field that is missing, null or empty text."""
    if target.get(name) in (None, ""):
        target[name] = value


def default(obj: Mapping[str, Any]) -> dict[str, Any]:
    """A LeaderWorkerSet with its defaults, as a new object; the argument is not changed.

    What the CRD's schema fills in (size, startupPolicy, parts of a rolling update) is not filled in here. Parts of a
    wrong type stay as they are, for the schema to refuse. Specification: 10 §5.
    """
    out = copy.deepcopy(dict(obj))
    spec = out.get("spec")
    if spec is None:
        spec = out["spec"] = {}
    if not isinstance(spec, dict):
        return out
    if spec.get("replicas") is None:
        spec["replicas"] = names.DEFAULT_REPLICAS
    template = spec.get("leaderWorkerTemplate")
    if isinstance(template, dict):
        _fill(template, "restartPolicy", names.RESTART_RECREATE_GROUP)
    _fill(spec, "groupIdentity", names.IDENTITY_ORDINAL)
    _fill(spec, "groupReplacementPolicy", names.REPLACEMENT_POST_TERMINATION)
    _fill(spec, "podTerminationPolicy", names.TERMINATION_DEFAULT)
    if isinstance(template, dict) and template["restartPolicy"] == names.RESTART_DEFAULT:
        template["restartPolicy"] = names.RESTART_NONE
    if spec.get("rolloutStrategy") is None:
        spec["rolloutStrategy"] = {}
    strategy = spec["rolloutStrategy"]
    if isinstance(strategy, dict):
        _fill(strategy, "type", names.ROLLING_UPDATE)
        if strategy["type"] == names.ROLLING_UPDATE and strategy.get("rollingUpdateConfiguration") is None:
            strategy["rollingUpdateConfiguration"] = {
                "partition": names.DEFAULT_PARTITION,
                "maxUnavailable": names.DEFAULT_MAX_UNAVAILABLE,
                "maxSurge": names.DEFAULT_MAX_SURGE,
            }
    if spec.get("networkConfig") is None:
        spec["networkConfig"] = {}
    network = spec["networkConfig"]
    if isinstance(network, dict) and network.get("subdomainPolicy") is None:
        network["subdomainPolicy"] = names.SUBDOMAIN_SHARED
    return out
