"""The sets and pods that generated reviews start from: valid, and with every part that admission reads."""

from __future__ import annotations

from typing import Any

from lwskit.api import disaggregated_names, names
from tests.bench.reviewing import leader_worker_set, new_pod, smallest_set

Object = dict[str, Any]


def _containers() -> list[Object]:
    field = {"resourceFieldRef": {"containerName": "c", "resource": "limits.cpu", "divisor": "1000m"}}
    return [
        {
            "name": "c",
            "image": "registry.example.com/serve:v1",
            "command": ["serve"],
            "env": [{"name": "A", "value": "b"}, {"name": "CPU", "valueFrom": field}, {"name": "A", "value": "c"}],
            "ports": [{"containerPort": 8080, "protocol": "TCP"}],
            "resources": {
                "limits": {"cpu": "2000m", "memory": "0.5Gi", names.TPU_RESOURCE: "4"},
                "requests": {"cpu": 1.5, "memory": "1024Mi"},
            },
        },
        {"name": "sidecar", "image": "proxy", "resources": {"limits": {names.TPU_RESOURCE: 4}}},
    ]


def _pod_spec() -> Object:
    term = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "rack"}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    claim = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}}
    return {
        "hostname": "h",
        "subdomain": "s",
        "priorityClassName": "high",
        "containers": _containers(),
        "initContainers": [{"name": "i", "image": "init", "env": [{"name": "B", "value": "$(A)"}]}],
        "affinity": {"podAffinity": required, "podAntiAffinity": required},
        "overhead": {"cpu": "0.25"},
        "volumes": [
            {"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1.5Gi"}},
            {"name": "e", "ephemeral": {"volumeClaimTemplate": claim}},
        ],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "shared"}],
        "schedulingGates": [{"name": "example.com/wait"}],
        "tolerations": [{"key": "k", "operator": "Exists"}],
    }


def _full_set() -> Object:
    template = {"metadata": {"labels": {"app": "llm"}, "annotations": {"x": "y"}}, "spec": _pod_spec()}
    claim = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1000Mi"}}}}
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {
            "name": "llm",
            "namespace": "ns",
            "labels": {"app.kubernetes.io/name": "llm", "tier": "a"},
            "annotations": {
                names.EXCLUSIVE_TOPOLOGY_ANNOTATION: "rack",
                names.SUBGROUP_EXCLUSIVE_TOPOLOGY_ANNOTATION: "host",
            },
            "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u", "controller": True}],
            "finalizers": ["example.com/f"],
        },
        "spec": {
            "replicas": 4,
            "groupIdentity": "Ordinal",
            "groupReplacementPolicy": "PostTermination",
            "podTerminationPolicy": "Default",
            "startupPolicy": "LeaderCreated",
            "rolloutStrategy": {
                "type": "RollingUpdate",
                "rollingUpdateConfiguration": {"partition": 1, "maxUnavailable": "50%", "maxSurge": 1},
            },
            "networkConfig": {"subdomainPolicy": "Shared"},
            "leaderWorkerTemplate": {
                "size": 5,
                "restartPolicy": "RecreateGroupOnPodRestart",
                "maxGroupRestarts": 3,
                "restartBackoff": {"baseSeconds": 1, "capSeconds": 20},
                "subGroupPolicy": {"subGroupSize": 2, "subGroupPolicyType": "LeaderExcluded"},
                "leaderTemplate": template,
                "workerTemplate": template,
                "volumeClaimTemplates": [claim],
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Retain"},
            },
        },
    }


def _scheduled_set() -> Object:
    lws = _full_set()
    role = {"schedulingPolicy": {"gang": {"minCount": 1}}, "resourceClaims": [{"name": "gpu"}]}
    worker = {"schedulingPolicy": {"basic": {}}, "schedulingConstraints": {"topology": [{"key": "rack"}]}}
    lws["metadata"]["annotations"] |= {
        names.GROUP_TEMPLATE_NAME_ANNOTATION: "template",
        names.PARENT_COMPOSITE_POD_GROUP_ANNOTATION: "parent",
    }
    lws["spec"]["scheduling"] = {
        "schedulingPolicy": {"gang": {"minGroupCount": 2}},
        "disruptionMode": {"all": {}},
        "replica": {"schedulingPolicy": {"gang": {}}, "leader": role, "worker": worker},
    }
    return lws


def _hash_set() -> Object:
    lws = _full_set()
    lws["spec"] |= {"groupIdentity": "Hash", "groupReplacementPolicy": "Immediate"}
    return lws


