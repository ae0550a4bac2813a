"""A kind of workload that is no StatefulSet: it leaves ordinals out, and updates pods where they are.

A backend of leaders and workers as another package would write it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import count, islice
from typing import Any

from lwskit.api import names
from lwskit.backends.registry import Backends
from lwskit.groups.model import GroupId, GroupPlan, LeaderPlan, LeaderState, Victim, WorkerState
from lwskit.groups.ports import Capability, PolicyRule, Write
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import (
    Obj,
    annotations_of,
    controller_of,
    generation_of,
    is_deleting,
    labels_of,
    uid_of,
)

FLEET = Kind("fleet.example.com", "v1", "Fleet", "fleets")
"""Pods `<fleet>-<ordinal>`, in place of a StatefulSet."""

CRD: Obj = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{FLEET.plural}.{FLEET.group}"},
    "spec": {
        "group": FLEET.group,
        "names": {"kind": FLEET.kind, "plural": FLEET.plural, "singular": "fleet", "listKind": "FleetList"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": FLEET.version,
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            field: {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                            for field in ("spec", "status")
                        },
                    }
                },
            }
        ],
    },
}

RULES = (
    PolicyRule(FLEET.group, ("fleets",), ("create", "delete", "get", "list", "patch", "update", "watch")),
    PolicyRule(FLEET.group, ("fleets/status",), ("get", "patch", "update")),
    PolicyRule(FLEET.group, ("fleets/finalizers",), ("update",)),
)


def ordinals_of(spec: Mapping[str, Any]) -> list[int]:
    """The ordinals that a fleet has pods at: from its first one on, without those that it leaves out."""
    left_out = set(spec.get("leftOut") or ())
    return list(islice((n for n in count(spec.get("first", 0)) if n not in left_out), spec.get("replicas", 1)))


class FleetLeaders:
    """All leaders of a set in one fleet, whose ordinals need not be 0 to n-1."""

    kind: Kind = FLEET
    watches: tuple[Kind, ...] = ()
    write: Write = "apply"
    rbac: tuple[PolicyRule, ...] = RULES
    capabilities: frozenset[Capability] = frozenset(
        {Capability.ORDINALS, Capability.PARTITION, Capability.IN_PLACE_UPDATE}
    )

    def __init__(self, left_out: Iterable[int] = ()) -> None:
        self.left_out = sorted(left_out)

    def render(self, plan: LeaderPlan) -> Obj:
        """The fleet to apply. Its partition says how many leaders, counted from the first, are left as they are."""
        return _fleet(
            plan,
            {
                "leftOut": self.left_out,
                "updateStrategy": {"rollingUpdate": {"partition": plan.partition}},
            },
        )

    def observe(self, obj: Obj) -> LeaderState:
        """What a live fleet says of itself."""
        spec, status = obj["spec"], obj.get("status") or {}
        return LeaderState(
            uid=uid_of(obj),
            replicas=spec["replicas"],
            status_replicas=status.get("replicas", 0),
            partition=spec["updateStrategy"]["rollingUpdate"]["partition"],
            revision=labels_of(obj).get(names.REVISION_LABEL, ""),
            recorded=annotations_of(obj).get(names.REPLICAS_ANNOTATION),
            generation=generation_of(obj),
            observed_generation=status.get("observedGeneration", 0),
            deleting=is_deleting(obj),
        )

    def group_of(self, pod: Obj) -> GroupId | None:
        """The group that a pod of a fleet leads."""
        owner, labels = controller_of(pod), labels_of(pod)
        if owner is None or owner["kind"] != FLEET.kind or labels.get(names.WORKER_INDEX_LABEL) != names.LEADER_INDEX:
            return None
        return GroupId(owner["uid"], labels.get(names.GROUP_INDEX_LABEL, ""))

    def ordinals(self, obj: Obj) -> Sequence[int]:
        """Where the fleet has leaders."""
        return ordinals_of(obj["spec"])

    def rank(self, pods: Sequence[Obj], now: datetime) -> list[Victim]:
        """The highest ordinal goes first."""
        last = sorted(pods, key=lambda pod: -int(pod["metadata"]["name"].rpartition("-")[2]))
        return [Victim(pod["metadata"]["name"], uid_of(pod), "the last of the fleet goes first") for pod in last]


class FleetWorkers:
    """The workers of one group in one fleet; it is applied, so that workers follow an update of their leader."""

    kind: Kind = FLEET
    write: Write = "apply"
    rbac: tuple[PolicyRule, ...] = RULES

    def render(self, plan: GroupPlan) -> Obj:
        """The fleet of a group's workers."""
        return _fleet(plan, {"first": plan.first_ordinal})

    def observe(self, obj: Obj) -> WorkerState:
        """Ready when all pods are ready and as the fleet wants them now."""
        status, replicas = obj.get("status") or {}, obj["spec"]["replicas"]
        seen = status.get("observedGeneration", 0) == generation_of(obj)
        return WorkerState(
            uid=uid_of(obj),
            name=obj["metadata"]["name"],
            ready=seen and status.get("readyReplicas", 0) == status.get("updatedReplicas", 0) == replicas,
            revision=labels_of(obj).get(names.REVISION_LABEL, ""),
            deleting=is_deleting(obj),
        )


def backends() -> Backends:
    """What the entry point of a package would name."""
    return Backends(FleetLeaders(), FleetWorkers())


def _fleet(plan: LeaderPlan | GroupPlan, spec: Obj) -> Obj:
    metadata: Obj = {
        "name": plan.name,
        "namespace": plan.namespace,
        "labels": dict(plan.labels),
        "annotations": dict(plan.annotations),
        "ownerReferences": [plan.owner],
    }
    body = {"replicas": plan.replicas, "serviceName": plan.service_name, "template": plan.template, **spec}
    return {"apiVersion": FLEET.api_version, "kind": FLEET.kind, "metadata": metadata, "spec": body}
