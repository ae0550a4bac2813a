"""Leaders in a Deployment: the built-in backend of Hash mode (specification: 30 §2, §4, §14)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from lwskit.api import names
from lwskit.groups import ownership, victims
from lwskit.groups.model import GroupId, LeaderPlan, LeaderState, Victim
from lwskit.groups.ports import Capability, PolicyRule, Write
from lwskit.runtime.kinds import DEPLOYMENT, REPLICA_SET, Kind
from lwskit.runtime.objects import (
    Obj,
    annotations_of,
    generation_of,
    is_deleting,
    labels_of,
    uid_of,
)


class DeploymentLeaders:
    """All leaders of a set in one Deployment, by way of a ReplicaSet for each template: pods without an order."""

    kind: Kind = DEPLOYMENT
    watches: tuple[Kind, ...] = (REPLICA_SET,)
    write: Write = "apply"
    rbac: tuple[PolicyRule, ...] = (
        PolicyRule(
            DEPLOYMENT.group, (DEPLOYMENT.plural,), ("create", "delete", "get", "list", "patch", "update", "watch")
        ),
        PolicyRule(DEPLOYMENT.group, (f"{DEPLOYMENT.plural}/finalizers",), ("update",)),
        # The group-ready condition of leaders.
        PolicyRule("", ("pods/status",), ("get", "patch", "update")),
    )
    capabilities: frozenset[Capability] = frozenset({Capability.READINESS_PACED, Capability.RANKED_SCALE_DOWN})

    def render(self, plan: LeaderPlan) -> Obj:
        """The Deployment to apply: just the fields that the set owns (specification: 30 §4)."""
        return {
            "apiVersion": DEPLOYMENT.api_version,
            "kind": DEPLOYMENT.kind,
            "metadata": {
                "name": plan.name,
                "namespace": plan.namespace,
                "labels": dict(plan.labels),
                "annotations": dict(plan.annotations),
                "ownerReferences": [plan.owner],
            },
            "spec": {
                "replicas": plan.replicas,
                "selector": {"matchLabels": dict(plan.selector)},
                "strategy": {"type": plan.strategy, "rollingUpdate": dict(plan.pace)},
                "template": plan.template,
            },
        }

    def observe(self, obj: Obj) -> LeaderState:
        """What a live Deployment says of itself. Its counts are of pods that neither ended nor are being deleted."""
        status = obj.get("status") or {}
        return LeaderState(
            uid=uid_of(obj),
            replicas=obj["spec"].get("replicas", 1),
            status_replicas=status.get("replicas", 0),
            partition=0,
            revision=labels_of(obj).get(names.REVISION_LABEL, ""),
            recorded=annotations_of(obj).get(names.REPLICAS_ANNOTATION),
            generation=generation_of(obj),
            observed_generation=status.get("observedGeneration", 0),
            deleting=is_deleting(obj),
            status_ready=status.get("readyReplicas", 0),
            status_updated=status.get("updatedReplicas", 0),
        )

    def group_of(self, pod: Obj) -> GroupId | None:
        """The group that a pod leads: its ReplicaSet's UID and its group key."""
        return ownership.led_group(pod, REPLICA_SET)

    def ordinals(self, obj: Obj) -> Sequence[int]:
        """None: its leaders have no order."""
        return ()

    def rank(self, pods: Sequence[Obj], now: datetime) -> list[Victim]:
        """Those go first whose groups serve least, as their ReplicaSet ranks them (specification: 30 §14)."""
        return victims.by_service(pods, now)
