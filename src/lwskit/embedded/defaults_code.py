"""Defaults of built-in kinds that depend on other fields. Pure; every function changes its argument.

Source: the API reference's field descriptions; what they do is compared with a real server by tools/record_defaults.py.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

Value = dict[str, Any]


def container(value: Value) -> None:
    """The pull policy follows the image's tag."""
    if not value.get("imagePullPolicy"):
        value["imagePullPolicy"] = _pull_policy(value.get("image") or "")


def _pull_policy(image: str) -> str:
    if not image or image != image.strip():
        return "IfNotPresent"
    name = image.rpartition("/")[2]
    tag = name.partition("@")[0].partition(":")[2]
    return "IfNotPresent" if "@" in name or tag not in ("", "latest") else "Always"


def image_volume(value: Value) -> None:
    """The pull policy follows the image's tag."""
    if not value.get("pullPolicy"):
        value["pullPolicy"] = _pull_policy(value.get("reference") or "")


def pod(value: Value) -> None:
    """What holds for pods, but not for templates of pods."""
    spec = value.get("spec") or {}
    for name in ("containers", "initContainers"):
        for item in spec.get(name) or ():
            resources = item.get("resources")
            if resources and resources.get("limits"):
                requests = resources.setdefault("requests", {})
                for key, quantity in resources["limits"].items():
                    requests.setdefault(key, quantity)
            for port in item.get("ports") or () if spec.get("hostNetwork") else ():
                if not port.get("hostPort"):
                    port["hostPort"] = port.get("containerPort")


def pod_spec(value: Value) -> None:
    """The old and the new service account field agree."""
    account = value.get("serviceAccountName") or value.get("serviceAccount")
    if account:
        value["serviceAccountName"] = value["serviceAccount"] = account


def pod_status(value: Value) -> None:
    """The one address and the first of the list are the same; the one wins."""
    for one, many in (("podIP", "podIPs"), ("hostIP", "hostIPs")):
        found = value.get(many) or []
        if value.get(one) and (not found or found[0].get("ip") != value[one]):
            value[many] = [{"ip": value[one]}]
        elif found and found[0].get("ip"):
            value[one] = found[0]["ip"]


def volume(value: Value) -> None:
    """A volume without a source is an empty directory."""
    if len(value) <= 1:
        value["emptyDir"] = {}


def service_spec(value: Value) -> None:
    """Targets follow ports; traffic policies follow the type."""
    for port in value.get("ports") or ():
        if not port.get("targetPort"):
            port["targetPort"] = port.get("port")
    kind = value.get("type") or "ClusterIP"
    if kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and value.get("externalIPs")):
        value.setdefault("externalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        value.setdefault("allocateLoadBalancerNodePorts", True)
    if kind != "ExternalName":
        value.setdefault("internalTrafficPolicy", "Cluster")
    if value.get("sessionAffinity") in (None, "", "None"):
        value.pop("sessionAffinityConfig", None)
    if value.get("sessionAffinity") == "ClientIP":
        config = value.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {})
        config.setdefault("timeoutSeconds", 10800)


def load_balancer_ingress(value: Value) -> None:
    """An address of a load balancer is used as it is."""
    if value.get("ip") and not value.get("ipMode"):
        value["ipMode"] = "VIP"


def stateful_set_spec(value: Value) -> None:
    """A rolling update has a partition."""
    strategy = value.setdefault("updateStrategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] == "RollingUpdate" and rolling is not None:
        rolling.setdefault("partition", 0)
        rolling.setdefault("maxUnavailable", 1)


def deployment_spec(value: Value) -> None:
    """A rolling update has both of its limits."""
    strategy = value.setdefault("strategy", {})
    if strategy.get("type") in (None, "", "RollingUpdate"):
        strategy["type"] = "RollingUpdate"
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")


def daemon_set_spec(value: Value) -> None:
    """A rolling update has both of its limits."""
    strategy = value.setdefault("updateStrategy", {})
    if strategy.get("type") in (None, "", "RollingUpdate"):
        strategy["type"] = "RollingUpdate"
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)


def daemon_set(value: Value) -> None:
    """The annotation that carries an old field; it counts updates of the template no more."""
    value["metadata"].setdefault("annotations", {}).setdefault("deprecated.daemonset.template.generation", "1")


def node(value: Value) -> None:
    """What can be allocated is what is there, until the kubelet says otherwise."""
    status = value.get("status") or {}
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])


def labels_from_template(value: Value) -> None:
    """Labels and, in a replication controller, the selector follow the template's labels."""
    spec = value.get("spec") or {}
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if labels:
        if not spec.get("selector"):
            spec["selector"] = dict(labels)
        if not value["metadata"].get("labels"):
            value["metadata"]["labels"] = dict(labels)


def subject(value: Value) -> None:
    """The group of a subject follows its kind."""
    if not value.get("apiGroup"):
        if value.get("kind") in ("User", "Group"):
            value["apiGroup"] = "rbac.authorization.k8s.io"
        else:
            value.pop("apiGroup", None)


def network_policy(value: Value) -> None:
    """A policy is about incoming traffic, and about outgoing traffic if it has rules for that."""
    if not value.get("policyTypes"):
        value["policyTypes"] = ["Ingress", "Egress"] if value.get("egress") else ["Ingress"]


def namespace(value: Value) -> None:
    """The label that carries a namespace's name."""
    if value["metadata"].get("name"):
        labels = value["metadata"].setdefault("labels", {})
        labels.setdefault("kubernetes.io/metadata.name", value["metadata"]["name"])


def secret(value: Value) -> None:
    """Write-only text is stored encoded."""
    texts = value.pop("stringData", None)
    if texts:
        data = value.setdefault("data", {})
        for key, text in texts.items():
            data[key] = base64.b64encode(text.encode()).decode()


CONDITIONAL: dict[str, Callable[[Value], None]] = {
    "core.v1.Container": container,
    "core.v1.EphemeralContainer": container,
    "core.v1.Pod": pod,
    "core.v1.PodSpec": pod_spec,
    "core.v1.Volume": volume,
    "core.v1.ImageVolumeSource": image_volume,
    "core.v1.ServiceSpec": service_spec,
    "core.v1.PodStatus": pod_status,
    "core.v1.LoadBalancerIngress": load_balancer_ingress,
    "core.v1.Namespace": namespace,
    "core.v1.Secret": secret,
    "core.v1.ReplicationController": labels_from_template,
    "core.v1.Node": node,
    "apps.v1.DaemonSet": daemon_set,
    "apps.v1.StatefulSetSpec": stateful_set_spec,
    "apps.v1.DeploymentSpec": deployment_spec,
    "apps.v1.DaemonSetSpec": daemon_set_spec,
    "rbac.v1.Subject": subject,
    "networking.v1.NetworkPolicySpec": network_policy,
}
"""By the struct's name in the table of types."""
