"""The Node objects that a simple kubelet registers. Pure."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lwskit.runtime.clock import random_uuid
from lwskit.runtime.objects import Obj

VERSION = "v1.37.2"
"""The kubelet version that nodes report."""
NOT_READY = "node.kubernetes.io/not-ready"
"""The taint that a server puts on new nodes."""

CAPACITY: Mapping[str, str] = {
    "cpu": "64",
    "memory": "256Gi",
    "ephemeral-storage": "1Ti",
    "pods": "1000",
    "nvidia.com/gpu": "8",
    "google.com/tpu": "8",
}
"""What a node has unless told otherwise: enough for samples, accelerators included."""


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """A node to play: its name, labels besides the usual ones, what it has, and its taints."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    capacity: Mapping[str, str] = field(default_factory=lambda: CAPACITY)
    taints: Sequence[Obj] = ()


def node_specs(nodes: int | Sequence[NodeSpec | str]) -> list[NodeSpec]:
    """Nodes from a number (`node-0`, `node-1`, …) or from names and specs."""
    if isinstance(nodes, int):
        return [NodeSpec(f"node-{i}") for i in range(nodes)]
    return [NodeSpec(n) if isinstance(n, str) else n for n in nodes]


def node_object(spec: NodeSpec) -> Obj:
    """The Node to create."""
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": spec.name,
        "kubernetes.io/os": "linux",
    }
    node: Obj = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": spec.name, "labels": labels | dict(spec.labels)},
        "spec": {},
    }
    if spec.taints:
        node["spec"]["taints"] = [dict(t) for t in spec.taints]
    return node


def node_status(spec: NodeSpec, address: str, ready: bool, moment: str, rng: random.Random) -> Obj:
    """The status of a node with its capacity, address and conditions."""
    return {
        "capacity": dict(spec.capacity),
        "allocatable": dict(spec.capacity),
        "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": spec.name}],
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": random_uuid(rng),
            "containerRuntimeVersion": "embedded://1",
            "kernelVersion": "6.0.0",
            "kubeProxyVersion": "",
            "kubeletVersion": VERSION,
            "machineID": random_uuid(rng).replace("-", ""),
            "operatingSystem": "linux",
            "osImage": "Embedded",
            "systemUUID": random_uuid(rng),
        },
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "conditions": conditions(ready, moment),
    }


def conditions(ready: bool, moment: str) -> list[Obj]:
    """The conditions of a node that is ready or not, otherwise well."""
    fine = (
        ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    )
    found = [_condition(kind, "False", reason, message, moment) for kind, reason, message in fine]
    if ready:
        found.append(_condition("Ready", "True", "KubeletReady", "kubelet is posting ready status", moment))
    else:
        found.append(_condition("Ready", "False", "KubeletNotReady", "the node was made not ready", moment))
    return found


def _condition(kind: str, status: str, reason: str, message: str, moment: str) -> Obj:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": moment,
        "lastTransitionTime": moment,
    }