def sets() -> list[Object]:
    """LeaderWorkerSets."""
    return [smallest_set(), leader_worker_set(), _full_set(), _full_set(), _scheduled_set(), _hash_set()]


def disaggregated_sets() -> list[Object]:
    """DisaggregatedSets: small, with scalers, and with sub-roles."""

    def role(name: str, lws: Object, **more: Any) -> Object:
        noted = {"labels": {"a": "b"}, "annotations": {names.EXCLUSIVE_TOPOLOGY_ANNOTATION: "rack"}}
        return {"name": name, "metadata": noted, "spec": lws["spec"], **more}

    def made(*roles: Object, **spec: Any) -> Object:
        return {
            "apiVersion": disaggregated_names.API_VERSION,
            "kind": disaggregated_names.KIND,
            "metadata": {"name": "chat", "namespace": "ns"},
            "spec": {"roles": list(roles), **spec},
        }

    full, hashed = _full_set(), _hash_set()
    full["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"] = 0
    external = {"mode": disaggregated_names.SCALING_EXTERNAL}
    shares = [{"name": "a", "replicas": 2}, {"name": "b", "scaling": external}]
    return [
        made(role("prefill", smallest_set()), role("decode", smallest_set())),
        made(
            role("prefill", full, scaling=external),
            role("decode", hashed, subRoles=shares),
            slices=1,
            scalingPolicy={"duringRollout": disaggregated_names.ADVANCE_ROLLOUT},
        ),
        made(
            role("prefill", full),
            slices=3,
            placementPolicy={"type": disaggregated_names.PLACEMENT_EXCLUSIVE_SLICE, "topology": "rack"},
        ),
    ]


def _full_pod(name: str, labels: dict[str, str], notes: dict[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "ns",
            "labels": {names.NAME_LABEL: "llm", names.REVISION_LABEL: "5c9d8f7b6c", **labels},
            "annotations": {names.SIZE_ANNOTATION: "5", **notes},
        },
        "spec": _pod_spec(),
    }


def pods() -> list[Object]:
    """Leaders and workers, with and without sub-groups and exclusive placement, of both identities; and another pod."""
    grouped = {
        names.SUBGROUP_SIZE_ANNOTATION: "2",
        names.SUBGROUP_POLICY_TYPE_ANNOTATION: names.SUBGROUP_LEADER_WORKER,
        names.EXCLUSIVE_TOPOLOGY_ANNOTATION: "rack",
        names.SUBGROUP_EXCLUSIVE_TOPOLOGY_ANNOTATION: "host",
        names.SUBDOMAIN_POLICY_ANNOTATION: names.SUBDOMAIN_UNIQUE_PER_REPLICA,
        names.LEADER_REQUESTS_TPUS_ANNOTATION: "true",
    }
    leads = {names.WORKER_INDEX_LABEL: names.LEADER_INDEX}
    works = {names.GROUP_INDEX_LABEL: "0", names.GROUP_KEY_LABEL: "3" * 40}
    led = {names.LEADER_NAME_ANNOTATION: "llm-0", names.LEADER_ADDRESS_ANNOTATION: "llm-0.llm.ns"}
    hashed = _full_pod("", leads, {names.GROUP_IDENTITY_ANNOTATION: names.IDENTITY_HASH, **grouped})
    hashed["metadata"] |= {"name": None, "generateName": "llm-"}
    gang = {names.WORKLOAD_AWARE_SCHEDULING_ANNOTATION: names.LEVEL_REPLICA, names.WORKLOAD_NAME_ANNOTATION: "llm"}
    of_role = {
        disaggregated_names.NAME_LABEL: "chat",
        disaggregated_names.ROLE_LABEL: "prefill",
        disaggregated_names.SLICE_LABEL: "0",
        disaggregated_names.REVISION_LABEL: "69150551",
    }
    other = _full_pod("other-0", {}, {})
    del other["metadata"]["labels"][names.NAME_LABEL]
    return [
        new_pod(0, exclusive=True),
        new_pod(1, exclusive=False),
        _full_pod("llm-0", leads, grouped),
        _full_pod("llm-0", leads, {**gang}),
        _full_pod("llm-0-3", works, {**grouped, **led}),
        _full_pod("llm-0-1", works, led),
        hashed,
        _full_pod("llm-0", {**leads, **of_role}, {}),
        other,
    ]
