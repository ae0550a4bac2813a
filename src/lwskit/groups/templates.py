"""What leaders and workers are made from: plans that a backend renders. Pure.

Specification: 20 §5 (leaders), §10.4 (workers).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lwskit.api import names
from lwskit.groups import accelerators, ownership, spec
from lwskit.groups.identity import has_hash_identity
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.model import DecisionError, GroupPlan, LeaderPlan
from lwskit.runtime.kinds import PERSISTENT_VOLUME_CLAIM, POD
from lwskit.runtime.objects import Obj, annotations_of, controller_reference, key_of, labels_of

_COUNTERS = frozenset({names.GROUP_RESTART_COUNTS_ANNOTATION, names.GROUP_RESTART_LEADERS_ANNOTATION})
_CLAIM_FIELDS = ("accessModes", "storageClassName", "volumeMode")
_CLAIM_RESOURCES = ("requests", "limits")
_LARGEST = 2**31 - 1
"""The largest number that a workload can have."""


def leader_plan(lws: Obj, revision: str, *, partition: int, replicas: int) -> LeaderPlan:
    """The workload of a set's leaders, all from the live set. `revision` is the key of its current revision."""
    name = lws["metadata"]["name"]
    selector = {names.NAME_LABEL: name, names.WORKER_INDEX_LABEL: names.LEADER_INDEX}
    template = spec.template_of(lws)
    surge = spec.max_surge(lws)
    return LeaderPlan(
        name=name,
        namespace=lws["metadata"]["namespace"],
        labels={
            **labels_of(lws),
            names.NAME_LABEL: name,
            names.REVISION_LABEL: revision,
            names.ROLE_LABEL: names.ROLE_LEADER,
        },
        annotations={**_copied(lws), names.REPLICAS_ANNOTATION: str(spec.replicas(lws))},
        owner=controller_reference(lws, LEADER_WORKER_SET),
        replicas=replicas,
        partition=partition,
        strategy=spec.strategy(lws),
        max_unavailable=min(max(1, spec.max_unavailable(lws) + surge), _LARGEST),
        max_surge=surge,
        service_name=name,
        selector=selector,
        template=_template(
            template.get("leaderTemplate") or template["workerTemplate"],
            {**selector, names.REVISION_LABEL: revision},
            _leader_annotations(lws),
        ),
        claims=claims(lws),
        retention=template.get("persistentVolumeClaimRetentionPolicy"),
        revision=revision,
    )


def hashed_leader_plan(lws: Obj, revision: str) -> LeaderPlan:
    """The workload of the leaders of a set in Hash mode: it surges and rolls by itself, so it is told no more than what
    the set says.

    Specification: 30 §4.
    """
    plan = leader_plan(lws, revision, partition=0, replicas=spec.replicas(lws))
    return replace(plan, template=_hashed(plan.template, plan.name, spec.size(lws)), pace=_pace(lws))


def _hashed(template: Obj, subdomain: str, size: int) -> Obj:
    """A leader template as a Hash set has it: with a subdomain, which only StatefulSets add, and with the gate that
    makes a leader ready no sooner than its group."""
    metadata = template["metadata"]
    notes = {**metadata["annotations"], names.GROUP_IDENTITY_ANNOTATION: names.IDENTITY_HASH}
    # The schema lets a template be without a spec; the API server then says so of the workload.
    pod = {**(template.get("spec") or {}), "subdomain": subdomain}
    gates = [*(pod.get("readinessGates") or ())]
    if size > 1 and all(gate.get("conditionType") != names.GROUP_READY_GATE for gate in gates):
        pod["readinessGates"] = [*gates, {"conditionType": names.GROUP_READY_GATE}]
    return {**template, "metadata": {**metadata, "annotations": notes}, "spec": pod}


def _pace(lws: Obj) -> dict[str, int | str]:
    unavailable, surge = spec.rolling_update(lws)
    return {"maxUnavailable": unavailable, "maxSurge": surge}


def group_plan(lws: Obj, group_lws: Obj, leader: Obj, node_selector: Mapping[str, str] | None = None) -> GroupPlan:
    """The workload of one group's workers.

    `lws` is the live set, `group_lws` the set as of the leader's revision: templates, size and policies come from
    that, labels and annotations from the live one. `node_selector` places the workers where the leader is.
    Raises DecisionError for a leader without host name or subdomain.
    """
    name, namespace = lws["metadata"]["name"], lws["metadata"]["namespace"]
    host, subdomain = leader["spec"].get("hostname"), leader["spec"].get("subdomain")
    if not host or not subdomain:
        raise DecisionError(f"leader pod {key_of(leader)} has no hostname or subdomain")
    place = labels_of(leader)
    selector = {
        names.NAME_LABEL: name,
        names.GROUP_INDEX_LABEL: place.get(names.GROUP_INDEX_LABEL, ""),
        names.GROUP_KEY_LABEL: place.get(names.GROUP_KEY_LABEL, ""),
    }
    made = {**selector, names.REVISION_LABEL: ownership.revision_key(leader)}
    template = spec.template_of(group_lws)
    notes = {
        **_group_annotations(lws, group_lws),
        names.LEADER_NAME_ANNOTATION: leader["metadata"]["name"],
        names.LEADER_ADDRESS_ANNOTATION: f"{host}.{subdomain}.{namespace}",
    }
    if has_hash_identity(leader):
        notes[names.GROUP_IDENTITY_ANNOTATION] = names.IDENTITY_HASH
    if accelerators.requests_tpus(leader):
        notes[names.LEADER_REQUESTS_TPUS_ANNOTATION] = "true"
    return GroupPlan(
        name=ownership.workers_name(leader),
        namespace=namespace,
        labels={**labels_of(lws), **made, names.ROLE_LABEL: names.ROLE_WORKER},
        annotations=_copied(lws),
        owner=controller_reference(leader, POD),
        replicas=spec.size(group_lws) - 1,
        first_ordinal=1,
        service_name=subdomain,
        selector=selector,
        template=_placed(_template(template["workerTemplate"], made, notes), node_selector),
        claims=claims(group_lws),
        retention=template.get("persistentVolumeClaimRetentionPolicy"),
    )


