"""Which pod stands at an ordinal of a StatefulSet, and how a new one looks. Pure.

Source: Kubernetes documentation, "StatefulSets": pod identity, ordinal index, start ordinal, pod name and index labels.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

from lwskit.embedded.controllers.statefulset_claims import claim_name, claims_of
from lwskit.runtime.kinds import STATEFUL_SET
from lwskit.runtime.objects import Obj, controller_reference, labels_of

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"
REVISION_LABEL = "controller-revision-hash"

_NAME = re.compile(r"(.*)-([0-9]+)$", re.DOTALL)


def parent_and_ordinal(name: str) -> tuple[str, int]:
    """The StatefulSet's name and the ordinal in a pod's name; `("", -1)` for a name of another form."""
    found = _NAME.match(name)
    if not found or int(found[2]) > 2**31 - 1:
        return "", -1
    return found[1], int(found[2])


def ordinal_of(pod: Mapping[str, Any]) -> int:
    """The ordinal in the pod's name, -1 where there is none."""
    return parent_and_ordinal(pod["metadata"]["name"])[1]


def is_member(stateful_set: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    """Whether the pod's name is one that the StatefulSet gives."""
    return parent_and_ordinal(pod["metadata"]["name"])[0] == stateful_set["metadata"]["name"]


def ordinals_of(stateful_set: Mapping[str, Any]) -> range:
    """The ordinals that the StatefulSet wants pods at: `spec.replicas` of them from `spec.ordinals.start`."""
    spec = stateful_set["spec"]
    start = (spec.get("ordinals") or {}).get("start", 0)
    return range(start, start + spec.get("replicas", 1))


def revision_of(pod: Mapping[str, Any]) -> str:
    """The name of the ControllerRevision that the pod was made from, or an empty string."""
    return labels_of(pod).get(REVISION_LABEL, "")


def identity_labels(name: str, ordinal: int) -> dict[str, str]:
    """The labels that tell a pod which one of its StatefulSet it is."""
    return {POD_NAME_LABEL: name, POD_INDEX_LABEL: str(ordinal)}


def has_identity(stateful_set: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    """Whether the pod carries the name and the label of its ordinal."""
    meta = pod["metadata"]
    return is_member(stateful_set, pod) and labels_of(pod).get(POD_NAME_LABEL) == meta["name"]


def new_pod(stateful_set: Mapping[str, Any], template: Mapping[str, Any], revision: str, ordinal: int) -> Obj:
    """The pod to create at an ordinal, from the template of a revision of that name."""
    meta = stateful_set["metadata"]
    name = f"{meta['name']}-{ordinal}"
    template_meta = template.get("metadata") or {}
    spec = copy.deepcopy(dict(template.get("spec") or {}))
    spec["hostname"] = name
    if stateful_set["spec"].get("serviceName"):
        spec["subdomain"] = stateful_set["spec"]["serviceName"]
    if claims_of(stateful_set):
        spec["volumes"] = with_claims(stateful_set, spec.get("volumes") or (), ordinal)
    labels = dict(template_meta.get("labels") or {}) | identity_labels(name, ordinal) | {REVISION_LABEL: revision}
    pod_meta: Obj = {
        "name": name,
        "generateName": f"{meta['name']}-",
        "namespace": meta["namespace"],
        "labels": labels,
        "ownerReferences": [controller_reference(stateful_set, STATEFUL_SET)],
    }
    if template_meta.get("annotations"):
        pod_meta["annotations"] = dict(template_meta["annotations"])
    if template_meta.get("finalizers"):
        pod_meta["finalizers"] = list(template_meta["finalizers"])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": pod_meta, "spec": spec}


def has_storage(stateful_set: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    """Whether the pod mounts the claims of its ordinal; one that was made for another set may mount others, or none."""
    mounted = {
        v["name"]: (v.get("persistentVolumeClaim") or {}).get("claimName") for v in pod["spec"].get("volumes") or ()
    }
    ordinal = ordinal_of(pod)
    templates = claims_of(stateful_set)
    return all(mounted.get(t["metadata"]["name"]) == claim_name(stateful_set, t, ordinal) for t in templates)


def with_claims(stateful_set: Mapping[str, Any], volumes: Sequence[Obj], ordinal: int) -> list[Obj]:
    """Volumes with one for every claim template, in place of others of these names."""
    templates = claims_of(stateful_set)
    names = {t["metadata"]["name"] for t in templates}
    mounted: list[Obj] = [
        {"name": t["metadata"]["name"], "persistentVolumeClaim": {"claimName": claim_name(stateful_set, t, ordinal)}}
        for t in templates
    ]
    return mounted + [v for v in volumes if v["name"] not in names]
