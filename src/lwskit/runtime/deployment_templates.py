"""Which ReplicaSet of a Deployment is the one of its present template. Pure.

Source: Kubernetes documentation, "Deployments": pod-template-hash label.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lwskit.runtime.deployment_sizes import age_of
from lwskit.runtime.objects import Obj
from lwskit.runtime.semantic import semantic_equal

HASH_LABEL = "pod-template-hash"


def same_template(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two pod templates are the same but for the label with the hash."""
    return semantic_equal(_without_hash(one), _without_hash(other))


def _without_hash(template: Mapping[str, Any]) -> Obj:
    meta = dict(template.get("metadata") or {})
    meta["labels"] = {k: v for k, v in (meta.get("labels") or {}).items() if k != HASH_LABEL}
    return {**template, "metadata": meta}


def by_age(sets: Iterable[Obj]) -> list[Obj]:
    """ReplicaSets from the oldest to the newest, those of one second by name."""
    return sorted(sets, key=age_of)


def newest_of_template(deployment: Mapping[str, Any], sets: Iterable[Obj]) -> Obj | None:
    """The ReplicaSet of the Deployment's present template: of several the oldest; None where there is none yet."""
    template = deployment["spec"]["template"]
    return next((s for s in by_age(sets) if same_template(s["spec"].get("template") or {}, template)), None)
