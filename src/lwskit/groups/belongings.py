"""Everything in a cluster that has to do with one set, for many sets at once: what their scenes are made of. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from lwskit.groups import ownership, scene
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.scene import is_event
from lwskit.runtime.kinds import DEPLOYMENT, NODE, SERVICE, STATEFUL_SET
from lwskit.runtime.objects import Obj, is_of

_BY_NAME = (STATEFUL_SET, DEPLOYMENT, SERVICE)
"""Kinds whose objects may be named like a set without its label, which somebody else made."""


class Belongings:
    """Objects by the set that they have to do with, found out in one pass over all of them."""

    def __init__(self, objects: Iterable[Obj]) -> None:
        """Each object names its apiVersion and kind, and its namespace unless it has none."""
        self._of_sets: dict[tuple[str, str], list[Obj]] = {}
        self._events: dict[tuple[str, str], list[Obj]] = {}
        self._nodes: list[Obj] = []
        events: list[Obj] = []
        sets: set[tuple[str, str]] = set()
        for obj in objects:
            meta = obj["metadata"]
            if is_event(obj):
                events.append(obj)
            elif is_of(obj, NODE):
                self._nodes.append(obj)
            elif is_of(obj, LEADER_WORKER_SET):
                sets.add((meta["namespace"], meta["name"]))
            elif name := _set_of(obj):
                self._of_sets.setdefault((meta["namespace"], name), []).append(obj)
        for event in events:
            for key in _may_be_about(event):
                if key in sets:
                    self._events.setdefault(key, []).append(event)

    def of(self, lws: Obj) -> list[Obj]:
        """A set with all that has to do with it, all nodes included."""
        key = lws["metadata"]["namespace"], lws["metadata"]["name"]
        return [lws, *self._of_sets.get(key, ()), *self._events.get(key, ()), *self._nodes]


def _set_of(obj: Obj) -> str:
    """The set that an object is about: its label's, or for some kinds that of its name."""
    named = any(is_of(obj, kind) for kind in _BY_NAME)
    return ownership.set_name(obj) or (obj["metadata"]["name"] if named else "")


def _may_be_about(event: Obj) -> Iterable[tuple[str, str]]:
    """The sets that an event may be about: those with whose name that of its object begins."""
    parts, namespace = scene.happening(event).name.split("-"), event["metadata"].get("namespace", "")
    return [(namespace, "-".join(parts[:end])) for end in range(1, len(parts) + 1)]
