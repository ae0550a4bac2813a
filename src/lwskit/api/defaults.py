"""Defaults that the mutating webhook fills in: those that a schema cannot express, and those of other versions.

Specification: 10 §5. Values of a wrong type are left as they are, so that the schema refuses them by their path.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lwskit.api import names

_ALWAYS = (
    ("groupIdentity", names.IDENTITY_ORDINAL),
    ("groupReplacementPolicy", names.REPLACEMENT_POST_TERMINATION),
    ("podTerminationPolicy", names.TERMINATION_DEFAULT),
)


def default(obj: Mapping[str, Any]) -> dict[str, Any]:
    """A LeaderWorkerSet with its defaults. The argument is not changed; what stays as it is, is shared with it.

    What the CRD's schema fills in (size, startupPolicy, parts of a rolling update) is not filled in here. Parts of a
    wrong type stay as they are, for the schema to refuse. Specification: 10 §5.
    """
    spec = obj.get("spec")
    if spec is None:
        spec = {}
    elif not isinstance(spec, dict):
        return dict(obj)
    get = spec.get
    filled: dict[str, Any] = {}
    if get("replicas") is None:
        filled["replicas"] = names.DEFAULT_REPLICAS
    template = get("leaderWorkerTemplate")
    if isinstance(template, dict):
        policy = template.get("restartPolicy")
        if policy is None or policy == "":
            filled["leaderWorkerTemplate"] = {**template, "restartPolicy": names.RESTART_RECREATE_GROUP}
        elif policy == names.RESTART_DEFAULT:
            filled["leaderWorkerTemplate"] = {**template, "restartPolicy": names.RESTART_NONE}
    for name, value in _ALWAYS:
        given = get(name)
        if given is None or given == "":
            filled[name] = value
    strategy = get("rolloutStrategy")
    if (strategy is None or isinstance(strategy, dict)) and (rolled := _rolled(strategy or {})) is not strategy:
        filled["rolloutStrategy"] = rolled
    network = get("networkConfig")
    if network is None:
        network = {}
    if isinstance(network, dict) and network.get("subdomainPolicy") is None:
        filled["networkConfig"] = {**network, "subdomainPolicy": names.SUBDOMAIN_SHARED}
    return {**obj, "spec": {**spec, **filled}} if filled else dict(obj)


def _rolled(strategy: dict[str, Any]) -> dict[str, Any]:
    """A rollout strategy with its type and, if that is RollingUpdate, its pace."""
    kind = strategy.get("type")
    if kind is None or kind == "":
        strategy = {**strategy, "type": names.ROLLING_UPDATE}
        kind = names.ROLLING_UPDATE
    if kind == names.ROLLING_UPDATE and strategy.get("rollingUpdateConfiguration") is None:
        pace = {
            "partition": names.DEFAULT_PARTITION,
            "maxUnavailable": names.DEFAULT_MAX_UNAVAILABLE,
            "maxSurge": names.DEFAULT_MAX_SURGE,
        }
        strategy = {**strategy, "rollingUpdateConfiguration": pace}
    return strategy
