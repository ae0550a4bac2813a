"""The volume claims of a StatefulSet's pods and who owns them. Pure.

Source: Kubernetes documentation, "StatefulSets": volume claim templates, PersistentVolumeClaim retention.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from lwskit.runtime.kinds import POD, STATEFUL_SET, Kind
from lwskit.runtime.objects import Obj, controller_reference


def claims_of(stateful_set: Mapping[str, Any]) -> Sequence[Obj]:
    """`spec.volumeClaimTemplates`, never None."""
    return stateful_set["spec"].get("volumeClaimTemplates") or ()


def claim_name(stateful_set: Mapping[str, Any], template: Mapping[str, Any], ordinal: int) -> str:
    """`<claim>-<set>-<ordinal>`."""
    return f"{template['metadata']['name']}-{stateful_set['metadata']['name']}-{ordinal}"


def new_claim(stateful_set: Mapping[str, Any], template: Mapping[str, Any], ordinal: int) -> Obj:
    """The claim to create for the pod at an ordinal; the set's selector labels are added to the template's own."""
    claim: Obj = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"} | copy.deepcopy(dict(template))
    claim.pop("status", None)
    selector = (stateful_set["spec"].get("selector") or {}).get("matchLabels") or {}
    meta = claim["metadata"]
    meta.pop("creationTimestamp", None)
    meta["name"] = claim_name(stateful_set, template, ordinal)
    meta["namespace"] = stateful_set["metadata"]["namespace"]
    meta["labels"] = dict(meta.get("labels") or {}) | dict(selector)
    return claim


def retention_of(stateful_set: Mapping[str, Any]) -> tuple[bool, bool]:
    """Whether claims go (when the set is deleted, when it is scaled down); both are kept by default."""
    policy = stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    return policy.get("whenDeleted") == "Delete", policy.get("whenScaled") == "Delete"


def is_stale(claim: Mapping[str, Any], owner: Mapping[str, Any], kind: Kind) -> bool:
    """Whether the claim belongs to an earlier incarnation of `owner`: same kind and name, another UID."""
    return any(_names(ref, owner, kind) and ref["uid"] != owner["metadata"].get("uid") for ref in _refs(claim))


def wanted_owners(
    stateful_set: Mapping[str, Any], pod: Mapping[str, Any], claim: Mapping[str, Any], condemned: bool
) -> list[Obj] | None:
    """The owner references the claim should have by the retention policy, or None when they are right as they are.

    `condemned` tells that the pod's ordinal is beyond the set's range. A claim that belongs to a gone incarnation of
    the set or the pod is left to the garbage collector; one that another controller manages only loses our references.
    """
    if is_stale(claim, stateful_set, STATEFUL_SET) or is_stale(claim, pod, POD):
        return None
    deleted, scaled = retention_of(stateful_set)
    refs = list(_refs(claim))
    others = [r for r in refs if not _names(r, stateful_set, STATEFUL_SET) and not _names(r, pod, POD)]
    foreign = (deleted or scaled) and any(r.get("controller") for r in others)
    wanted = list(others)
    if not foreign:
        if scaled and condemned:
            wanted.append(controller_reference(pod, POD))
        elif deleted:
            wanted.append(controller_reference(stateful_set, STATEFUL_SET))
    same = len(wanted) == len(refs) and all(_is_among(r, refs) for r in wanted)
    return None if same else wanted


def has_foreign_controller(stateful_set: Mapping[str, Any], pod: Mapping[str, Any], claim: Mapping[str, Any]) -> bool:
    """Whether a retention policy is set but somebody else controls the claim."""
    ours = (stateful_set, STATEFUL_SET), (pod, POD)
    return any(retention_of(stateful_set)) and any(
        r.get("controller") and not any(_names(r, o, k) for o, k in ours) for r in _refs(claim)
    )


def _refs(obj: Mapping[str, Any]) -> Sequence[Obj]:
    return obj["metadata"].get("ownerReferences") or ()


def _names(ref: Mapping[str, Any], owner: Mapping[str, Any], kind: Kind) -> bool:
    here = ref.get("apiVersion"), ref.get("kind"), ref.get("name")
    return here == (kind.api_version, kind.kind, owner["metadata"]["name"])


def _is_among(wanted: Mapping[str, Any], refs: Sequence[Mapping[str, Any]]) -> bool:
    return any(r["uid"] == wanted["uid"] and bool(r.get("controller")) == bool(wanted.get("controller")) for r in refs)
