"""Pods as the workloads of a set make them, what admission makes of them, and reading that."""

from __future__ import annotations

import hashlib
from typing import Any

from lwskit.api import names
from lwskit.runtime.objects import Obj
from tests.unit.admission.reviews import ask

L = names.PREFIX
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def pod(name: str, labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None, **spec: Any) -> Obj:
    """A pod of the set `test`, of groups of four, as its StatefulSet makes it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {L + k: v for k, v in {"name": "test", **(labels or {})}.items()},
            "annotations": {L + k: v for k, v in {"size": "4", **(annotations or {})}.items()},
        },
        "spec": {"containers": [{"name": "c"}], "subdomain": "test", **spec},
    }


def leader(name: str = "test-1", annotations: dict[str, str] | None = None, **spec: Any) -> Obj:
    return pod(name, {"worker-index": "0"}, annotations, **spec)


def worker(name: str = "test-1-1", annotations: dict[str, str] | None = None, **spec: Any) -> Obj:
    labels = {"group-index": "1", "group-key": "key-of-the-leader"}
    return pod(name, labels, {"leader-name": "test-1", **(annotations or {})}, **spec)


def admit(obj: Obj, namespace: str = "ns") -> Obj:
    answer = ask(names.MUTATE_POD_PATH, obj, namespace=namespace)
    assert answer.allowed, answer.message
    return answer.obj


def denied(obj: Obj) -> str:
    answer = ask(names.MUTATE_POD_PATH, obj)
    assert (answer.allowed, answer.code, answer.patch) == (False, 403, [])
    return answer.message


def sha1(text: str) -> str:
    return hashlib.sha1(text.encode()).hexdigest()


def env_of(obj: Obj, where: str = "containers") -> list[list[tuple[str, str]]]:
    return [[(e["name"], e.get("value", "")) for e in c.get("env", [])] for c in obj["spec"][where]]


def terms(obj: Obj, kind: str) -> list[Obj]:
    return obj["spec"].get("affinity", {}).get(kind, {}).get(REQUIRED, [])


def near(label: str, value: str, topology: str) -> Obj:
    return {
        "topologyKey": topology,
        "labelSelector": {"matchExpressions": [{"key": L + label, "operator": "In", "values": [value]}]},
    }


def far(label: str, value: str, topology: str) -> Obj:
    expressions = [
        {"key": L + label, "operator": "Exists"},
        {"key": L + label, "operator": "NotIn", "values": [value]},
    ]
    return {"topologyKey": topology, "labelSelector": {"matchExpressions": expressions}}


def hash_leader(annotations: dict[str, str] | None = None, **spec: Any) -> Obj:
    """A leader of the set `test` as its ReplicaSet makes it: with its own name still to be drawn."""
    obj = leader("", {"group-identity": "Hash", **(annotations or {})}, **spec)
    del obj["metadata"]["name"]
    obj["metadata"]["generateName"] = "test-7d9f8b6c4-"
    return obj
