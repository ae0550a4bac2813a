"""The ReplicaSets of a Deployment as its revisions: which one is new, how it is named, what it is annotated with. Pure.

Source: Kubernetes documentation, "Deployments": pod-template-hash label, rolling back, clean up policy.
"""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lwskit.runtime.client.requests import encode
from lwskit.runtime.deployment_sizes import DESIRED, MOST, age_of
from lwskit.runtime.deployment_templates import HASH_LABEL
from lwskit.runtime.kinds import DEPLOYMENT
from lwskit.runtime.objects import Obj, annotations_of, controller_reference

REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
ROLLBACK = "deprecated.deployment.rollback.to"
"""The annotation of old clients that asks for an earlier revision; 0 means the last one."""
NOT_COPIED = frozenset({"kubectl.kubernetes.io/last-applied-configuration", REVISION, HISTORY, DESIRED, MOST, ROLLBACK})
"""Annotations that a Deployment and its ReplicaSets each have for themselves."""

_HISTORY_LIMIT = 2000
_NAME_LIMIT = 253
_SAFE = "bcdfghjklmnpqrstvwxz2456789"
_NUMBER = re.compile(r"[+-]?[0-9]+")


def template_hash(template: Mapping[str, Any], collisions: int | None) -> str:
    """FNV-1a of 32 bits over the template and the collision count, its decimal digits in letters that form no words.

    Of the form that real clusters have, and not the same: there it is made from how a Go program prints the template.
    """
    value = 0x811C9DC5
    for byte in encode(template) + (b"" if collisions is None else collisions.to_bytes(8, "little")):
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return "".join(_SAFE[ord(c) % len(_SAFE)] for c in str(value))


def revision_of(obj: Mapping[str, Any]) -> int | None:
    """The revision in the annotation: 0 without one, None for text that is no number."""
    return _number(annotations_of(obj).get(REVISION, "0"))


def _number(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) and abs(int(text)) < 2**63 else None


def highest(sets: Iterable[Obj]) -> int:
    """The highest revision, at least 0."""
    return max((r for s in sets if (r := revision_of(s)) is not None), default=0)


def last_but_one(sets: Iterable[Obj]) -> int:
    """The second highest revision, 0 where there is none."""
    found = sorted((r for s in sets if (r := revision_of(s)) is not None and r >= 0), reverse=True)
    return found[1] if len(found) > 1 else 0


def by_revision(sets: Sequence[Obj]) -> list[Obj]:
    """From the lowest revision to the highest; those of one revision, or of none that can be read, by age."""

    def compare(one: Obj, other: Obj) -> int:
        revisions = revision_of(one), revision_of(other)
        if revisions[0] is None or revisions[1] is None or revisions[0] == revisions[1]:
            return -1 if age_of(one) < age_of(other) else 1
        return revisions[0] - revisions[1]

    return sorted(sets, key=functools.cmp_to_key(compare))


def annotations_for_new(deployment: Mapping[str, Any], replica_set: Mapping[str, Any], revision: int) -> Obj:
    """The annotations of the new ReplicaSet: the Deployment's, the revision, and in the history what it was before.

    As they are where the revision that it has cannot be read.
    """
    old = annotations_of(replica_set)
    found = dict(old) | {k: v for k, v in annotations_of(deployment).items() if k not in NOT_COPIED}
    before = _number(old.get(REVISION) or "0")
    if before is None:
        return dict(old)
    if before < revision:
        found[REVISION] = str(revision)
        if REVISION in old:
            history = _longer(old.get(HISTORY, ""), old[REVISION])
            if history is not None:
                found[HISTORY] = history
    return found


def _longer(history: str, revision: str) -> str | None:
    """A history with one more revision, without its first ones if it gets too long; None if it does all the same."""
    kept = history.split(",")
    if not kept[0]:
        return revision
    length = len(history) + len(revision) + 1
    while length > _HISTORY_LIMIT and kept:
        length -= len(kept.pop(0)) + 1
    return ",".join([*kept, revision]) if length <= _HISTORY_LIMIT else None


def new_set(deployment: Mapping[str, Any]) -> Obj:
    """The ReplicaSet of the Deployment's present template, of no pods yet, to be created."""
    meta, spec = deployment["metadata"], deployment["spec"]
    digest = template_hash(spec["template"], (deployment.get("status") or {}).get("collisionCount"))
    template = copy.deepcopy(spec["template"])
    labels = {**(template.get("metadata") or {}).get("labels", {}), HASH_LABEL: digest}
    template["metadata"] = {**(template.get("metadata") or {}), "labels": labels}
    selector = dict(spec.get("selector") or {})
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH_LABEL: digest}
    made: Obj = {"replicas": 0, "selector": selector, "template": template}
    if spec.get("minReadySeconds"):
        made["minReadySeconds"] = spec["minReadySeconds"]
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{meta['name'][: _NAME_LIMIT - 1 - len(digest)]}-{digest}",
            "namespace": meta["namespace"],
            "labels": labels,
            "ownerReferences": [controller_reference(deployment, DEPLOYMENT)],
        },
        "spec": made,
    }


def rolled_back(deployment: Obj, replica_set: Mapping[str, Any]) -> Obj:
    """The Deployment with the template and the annotations of one of its ReplicaSets."""
    found = without_rollback(deployment)
    template = copy.deepcopy(replica_set["spec"]["template"])
    labels = (template.get("metadata") or {}).get("labels") or {}
    template["metadata"] = {
        **(template.get("metadata") or {}),
        "labels": {k: v for k, v in labels.items() if k != HASH_LABEL},
    }
    found["spec"] = {**found["spec"], "template": template}
    own = {k: v for k, v in annotations_of(found).items() if k in NOT_COPIED}
    theirs = {k: v for k, v in annotations_of(replica_set).items() if k not in NOT_COPIED}
    found["metadata"]["annotations"] = {**own, **theirs}
    return found


def without_rollback(deployment: Obj) -> Obj:
    """A copy of the Deployment that does not ask for an earlier revision any more."""
    annotations = {k: v for k, v in annotations_of(deployment).items() if k != ROLLBACK}
    return {**deployment, "metadata": {**deployment["metadata"], "annotations": annotations}}


def rollback_wanted(deployment: Mapping[str, Any]) -> int | None:
    """The revision that an old client asks for, None where none does."""
    return _number(annotations_of(deployment).get(ROLLBACK, ""))
