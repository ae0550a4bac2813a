"""Sets for the tests of the API: as small as they can be, with what a test changes."""

from __future__ import annotations

from typing import Any

POLICY = "spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize"
CONFIG = "spec.rolloutStrategy.rollingUpdateConfiguration"
TEMPLATE = "spec.leaderWorkerTemplate"


def lws(template: dict[str, Any] | None = None, meta: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """A set; `template` adds to `leaderWorkerTemplate`, `meta` to its metadata, the rest to its spec."""
    containers = {"workerTemplate": {"spec": {"containers": [{"name": "w", "image": "i"}]}}}
    return {
        "metadata": {"name": "llm", "namespace": "default"} | (meta or {}),
        "spec": {"leaderWorkerTemplate": containers | (template or {})} | spec,
    }


def rolling(**config: Any) -> dict[str, Any]:
    """The fields of a spec that give a rolling update its pace."""
    return {"rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": config}}
