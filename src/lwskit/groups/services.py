"""The headless Services that give pods their names: one for the set, or one per group. Pure.

Specification: 20 §4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lwskit.api import names
from lwskit.groups import ownership
from lwskit.groups.identity import has_hash_identity
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import POD, SERVICE
from lwskit.runtime.objects import (
    Obj,
    controller_of,
    controller_reference,
    is_controlled_by,
    is_deleting,
    is_of,
    labels_of,
    uid_of,
)


def shared_service(lws: Obj) -> Obj:
    """The Service of a set with subdomain policy Shared: named like the set and owned by it."""
    name = lws["metadata"]["name"]
    return _headless(lws, name, {names.NAME_LABEL: name}, controller_reference(lws, LEADER_WORKER_SET))


def group_service(lws: Obj, leader: Obj) -> Obj:
    """The Service of one group with subdomain policy UniquePerReplica: owned by the group's leader."""
    selector = {
        names.NAME_LABEL: lws["metadata"]["name"],
        names.GROUP_INDEX_LABEL: labels_of(leader).get(names.GROUP_INDEX_LABEL, ""),
    }
    return _headless(lws, ownership.service_name(leader), selector, controller_reference(leader, POD))


def stale(service: Mapping[str, Any], leader: Mapping[str, Any]) -> str:
    """Why an existing Service cannot serve this leader's group, empty if it can."""
    name = service["metadata"]["name"]
    if is_deleting(service):
        return (
            f"Service {name} is being deleted; a new one is made for leader pod {leader['metadata']['name']} after that"
        )
    if not is_controlled_by(service, POD, uid_of(leader)):
        told = f"Service {name} belongs to another object than leader pod {leader['metadata']['name']}"
        if not is_foreign(service, leader):
            return told
        if has_hash_identity(leader):
            return f"{told}; delete that pod to give its group another name"
        return f"{told}; delete it or rename it, for the group needs its name"
    return ""


def is_foreign(service: Mapping[str, Any], leader: Mapping[str, Any]) -> bool:
    """Whether a Service stays where this leader's has to be until a person moves it.

    One that is being deleted goes, and one of an earlier leader of this name goes with it.
    """
    owner = controller_of(service)
    former = owner is not None and is_of(owner, POD) and owner["name"] == leader["metadata"]["name"]
    return not former and not is_deleting(service)


def _headless(lws: Obj, name: str, selector: Mapping[str, str], owner: Obj) -> Obj:
    return {
        "apiVersion": SERVICE.api_version,
        "kind": SERVICE.kind,
        "metadata": {
            "name": name,
            "namespace": lws["metadata"]["namespace"],
            "labels": {names.NAME_LABEL: lws["metadata"]["name"]},
            "ownerReferences": [owner],
        },
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": dict(selector)},
    }
