"""Who a pod belongs to: set → leader workload → leader pod → worker workload → worker pod, by UID. Pure.

Specification: 20 §1, §10.2, §11.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lwskit.api import names
from lwskit.groups.identity import is_leader, parse_ordinal
from lwskit.groups.model import DecisionError, GroupId
from lwskit.groups.ports import LeaderBackend
from lwskit.runtime.kinds import POD, Kind
from lwskit.runtime.objects import annotations_of, controller_of, group_of, is_controlled_by, is_of, labels_of, uid_of


def set_name(obj: Mapping[str, Any]) -> str:
    """Name of the set that an object's label names, empty if it has none."""
    return labels_of(obj).get(names.NAME_LABEL, "")


def revision_key(obj: Mapping[str, Any]) -> str:
    """Key of the revision that an object was made from, empty if its label is missing."""
    return labels_of(obj).get(names.REVISION_LABEL, "")


def leader_name(pod: Mapping[str, Any]) -> str:
    """Name of the leader of a pod's group; a leader's own name.

    Raises DecisionError for a worker that names no leader and whose name does not end in a number.
    """
    name = pod["metadata"]["name"]
    if is_leader(pod):
        return name
    told = annotations_of(pod).get(names.LEADER_NAME_ANNOTATION)
    if told:
        return told
    parent, ordinal = parse_ordinal(name)
    if not parent or ordinal < 0:
        raise DecisionError(f"parsing pod name for pod {name}")
    return parent


def led_group(pod: Mapping[str, Any], kind: Kind) -> GroupId | None:
    """The group that a pod leads, known by the UID of its controller; None unless that is of `kind`."""
    owner = controller_of(pod)
    if owner is None or not is_of(owner, kind) or not is_leader(pod):
        return None
    return GroupId(owner["uid"], labels_of(pod).get(names.GROUP_INDEX_LABEL, ""))


def workers_name(leader: Mapping[str, Any]) -> str:
    """Name of the workload of a leader's workers: the leader's host name."""
    return (leader.get("spec") or {}).get("hostname") or leader["metadata"]["name"]


def service_name(leader: Mapping[str, Any]) -> str:
    """Name of a group's own headless Service: the leader's subdomain."""
    return (leader.get("spec") or {}).get("subdomain") or leader["metadata"]["name"]


def belongs_to(worker: Mapping[str, Any], leader: Mapping[str, Any], owner: Mapping[str, Any] | None) -> bool:
    """Whether a worker pod is of the group of this very leader, and not of an earlier one of the same name.

    `owner` is the workload that the worker's controller reference names, as it is now.
    """
    if is_controlled_by(worker, POD, uid_of(leader)):
        return True
    reference = controller_of(worker)
    if reference is None or owner is None or uid_of(owner) != reference["uid"]:
        return False
    return owned_by_leader(owner, leader)


def foreign_kind(reference: Mapping[str, Any], leaders: LeaderBackend) -> str:
    """The kind, with its group, that a leader's controller reference names, empty if it is one of the backend's."""
    if any(is_of(reference, kind) for kind in (leaders.kind, *leaders.watches)):
        return ""
    group = group_of(reference["apiVersion"])
    return f"{reference['kind']}.{group}" if group else reference["kind"]


def owned_by_leader(workers: Mapping[str, Any], leader: Mapping[str, Any]) -> bool:
    """Whether a workload of workers is this very leader's."""
    return is_controlled_by(workers, POD, uid_of(leader))
