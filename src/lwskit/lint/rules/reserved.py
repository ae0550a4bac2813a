"""Labels and annotations that belong to the controllers (specification: 10 §4). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from lwskit.api import names
from lwskit.groups import spec
from lwskit.lint.findings import ANNOTATION_OVERWRITTEN, HARMFUL_KEY, LABEL_OVERWRITTEN, RESERVED_KEY, Fault
from lwskit.lint.rules.paths import Template, templates
from lwskit.runtime.objects import Obj, annotations_of, labels_of

_WORKLOAD_LABELS: Final = frozenset(
    {
        names.NAME_LABEL,
        names.REVISION_LABEL,
        names.ROLE_LABEL,
        names.GROUP_INDEX_LABEL,
        names.GROUP_KEY_LABEL,
    }
)
"""Labels that StatefulSets have of their own, whatever the set says."""
_POD_LABELS: Final = frozenset(
    {
        names.NAME_LABEL,
        names.REVISION_LABEL,
        names.WORKER_INDEX_LABEL,
        names.GROUP_INDEX_LABEL,
        names.GROUP_KEY_LABEL,
    }
)
_SUBGROUP_ANNOTATIONS: Final = frozenset({names.SUBGROUP_SIZE_ANNOTATION, names.SUBGROUP_POLICY_TYPE_ANNOTATION})
_TOPOLOGIES: Final = frozenset({names.EXCLUSIVE_TOPOLOGY_ANNOTATION, names.SUBGROUP_EXCLUSIVE_TOPOLOGY_ANNOTATION})
SET_ANNOTATIONS: Final = _TOPOLOGIES | {names.RECREATE_AFTER_START_ANNOTATION}
"""Annotations with the domain's prefix that users set on sets."""
_OWNED_BY_SET: Final = frozenset({names.REPLICAS_ANNOTATION, names.GROUP_RESTART_COUNTS_ANNOTATION})
_DROP = "leave it out"


def check(lws: Obj) -> Iterator[Fault]:
    """Keys of the set and of its templates that the controllers write, or that only they should."""
    for key in labels_of(lws):
        path = f"metadata.labels[{key}]"
        if key in _WORKLOAD_LABELS:
            text = f"the label {key} is overwritten on the StatefulSets that other labels of the set are copied to"
            yield Fault(LABEL_OVERWRITTEN, path, text, _DROP)
        elif key.startswith(names.PREFIX):
            yield _reserved("label", key, path)
    for key in annotations_of(lws):
        path = f"metadata.annotations[{key}]"
        if key in _OWNED_BY_SET:
            yield Fault(ANNOTATION_OVERWRITTEN, path, f"the annotation {key} is written by the controllers", _DROP)
        elif key == names.RECOVER_ANNOTATION:
            text = f"the annotation {key} does nothing on a set"
            yield Fault(RESERVED_KEY, path, text, "put it on the leader pod of the group that is to go on")
        elif key.startswith(names.PREFIX) and key not in SET_ANNOTATIONS:
            yield _reserved("annotation", key, path)
    for template in templates(lws):
        yield from _labels(lws, template)
        yield from _annotations(lws, template)


def _reserved(what: str, key: str, path: str) -> Fault:
    text = f"the {what} {key} has the prefix of LeaderWorkerSet's own keys, and no user's key"
    return Fault(RESERVED_KEY, path, text, "use a prefix of your own")


def _labels(lws: Obj, template: Template) -> Iterator[Fault]:
    has_subgroups = spec.subgroup_policy(lws) is not None
    for key, value in (template.metadata.get("labels") or {}).items():
        path = f"{template.path}.metadata.labels[{key}]"
        if key in _POD_LABELS:
            yield Fault(LABEL_OVERWRITTEN, path, f"the label {key} of pods is overwritten by the controllers", _DROP)
        elif key == names.SUBGROUP_INDEX_LABEL and has_subgroups and value:
            text = f"pods that have the label {key} get no place in a sub-group: all stay in the one of the template"
            yield Fault(HARMFUL_KEY, path, text, _DROP)
        elif key == names.SUBGROUP_KEY_LABEL and has_subgroups:
            yield Fault(LABEL_OVERWRITTEN, path, f"the label {key} of pods is overwritten by admission", _DROP)
        elif key.startswith(names.PREFIX):
            yield _reserved("label", key, path)


def _annotations(lws: Obj, template: Template) -> Iterator[Fault]:
    owned = _owned_annotations(lws, template)
    for key in template.metadata.get("annotations") or {}:
        path = f"{template.path}.metadata.annotations[{key}]"
        if key in owned:
            text = f"the annotation {key} of pods is overwritten by the controllers"
            yield Fault(ANNOTATION_OVERWRITTEN, path, text, _DROP)
        elif key == names.LEADER_NAME_ANNOTATION and template.of_leaders:
            text = f"leaders with the annotation {key} are taken for workers: their groups get no workers"
            yield Fault(HARMFUL_KEY, path, text, _DROP)
        elif key == names.LEADER_ADDRESS_ANNOTATION and template.of_leaders:
            text = f"every leader would tell its containers this address as {names.ENV_LEADER_ADDRESS}"
            yield Fault(HARMFUL_KEY, path, text, _DROP)
        elif key in _TOPOLOGIES:
            continue
        elif key in _SUBGROUP_ANNOTATIONS:
            text = f"pods take the annotation {key} for a sub-group policy that the set does not have"
            yield Fault(HARMFUL_KEY, path, text, "write a subGroupPolicy instead")
        elif key == names.SUBDOMAIN_POLICY_ANNOTATION and template.of_leaders:
            text = f"leaders take the annotation {key} for a policy that the set does not have"
            yield Fault(HARMFUL_KEY, path, text, "write networkConfig.subdomainPolicy instead")
        elif key == names.GROUP_IDENTITY_ANNOTATION and spec.identity(lws) == names.IDENTITY_ORDINAL:
            text = f"pods take the annotation {key} for a groupIdentity that the set does not have"
            yield Fault(HARMFUL_KEY, path, text, "write groupIdentity instead, before the set is created")
        elif key.startswith(names.PREFIX):
            yield _reserved("annotation", key, path)


def _owned_annotations(lws: Obj, template: Template) -> set[str]:
    """Annotations that pods of a template get of the set, over those of the template."""
    owned = {names.SIZE_ANNOTATION}
    if spec.identity(lws) == names.IDENTITY_HASH:
        owned.add(names.GROUP_IDENTITY_ANNOTATION)
    policy = spec.subgroup_policy(lws)
    if policy is not None:
        owned |= _SUBGROUP_ANNOTATIONS
    if not template.of_leaders:
        owned |= {names.LEADER_NAME_ANNOTATION, names.LEADER_ADDRESS_ANNOTATION}
    elif spec.subdomain_policy(lws) == names.SUBDOMAIN_UNIQUE_PER_REPLICA:
        owned.add(names.SUBDOMAIN_POLICY_ANNOTATION)
    notes: Mapping[str, str] = annotations_of(lws)
    if notes.get(names.EXCLUSIVE_TOPOLOGY_ANNOTATION):
        owned.add(names.EXCLUSIVE_TOPOLOGY_ANNOTATION)
    if policy is not None and notes.get(names.SUBGROUP_EXCLUSIVE_TOPOLOGY_ANNOTATION):
        owned.add(names.SUBGROUP_EXCLUSIVE_TOPOLOGY_ANNOTATION)
    return owned
