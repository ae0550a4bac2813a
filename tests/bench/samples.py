"""Pods of 4.6 KB as an API server sends them, one by one, in lists and in the stream of a watch."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterable
from typing import Any

import orjson

SIZE = 4600
"""Bytes of a pod as JSON."""
LABELS = "leaderworkerset.sigs.k8s.io"
OWNER_API, OWNER_KIND = "apps/v1", "StatefulSet"


def pod(number: int, version: int, *, phase: str = "Running") -> dict[str, Any]:
    """Pod `number` in the state that has this resourceVersion, filled up to SIZE with an annotation."""
    found = _pod(number, version, phase)
    missing = SIZE - len(orjson.dumps(found))
    found["metadata"]["annotations"]["example.com/notes"] = _noise(number, missing)
    return found


def event(kind: str, obj: dict[str, Any]) -> bytes:
    """A line of a watch, with its end."""
    return orjson.dumps({"type": kind, "object": obj}) + b"\n"


def stream(pods: int, changes: int) -> list[bytes]:
    """The lines of a watch in which that many pods come, and then each of them changes that many times."""
    lines = [event("ADDED", pod(n, 1000 + n, phase="Pending")) for n in range(pods)]
    for change in range(1, changes + 1):
        lines += [event("MODIFIED", pod(n, 1000 + change * pods + n)) for n in range(pods)]
    return lines


def chunks(lines: Iterable[bytes], size: int = 64 * 1024) -> list[bytes]:
    """The bytes of lines cut as a connection delivers them: anywhere."""
    whole = b"".join(lines)
    return [whole[at : at + size] for at in range(0, len(whole), size)]


def page(pods: int, first: int, size: int, changes: int = 0) -> bytes:
    """The page that begins with pod `first` of a list of that many pods, each of which has changed that many times.

    The continue token is the next number.
    """
    last = min(first + size, pods)
    items = []
    for number in range(first, last):
        item = pod(number, 1000 + changes * pods + number)
        del item["apiVersion"], item["kind"]
        items.append(item)
    meta: dict[str, Any] = {"resourceVersion": str(1000 + (changes + 1) * pods)}
    if last < pods:
        meta |= {"continue": str(last), "remainingItemCount": pods - last}
    return orjson.dumps({"apiVersion": "v1", "kind": "PodList", "metadata": meta, "items": items})


def _noise(seed: int, length: int) -> str:
    """Text of that length that differs from pod to pod."""
    length -= len(',"example.com/notes":""')
    random_bytes = random.Random(seed).randbytes(max(1, length))
    return base64.b64encode(random_bytes).decode()[: max(0, length)]


def _pod(number: int, version: int, phase: str) -> dict[str, Any]:
    group, member = divmod(number, 4)
    lws, namespace = f"set-{group % 200}", f"team-{group % 20}"
    name = f"{lws}-{group}-{member}"
    owner = {
        "apiVersion": OWNER_API,
        "kind": OWNER_KIND,
        "name": f"{lws}-{group}",
        "uid": f"5f1c1c1c-0000-4000-8000-{group:012x}",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    started = "2026-11-29T10:00:00Z"
    environment = [
        {"name": "LWS_LEADER_ADDRESS", "value": f"{name}.{lws}.{namespace}"},
        {"name": "LWS_GROUP_SIZE", "value": "4"},
        {"name": "LWS_WORKER_INDEX", "value": str(member)},
        {"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}},
    ]
    mount = {"name": "kube-api-access", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": True}
    container = {
        "name": "main",
        "image": "registry.example.com/serving/model-server:v1.2.3",
        "args": ["--model", "/models/large", "--port", "8080"],
        "env": environment,
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "resources": {"limits": {"cpu": "8", "memory": "64Gi"}, "requests": {"cpu": "8", "memory": "64Gi"}},
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10},
        "volumeMounts": [mount],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }
    token = {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
    volume = {"name": "kube-api-access", "projected": {"sources": [token], "defaultMode": 420}}
    conditions = [
        {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": started}
        for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    status = {
        "name": "main",
        "state": {"running": {"startedAt": started}},
        "lastState": {},
        "ready": True,
        "restartCount": 0,
        "image": container["image"],
        "imageID": f"registry.example.com/serving/model-server@sha256:{group:064x}",
        "containerID": f"containerd://{number:064x}",
        "started": True,
    }
    managed = {
        "manager": "kubelet",
        "operation": "Update",
        "apiVersion": "v1",
        "time": started,
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:status": {
                "f:conditions": {'k:{"type":"Ready"}': {".": {}, "f:status": {}, "f:type": {}}},
                "f:containerStatuses": {},
                "f:phase": {},
                "f:podIP": {},
            }
        },
        "subresource": "status",
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"0d9e2b5c-0000-4000-8000-{number:012x}",
            "resourceVersion": str(version),
            "generation": 1,
            "creationTimestamp": started,
            "labels": {
                f"{LABELS}/name": lws,
                f"{LABELS}/group-index": str(group),
                f"{LABELS}/worker-index": str(member),
                f"{LABELS}/group-key": f"{group:040x}",
                "app.kubernetes.io/name": "model-server",
            },
            "annotations": {f"{LABELS}/size": "4"},
            "ownerReferences": [owner],
            "managedFields": [managed],
        },
        "spec": {
            "volumes": [volume],
            "containers": [container],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "nodeName": f"node-{number % 500}",
            "securityContext": {},
            "hostname": name,
            "subdomain": lws,
            "schedulerName": "default-scheduler",
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
            ],
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {
            "phase": phase,
            "conditions": conditions,
            "hostIP": f"10.0.{number % 500 // 250}.{number % 250}",
            "podIP": f"10.{number // 65536 % 256}.{number // 256 % 256}.{number % 256}",
            "startTime": started,
            "containerStatuses": [status],
            "qosClass": "Guaranteed",
        },
    }
