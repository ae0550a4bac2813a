"""Which columns the tables of built-in kinds have, and their cells. Pure.

Source: what a real server answers to `Accept: application/json;as=Table`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from lwskit.embedded import table_text as text
from lwskit.runtime.objects import Obj, controller_of, group_of

Cells = Callable[[Obj, datetime], list[Any]]
Column = tuple[str, str, str, int]
"""Name, type, format, priority; columns of priority 1 are for wide output."""

NAME: Column = ("Name", "string", "name", 0)


def _texts(*names: str, priority: int = 0) -> list[Column]:
    return [(n, "string", "", priority) for n in names]


def _numbers(*names: str) -> list[Column]:
    return [(n, "integer", "", 0) for n in names]


def _wide(*names: str) -> list[Column]:
    return _texts(*names, priority=1)


def _pod(obj: Obj, now: datetime) -> list[Any]:
    state, status = text.PodState(obj, now), obj.get("status") or {}
    return [
        f"{state.ready}/{state.total}",
        state.reason,
        state.restarts_text,
        text.age(obj, now),
        status.get("podIP") or text.NONE,
        obj["spec"].get("nodeName") or text.NONE,
        status.get("nominatedNodeName") or text.NONE,
        state.gates_text,
    ]


def _service(obj: Obj, now: datetime) -> list[Any]:
    spec = obj["spec"]
    return [
        spec.get("type", "ClusterIP"),
        spec.get("clusterIP") or text.NONE,
        text.external_addresses(obj),
        text.service_ports(spec.get("ports") or ()),
        text.age(obj, now),
        text.labels(spec.get("selector")),
    ]


def _node(obj: Obj, now: datetime) -> list[Any]:
    status = obj.get("status") or {}
    info, addresses = status.get("nodeInfo") or {}, status.get("addresses") or ()

    def address(kind: str) -> str:
        return next((a["address"] for a in addresses if a["type"] == kind), text.NONE)

    return [
        text.node_status(obj),
        text.node_roles(obj),
        text.age(obj, now),
        info.get("kubeletVersion", ""),
        address("InternalIP"),
        address("ExternalIP"),
        info.get("osImage") or text.UNKNOWN,
        info.get("kernelVersion") or text.UNKNOWN,
        info.get("containerRuntimeVersion") or text.UNKNOWN,
    ]


def _stateful_set(obj: Obj, now: datetime) -> list[Any]:
    ready = (obj.get("status") or {}).get("readyReplicas", 0)
    return [
        f"{ready}/{obj['spec'].get('replicas', 0)}",
        text.age(obj, now),
        *text.containers(obj["spec"]["template"]["spec"]),
    ]


def _deployment(obj: Obj, now: datetime) -> list[Any]:
    status = obj.get("status") or {}
    return [
        f"{status.get('readyReplicas', 0)}/{obj['spec'].get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        text.age(obj, now),
        *text.containers(obj["spec"]["template"]["spec"]),
        text.selector(obj["spec"].get("selector")),
    ]


def _replica_set(obj: Obj, now: datetime) -> list[Any]:
    status, given = obj.get("status") or {}, obj["spec"].get("selector")
    shown = text.labels(given) if obj["kind"] == "ReplicationController" else text.selector(given)
    template = (obj["spec"].get("template") or {}).get("spec") or {}
    return [
        obj["spec"].get("replicas", 0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        text.age(obj, now),
        *text.containers(template),
        shown,
    ]


def _daemon_set(obj: Obj, now: datetime) -> list[Any]:
    status = obj.get("status") or {}
    template = obj["spec"]["template"]["spec"]
    return [
        status.get("desiredNumberScheduled", 0),
        status.get("currentNumberScheduled", 0),
        status.get("numberReady", 0),
        status.get("updatedNumberScheduled", 0),
        status.get("numberAvailable", 0),
        text.labels(template.get("nodeSelector")),
        text.age(obj, now),
        *text.containers(template),
        text.selector(obj["spec"].get("selector")),
    ]


def _revision(obj: Obj, now: datetime) -> list[Any]:
    owner = controller_of(obj)
    shown = text.NONE
    if owner is not None:
        group = group_of(owner["apiVersion"])
        shown = f"{owner['kind'].lower()}{'.' + group if group else ''}/{owner['name']}"
    return [shown, obj.get("revision", 0), text.age(obj, now)]


def _event(obj: Obj, now: datetime) -> list[Any]:
    target, source = obj.get("involvedObject") or {}, obj.get("source") or {}
    series = obj.get("series") or {}
    first = text.since(obj.get("firstTimestamp") or obj.get("eventTime"), now)
    if series:
        last = text.since(series.get("lastObservedTime"), now)
    else:
        last = text.since(obj.get("lastTimestamp"), now) if obj.get("lastTimestamp") else first
    component = source.get("component") or obj.get("reportingComponent", "")
    instance = source.get("host") or obj.get("reportingInstance", "")
    return [
        last,
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{target.get('kind', '').lower()}/{target.get('name', '')}"
        if target.get("name")
        else target.get("kind", "").lower(),
        target.get("fieldPath", ""),
        f"{component}, {instance}" if instance else component,
        (obj.get("message") or "").strip(),
        first,
        series.get("count") or obj.get("count") or 1,
        obj["metadata"]["name"],
    ]


def _claim(obj: Obj, now: datetime) -> list[Any]:
    spec, status = obj["spec"], obj.get("status") or {}
    phase = "Terminating" if obj["metadata"].get("deletionTimestamp") else status.get("phase", "")
    bound = bool(spec.get("volumeName"))
    return [
        phase,
        spec.get("volumeName", ""),
        (status.get("capacity") or {}).get("storage", "") if bound else "",
        text.access_modes(status.get("accessModes")) if bound else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or "<unset>",
        text.age(obj, now),
        spec.get("volumeMode") or "<unset>",
    ]


def _volume(obj: Obj, now: datetime) -> list[Any]:
    spec, status = obj["spec"], obj.get("status") or {}
    claim = spec.get("claimRef")
    phase = "Terminating" if obj["metadata"].get("deletionTimestamp") else status.get("phase", "")
    return [
        (spec.get("capacity") or {}).get("storage", ""),
        text.access_modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        phase,
        f"{claim['namespace']}/{claim['name']}" if claim else "",
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or "<unset>",
        status.get("reason", ""),
        text.age(obj, now),
        spec.get("volumeMode") or "<unset>",
    ]


def _crd(obj: Obj, now: datetime) -> list[Any]:
    spec = obj["spec"]
    versions = text.joined(v["name"] + ("(storage)" if v.get("storage") else "") for v in spec["versions"])
    conditions = (obj.get("status") or {}).get("conditions") or ()
    established = any(c["type"] == "Established" and c["status"] == "True" for c in conditions)
    short = text.joined(spec["names"].get("shortNames") or ())
    created = obj["metadata"].get("creationTimestamp")
    return [spec["scope"], versions, created, spec["group"], spec["names"]["kind"], short, established]


def _binding(obj: Obj, now: datetime) -> list[Any]:
    role, subjects = obj["roleRef"], obj.get("subjects") or ()

    def named(kind: str) -> str:
        return text.joined(s["name"] for s in subjects if s["kind"] == kind)

    accounts = text.joined(f"{s.get('namespace', '')}/{s['name']}" for s in subjects if s["kind"] == "ServiceAccount")
    return [f"{role['kind']}/{role['name']}", text.age(obj, now), named("User"), named("Group"), accounts]


def _slice(obj: Obj, now: datetime) -> list[Any]:
    ports = [str(p["port"]) for p in obj.get("ports") or () if p.get("port") is not None]
    addresses = [a for e in obj.get("endpoints") or () for a in e.get("addresses") or ()]

    def few(items: Sequence[str]) -> str:
        shown = text.joined(items[:3])
        return f"{shown} + {len(items) - 3} more..." if len(items) > 3 else shown or "<unset>"

    return [obj.get("addressType", ""), few(ports), few(addresses), text.age(obj, now)]


def _budget(obj: Obj, now: datetime) -> list[Any]:
    spec = obj["spec"]

    def shown(name: str) -> str:
        return "N/A" if spec.get(name) is None else str(spec[name])

    allowed = (obj.get("status") or {}).get("disruptionsAllowed", 0)
    return [shown("minAvailable"), shown("maxUnavailable"), allowed, text.age(obj, now)]


def _count(field: str) -> Cells:
    return lambda obj, now: [len(obj.get(field) or ()), text.age(obj, now)]


def _created(obj: Obj, now: datetime) -> list[Any]:
    return [obj["metadata"].get("creationTimestamp")]


_RBAC: list[Column] = [*_texts("Role", "Age"), *_wide("Users", "Groups", "ServiceAccounts")]
_REPLICAS = [*_numbers("Desired", "Current", "Ready"), *_texts("Age"), *_wide("Containers", "Images", "Selector")]
_CREATED: list[Column] = [("Created At", "date", "", 0)]

TABLES: dict[str, tuple[list[Column], Cells]] = {
    "/pods": (
        [*_texts("Ready", "Status", "Restarts", "Age"), *_wide("IP", "Node", "Nominated Node", "Readiness Gates")],
        _pod,
    ),
    "/services": ([*_texts("Type", "Cluster-IP", "External-IP", "Port(s)", "Age"), *_wide("Selector")], _service),
    "/nodes": (
        [
            *_texts("Status", "Roles", "Age", "Version"),
            *_wide("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime"),
        ],
        _node,
    ),
    "/namespaces": (
        _texts("Status", "Age"),
        lambda o, now: [(o.get("status") or {}).get("phase", ""), text.age(o, now)],
    ),
    "/configmaps": (
        _texts("Data", "Age"),
        lambda o, now: [len(o.get("data") or ()) + len(o.get("binaryData") or ()), text.age(o, now)],
    ),
    "/secrets": (
        _texts("Type", "Data", "Age"),
        lambda o, now: [o.get("type", ""), len(o.get("data") or ()), text.age(o, now)],
    ),
    "/serviceaccounts": (_texts("Age"), lambda o, now: [text.age(o, now)]),
    "/persistentvolumeclaims": (
        [
            *_texts("Status", "Volume", "Capacity", "Access Modes", "StorageClass", "VolumeAttributesClass", "Age"),
            *_wide("VolumeMode"),
        ],
        _claim,
    ),
    "/persistentvolumes": (
        [
            *_texts("Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim"),
            *_texts("StorageClass", "VolumeAttributesClass", "Reason", "Age"),
            *_wide("VolumeMode"),
        ],
        _volume,
    ),
    "/replicationcontrollers": (_REPLICAS, _replica_set),
    "apps/replicasets": (_REPLICAS, _replica_set),
    "apps/statefulsets": ([*_texts("Ready", "Age"), *_wide("Containers", "Images")], _stateful_set),
    "apps/deployments": (
        [*_texts("Ready", "Up-to-date", "Available", "Age"), *_wide("Containers", "Images", "Selector")],
        _deployment,
    ),
    "apps/daemonsets": (
        [
            *_numbers("Desired", "Current", "Ready", "Up-to-date", "Available"),
            *_texts("Node Selector", "Age"),
            *_wide("Containers", "Images", "Selector"),
        ],
        _daemon_set,
    ),
    "apps/controllerrevisions": (_texts("Controller", "Revision", "Age"), _revision),
    "coordination.k8s.io/leases": (
        _texts("Holder", "Age"),
        lambda o, now: [(o.get("spec") or {}).get("holderIdentity") or "", text.age(o, now)],
    ),
    "apiextensions.k8s.io/customresourcedefinitions": (
        [
            *_texts("Scope", "Versions"),
            *_CREATED,
            *_wide("Group", "Kind", "ShortNames"),
            ("Established", "boolean", "", 1),
        ],
        _crd,
    ),
    "policy/poddisruptionbudgets": (
        [*_texts("Min Available", "Max Unavailable"), *_numbers("Allowed Disruptions"), *_texts("Age")],
        _budget,
    ),
    "scheduling.k8s.io/priorityclasses": (
        [*_numbers("Value"), ("Global-Default", "boolean", "", 0), *_texts("Age", "PreemptionPolicy")],
        lambda o, now: [o["value"], bool(o.get("globalDefault")), text.age(o, now), o.get("preemptionPolicy", "")],
    ),
    "storage.k8s.io/storageclasses": (
        _texts("Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", "Age"),
        lambda o, now: [
            o["provisioner"],
            o.get("reclaimPolicy", "Delete"),
            o.get("volumeBindingMode", "Immediate"),
            str(bool(o.get("allowVolumeExpansion"))).lower(),
            text.age(o, now),
        ],
    ),
    "rbac.authorization.k8s.io/roles": (_CREATED, _created),
    "rbac.authorization.k8s.io/clusterroles": (_CREATED, _created),
    "rbac.authorization.k8s.io/rolebindings": (_RBAC, _binding),
    "rbac.authorization.k8s.io/clusterrolebindings": (_RBAC, _binding),
    "discovery.k8s.io/endpointslices": (_texts("AddressType", "Ports", "Endpoints", "Age"), _slice),
    "admissionregistration.k8s.io/mutatingwebhookconfigurations": (
        [*_numbers("Webhooks"), *_texts("Age")],
        _count("webhooks"),
    ),
    "admissionregistration.k8s.io/validatingwebhookconfigurations": (
        [*_numbers("Webhooks"), *_texts("Age")],
        _count("webhooks"),
    ),
    "/limitranges": (_CREATED, _created),
}
"""By table of the store: the columns after the name, and the function that makes their cells."""

EVENT_COLUMNS: list[Column] = [
    *_texts("Last Seen", "Type", "Reason", "Object"),
    *_wide("Subobject", "Source"),
    *_texts("Message"),
    *_wide("First Seen", "Count"),
    ("Name", "string", "name", 1),
]
event_cells: Cells = _event
"""Events have their name last."""
