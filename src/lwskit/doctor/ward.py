"""Everything that was read of a cluster, so that it can be asked who owns what. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from lwskit.api import disaggregated_names, names
from lwskit.disaggregated.kinds import DISAGGREGATED_SET, ROLE_SCALER
from lwskit.groups import ownership, scene
from lwskit.groups.belongings import Belongings
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import (
    CONTROLLER_REVISION,
    DEPLOYMENT,
    POD,
    REPLICA_SET,
    SERVICE,
    STATEFUL_SET,
    Kind,
)
from lwskit.runtime.objects import Obj, controller_of, group_of, is_deleting, is_of, labels_of, uid_of

KINDS = (
    POD,
    SERVICE,
    CONTROLLER_REVISION,
    REPLICA_SET,
    STATEFUL_SET,
    DEPLOYMENT,
    ROLE_SCALER,
    LEADER_WORKER_SET,
    DISAGGREGATED_SET,
)
"""What is looked at, dependents before their owners: so an owner that is missing was not made in between."""


class Owner(Enum):
    """What became of the controller that an object names."""

    NONE = "none"
    """It names none."""
    THERE = "there"
    GONE = "gone"
    REPLACED = "replaced"
    """There is another object with its name."""
    UNKNOWN = "unknown"
    """Objects of its kind were not read."""


@dataclass(slots=True)
class Ward:
    """Objects of some namespaces. `unread` are kinds that could not be read; `blind` is why events are not known."""

    now: datetime
    unread: frozenset[Kind] = frozenset()
    blind: str = ""
    by_kind: dict[Kind, list[Obj]] = field(default_factory=dict)
    belongings: Belongings = field(default_factory=lambda: Belongings(()))
    places: dict[tuple[Kind, str, str], Obj] = field(default_factory=dict)
    events: dict[tuple[str, str], list[scene.Happening]] = field(default_factory=dict)
    """Those about DisaggregatedSets by namespace and name, oldest first."""

    def of(self, kind: Kind) -> Sequence[Obj]:
        """All objects of a kind."""
        return self.by_kind.get(kind, ())

    def at(self, kind: Kind, namespace: str, name: str) -> Obj | None:
        """The object of that kind and name."""
        return self.places.get((kind, namespace, name))

    def owner(self, obj: Obj) -> tuple[Owner, Kind | None, str]:
        """What became of an object's controller, its kind if that is one of those looked at, and its name."""
        reference = controller_of(obj)
        if reference is None:
            return Owner.NONE, None, ""
        kind = next((k for k in KINDS if is_of(reference, k)), None)
        if kind is None or kind in self.unread:
            return Owner.UNKNOWN, kind, reference["name"]
        there = self.at(kind, obj["metadata"]["namespace"], reference["name"])
        if there is None:
            return Owner.GONE, kind, reference["name"]
        return Owner.THERE if uid_of(there) == reference["uid"] else Owner.REPLACED, kind, reference["name"]


def ward_of(objects: Iterable[Obj], now: datetime, unread: Iterable[Kind] = (), blind: str = "") -> Ward:
    """The objects in order: by kind, by name, by set. Each object names its apiVersion and kind, and its namespace."""
    known = list(objects)
    ward = Ward(now, frozenset(unread), blind, belongings=Belongings(known))
    for obj in known:
        meta, kind = obj["metadata"], next((k for k in KINDS if is_of(obj, k)), None)
        if kind is not None:
            ward.by_kind.setdefault(kind, []).append(obj)
            ward.places[kind, meta["namespace"], meta["name"]] = obj
        elif scene.is_event(obj):
            told = scene.happening(obj)
            if told.kind == DISAGGREGATED_SET.kind:
                ward.events.setdefault((meta.get("namespace", ""), told.name), []).append(told)
    for told in ward.events.values():
        told.sort(key=lambda h: h.time)
    for found in ward.by_kind.values():
        found.sort(key=lambda o: (o["metadata"]["namespace"], o["metadata"]["name"]))
    return ward


def disaggregated_name(obj: Obj) -> str:
    """The DisaggregatedSet that an object's label names, empty if it has none."""
    return labels_of(obj).get(disaggregated_names.NAME_LABEL, "")


def overdue(obj: Obj, now: datetime, seconds: float) -> float | None:
    """Seconds since an object should have been gone, if those are more than `seconds`; None otherwise."""
    if not is_deleting(obj):
        return None
    begun = scene.moment(obj["metadata"]["deletionTimestamp"])
    late = (now - begun).total_seconds() if begun is not None else 0.0
    return late if late > seconds else None


def is_group_less(pod: Obj) -> bool:
    """Whether a pod of a set has no place in a group: no webhook answered when it was made."""
    labels: Mapping[str, str] = labels_of(pod)
    return bool(ownership.set_name(pod)) and not labels.get(names.GROUP_INDEX_LABEL)


def kind_named(reference: Mapping[str, str]) -> str:
    """The kind of what a reference names, with its group if that is not one of Kubernetes' own."""
    group = group_of(reference.get("apiVersion", ""))
    return f"{reference.get('kind', '')}.{group}" if "." in group else reference.get("kind", "")
