"""Leaders and workers as StatefulSets: the built-in backends of Ordinal mode (specification: 20 §5, §6.2, §10.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from lwskit.api import names
from lwskit.groups import ownership, victims
from lwskit.groups.model import GroupId, GroupPlan, LeaderPlan, LeaderState, Victim, WorkerState
from lwskit.groups.ports import Capability, PolicyRule, Write
from lwskit.groups.spec import is_count
from lwskit.runtime.kinds import STATEFUL_SET, Kind
from lwskit.runtime.objects import (
    Obj,
    annotations_of,
    generation_of,
    is_deleting,
    labels_of,
    uid_of,
)

_RULES = (
    PolicyRule("apps", ("statefulsets",), ("create", "delete", "get", "list", "patch", "update", "watch")),
    PolicyRule("apps", ("statefulsets/status",), ("get", "patch", "update")),
    PolicyRule("apps", ("statefulsets/finalizers",), ("update",)),
)


class StatefulSetLeaders:
    """All leaders of a set in one StatefulSet: group i is led by pod `<set>-<i>`."""

    kind: Kind = STATEFUL_SET
    watches: tuple[Kind, ...] = ()
    write: Write = "apply"
    rbac: tuple[PolicyRule, ...] = _RULES
    capabilities: frozenset[Capability] = frozenset(
        {Capability.ORDINALS, Capability.PARTITION, Capability.CLAIM_TEMPLATES}
    )

    def render(self, plan: LeaderPlan) -> Obj:
        """The StatefulSet to apply: just the fields that the set owns (specification: 20 §5)."""
        spec: Obj = {
            "replicas": plan.replicas,
            "serviceName": plan.service_name,
            "podManagementPolicy": "Parallel",
            "updateStrategy": {
                "type": plan.strategy,
                "rollingUpdate": {"maxUnavailable": plan.max_unavailable, "partition": plan.partition},
            },
            "selector": {"matchLabels": dict(plan.selector)},
            "template": plan.template,
        }
        return _statefulset(plan, spec)

    def observe(self, obj: Obj) -> LeaderState:
        """What a live StatefulSet says of itself."""
        spec, status = obj["spec"], obj.get("status") or {}
        rolling = (spec.get("updateStrategy") or {}).get("rollingUpdate") or {}
        return LeaderState(
            uid=uid_of(obj),
            replicas=spec.get("replicas", 1),
            status_replicas=status.get("replicas", 0),
            partition=rolling.get("partition", 0),
            revision=_revision(obj),
            recorded=annotations_of(obj).get(names.REPLICAS_ANNOTATION),
            generation=generation_of(obj),
            observed_generation=status.get("observedGeneration", 0),
            deleting=is_deleting(obj),
            settled=status.get("currentRevision", "") in ("", status.get("updateRevision", "")),
        )

    def group_of(self, pod: Obj) -> GroupId | None:
        """The group that a pod leads: its StatefulSet's UID and its group-index label."""
        return ownership.led_group(pod, STATEFUL_SET)

    def ordinals(self, obj: Obj) -> Sequence[int]:
        """From the StatefulSet's first ordinal on, as many as it asks for."""
        start = (obj["spec"].get("ordinals") or {}).get("start", 0)
        return range(start, start + obj["spec"].get("replicas", 1))

    def rank(self, pods: Sequence[Obj], now: datetime) -> list[Victim]:
        """The highest ordinal goes first (Kubernetes documentation: StatefulSets, scaling)."""
        return victims.by_ordinal(pods)


class StatefulSetWorkers:
    """The workers of one group in one StatefulSet, owned by the leader pod: `<leader>-1` to `<leader>-<size-1>`."""

    kind: Kind = STATEFUL_SET
    write: Write = "create"
    rbac: tuple[PolicyRule, ...] = _RULES

    def render(self, plan: GroupPlan) -> Obj:
        """The StatefulSet to create (specification: 20 §10.4)."""
        spec: Obj = {
            "replicas": plan.replicas,
            "serviceName": plan.service_name,
            "podManagementPolicy": "Parallel",
            "ordinals": {"start": plan.first_ordinal},
            "selector": {"matchLabels": dict(plan.selector)},
            "template": plan.template,
        }
        return _statefulset(plan, spec)

    def observe(self, obj: Obj) -> WorkerState:
        """Ready when as many workers are available as asked for, all of one StatefulSet revision (20 §6.2).

        One that somebody has scaled so that the group cannot be whole is never ready.
        """
        status, asked = obj.get("status") or {}, obj["spec"].get("replicas", 1)
        available = status.get("availableReplicas", 0) == asked and asked >= _size_told(obj) - 1
        return WorkerState(
            uid=uid_of(obj),
            name=obj["metadata"]["name"],
            ready=available and status.get("currentRevision", "") == status.get("updateRevision", ""),
            revision=labels_of(obj).get(names.REVISION_LABEL, ""),
            deleting=is_deleting(obj),
        )


def _size_told(obj: Obj) -> int:
    """How many pods the group of a StatefulSet of workers has by the size in its template, 0 if that does not say."""
    template = (obj["spec"].get("template") or {}).get("metadata") or {}
    text = (template.get("annotations") or {}).get(names.SIZE_ANNOTATION, "")
    return int(text) if is_count(text) else 0


def _revision(obj: Obj) -> str:
    """The key that the template carries: of another one on the object itself no pod knows."""
    template = (obj["spec"].get("template") or {}).get("metadata") or {}
    return (template.get("labels") or {}).get(names.REVISION_LABEL) or labels_of(obj).get(names.REVISION_LABEL, "")


def _statefulset(plan: LeaderPlan | GroupPlan, spec: Obj) -> Obj:
    metadata: dict[str, Any] = {
        "name": plan.name,
        "namespace": plan.namespace,
        "labels": dict(plan.labels),
        **_unless_empty("annotations", plan.annotations),
        "ownerReferences": [plan.owner],
    }
    if plan.claims:
        spec["volumeClaimTemplates"] = list(plan.claims)
    if plan.retention is not None:
        spec["persistentVolumeClaimRetentionPolicy"] = plan.retention
    return {"apiVersion": STATEFUL_SET.api_version, "kind": STATEFUL_SET.kind, "metadata": metadata, "spec": spec}


def _unless_empty(name: str, value: Mapping[str, str]) -> dict[str, Any]:
    return {name: dict(value)} if value else {}
