"""DisaggregatedSets for tests: as small as they can be, with what a test changes."""

from __future__ import annotations

from typing import Any

NAME = "spec.roles[{}].name"
PACE = "spec.roles[{}].spec.rolloutStrategy.rollingUpdateConfiguration"


def role(name: str = "prefill", template: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A role; fields of a LeaderWorkerSet's spec go there, all others beside it."""
    containers = {"workerTemplate": {"spec": {"containers": [{"name": "w", "image": "i"}]}}}
    beside = {key: more.pop(key) for key in ("metadata", "scaling", "subRoles") if key in more}
    spec = {"replicas": 1, "leaderWorkerTemplate": {"size": 1} | containers | (template or {})} | more
    return {"name": name, **beside, "spec": {key: value for key, value in spec.items() if value is not None}}


def rolling(**config: Any) -> dict[str, Any]:
    """The fields of a role that give a rolling update its pace."""
    return {"rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": config}}


def external(name: str = "prefill", template: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A role that a scaler counts."""
    return role(name, template, scaling={"mode": "External"}, **more)


def subroles(*children: dict[str, Any], name: str = "prefill", **more: Any) -> dict[str, Any]:
    """A role with sub-roles."""
    return role(name, subRoles=list(children), **more)


def sub(name: str, replicas: int | None = None, mode: str = "") -> dict[str, Any]:
    """A sub-role."""
    counted = {} if replicas is None else {"replicas": replicas}
    return {"name": name, **counted, **({"scaling": {"mode": mode}} if mode else {})}


def ds(*roles: dict[str, Any], name: str = "chat", **spec: Any) -> dict[str, Any]:
    """A set of these roles, or of prefill and decode."""
    return {
        "apiVersion": "disaggregatedset.x-k8s.io/v1",
        "kind": "DisaggregatedSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"roles": list(roles or (role(), role("decode"))), **spec},
    }
