"""Objects for the tests of the controllers."""

from datetime import UTC, datetime, timedelta
from typing import Any

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(seconds: float) -> str:
    return (NOW + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def stateful_set(replicas: int = 3, *, parallel: bool = True, status: dict | None = None, **spec: Any) -> dict:
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "web", "namespace": "default", "uid": "set-uid", "generation": 2, "resourceVersion": "1"},
        "spec": {
            "replicas": replicas,
            "serviceName": "svc",
            "podManagementPolicy": "Parallel" if parallel else "OrderedReady",
            "selector": {"matchLabels": {"app": "web"}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "template": template("a"),
        }
        | spec,
        "status": status or {},
    }


def template(image: str) -> dict:
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": image}]}}


def revision(name: str, image: str, number: int = 1) -> dict:
    data = {"spec": {"template": template(image) | {"$patch": "replace"}}}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"app": "web"}},
        "data": data,
        "revision": number,
    }


def pod(
    ordinal: int,
    revision: str = "web-new",
    *,
    phase: str = "Running",
    ready: bool = True,
    deleting: bool = False,
    since: float = -100,
) -> dict:
    name = f"web-{ordinal}"
    meta: dict[str, Any] = {
        "name": name,
        "namespace": "default",
        "uid": f"pod-{ordinal}",
        "resourceVersion": "7",
        "labels": {
            "app": "web",
            "statefulset.kubernetes.io/pod-name": name,
            "apps.kubernetes.io/pod-index": str(ordinal),
            "controller-revision-hash": revision,
        },
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "set-uid", "controller": True}
        ],
    }
    if deleting:
        meta["deletionTimestamp"] = at(0)
    ready_status = "True" if ready and phase == "Running" else "False"
    return {
        "metadata": meta,
        "spec": {"containers": [{"name": "main", "image": "a"}]},
        "status": {
            "phase": phase,
            "conditions": [{"type": "Ready", "status": ready_status, "lastTransitionTime": at(since)}],
        },
    }