def _copied(lws: Obj) -> dict[str, str]:
    """The set's annotations for its workloads, without the restart counters: each workload would carry all of them."""
    return {key: value for key, value in annotations_of(lws).items() if key not in _COUNTERS}


def claims(lws: Obj) -> tuple[Obj, ...]:
    """The volume claim templates of a set, with only the fields that are carried over."""
    return tuple(
        _claim(claim, lws["metadata"]["namespace"]) for claim in spec.template_of(lws).get("volumeClaimTemplates") or ()
    )


def _claim(claim: Mapping[str, Any], namespace: str) -> Obj:
    wanted = claim.get("spec") or {}
    kept = {field: wanted[field] for field in _CLAIM_FIELDS if wanted.get(field) is not None}
    resources = wanted.get("resources") or {}
    amounts = {field: resources[field] for field in _CLAIM_RESOURCES if resources.get(field) is not None}
    if amounts:
        kept["resources"] = amounts
    # The schema lets a claim be without a name; the API server then says so of the workload.
    name = (claim.get("metadata") or {}).get("name")
    return {
        "apiVersion": PERSISTENT_VOLUME_CLAIM.api_version,
        "kind": PERSISTENT_VOLUME_CLAIM.kind,
        "metadata": {**({"name": name} if name else {}), "namespace": namespace},
        "spec": kept,
    }


def _template(template: Mapping[str, Any], labels: Mapping[str, str], annotations: Mapping[str, str]) -> Obj:
    """A pod template with the set's labels and annotations added, which win over the user's."""
    own = {field: value for field, value in (template.get("metadata") or {}).items() if field != "creationTimestamp"}
    metadata = {
        **own,
        "labels": {**(own.get("labels") or {}), **labels},
        "annotations": {**(own.get("annotations") or {}), **annotations},
    }
    return {**template, "metadata": metadata}


def _placed(template: Obj, node_selector: Mapping[str, str] | None) -> Obj:
    if not node_selector:
        return template
    pod = template.get("spec") or {}
    return {**template, "spec": {**pod, "nodeSelector": {**(pod.get("nodeSelector") or {}), **node_selector}}}


def _group_annotations(live: Obj, group_lws: Obj) -> dict[str, str]:
    """What both templates of a group say: its size, its sub-groups, and where it wants to be alone."""
    user = annotations_of(live)
    notes = {names.SIZE_ANNOTATION: str(spec.size(group_lws))}
    if user.get(names.EXCLUSIVE_TOPOLOGY_ANNOTATION):
        notes[names.EXCLUSIVE_TOPOLOGY_ANNOTATION] = user[names.EXCLUSIVE_TOPOLOGY_ANNOTATION]
    policy = spec.subgroup_policy(group_lws)
    if policy is None:
        return notes
    if policy.get("subGroupPolicyType"):
        notes[names.SUBGROUP_POLICY_TYPE_ANNOTATION] = policy["subGroupPolicyType"]
    if policy.get("subGroupSize") is not None:
        notes[names.SUBGROUP_SIZE_ANNOTATION] = str(policy["subGroupSize"])
    if user.get(names.SUBGROUP_EXCLUSIVE_TOPOLOGY_ANNOTATION):
        notes[names.SUBGROUP_EXCLUSIVE_TOPOLOGY_ANNOTATION] = user[names.SUBGROUP_EXCLUSIVE_TOPOLOGY_ANNOTATION]
    return notes


def _leader_annotations(lws: Obj) -> dict[str, str]:
    notes = _group_annotations(lws, lws)
    if spec.subdomain_policy(lws) == names.SUBDOMAIN_UNIQUE_PER_REPLICA:
        notes[names.SUBDOMAIN_POLICY_ANNOTATION] = names.SUBDOMAIN_UNIQUE_PER_REPLICA
    # Only where it says something: a further key in every template would roll every set on an upgrade.
    if spec.termination_policy(lws) == names.TERMINATION_PARALLEL:
        notes[names.POD_TERMINATION_POLICY_ANNOTATION] = names.TERMINATION_PARALLEL
    return notes
