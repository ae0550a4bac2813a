"""What a cluster looks like at the end of a run, without what differs between any two runs. Pure over a store."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from lwskit.embedded.store import ADDED, DELETED
from lwskit.runtime.kinds import CORE_EVENT, EVENT, LEASE, POD, Kind
from lwskit.runtime.objects import Obj
from lwskit.testing.cluster import TestCluster
from lwskit.testing.compare import differences

EndState = Mapping[str, Any]
"""Normalised objects by kind and name, and how often objects of some kinds were made."""

MADE = "made"
"""The key under which it is told how often objects were made."""

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_ADDRESS = re.compile(r"(?<![\w.])\d{1,3}(\.\d{1,3}){3}(?![\w.])")
_RANDOM = re.compile(r"[bcdfghjklmnpqrstvwxz2456789]{5}")
_DROPPED = ("uid", "resourceVersion", "generation", "managedFields", "selfLink")


@dataclass(frozen=True, slots=True)
class Compared:
    """What of a cluster is compared between two runs.

    Objects of the kinds in `without` are left out. Of those in `made` it is also compared how often an object of each
    name was created. `ignore` are paths as in `compare.differences`. `normalise` is given a copy of each object, with
    UIDs, times and random names already replaced; it returns what is compared, or None to leave the object out. `text`
    is given every text, names among them, for what else is drawn by chance.
    """

    without: Collection[Kind] = (EVENT, CORE_EVENT, LEASE)
    made: Collection[Kind] = (POD,)
    ignore: Collection[str] = ("spec.nodeName", "status.hostIP", "status.hostIPs")
    normalise: Callable[[Obj], Obj | None] = field(default=lambda obj: obj)
    text: Callable[[str], str] = field(default=lambda text: text)


def end_state(cluster: TestCluster, compared: Compared) -> EndState:
    """The objects of an embedded cluster, normalised, each under a key such as `Pod test/web-0`."""
    found = list(_objects(cluster, compared))
    names = _Names(cluster, compared.text)
    alike: dict[str, list[Obj]] = {}
    for kind, obj in found:
        normal = compared.normalise(names.normalised(obj))
        if normal is None:
            continue
        alike.setdefault(f"{kind} {names.text(_place(obj))}", []).append(normal)
    state: dict[str, Any] = {}
    for key, objects in alike.items():
        # Which of them is the first is not to be a matter of what was drawn.
        for number, obj in enumerate(sorted(objects, key=_content), 1):
            state[key if number == 1 else f"{key} ({number})"] = obj
    if compared.made:
        state[MADE] = dict(names.made(_storages(cluster, compared.made)))
    return state


def changed(got: EndState, want: EndState, compared: Compared) -> list[str]:
    """What differs between two end states, a line each."""
    lines: list[str] = []
    for key in sorted({*got, *want}):
        if key not in got:
            lines.append(f"{key} is missing")
        elif key not in want:
            lines.append(f"{key} should not be there")
        else:
            lines += [
                f"{key}: {line}" for line in differences(got[key], want[key], ignore=compared.ignore, generated=True)
            ]
    return lines


def last_change(cluster: TestCluster, compared: Compared) -> int:
    """The version of the last change of any object that is compared."""
    store, newest = cluster.server.backend.store, 0
    left_out = _storages(cluster, compared.without)
    for table in store.tables():
        if table not in left_out:
            newest = max(newest, store.last_change(table))
    return newest


def _storages(cluster: TestCluster, kinds: Iterable[Kind]) -> set[str]:
    registry = cluster.server.backend.registry
    found = (registry.find(k.group, k.version, k.plural) for k in kinds)
    return {r.storage for r in found if r is not None}


def _objects(cluster: TestCluster, compared: Compared) -> Iterator[tuple[str, Obj]]:
    backend = cluster.server.backend
    left_out, seen = _storages(cluster, compared.without), set[str]()
    for resource in backend.registry:
        if not resource.stored or resource.storage in left_out or resource.storage in seen:
            continue
        seen.add(resource.storage)
        for entry in backend.store.list(resource.storage):
            yield resource.kind, entry.obj


def _place(obj: Obj) -> str:
    meta = obj["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if meta.get("namespace") else meta["name"]


class _Names:
    """Which object a UID or a random name stands for."""

    def __init__(self, cluster: TestCluster, others: Callable[[str], str]) -> None:
        self._others = others
        store, registry = cluster.server.backend.store, cluster.server.backend.registry
        self._texts: dict[str, str] = {}
        self._uids: dict[str, str] = {}
        self._random: dict[str, str] = {}
        self._made: dict[str, Counter[str]] = {}
        for table in store.tables():
            for change, obj in store.changes(table):
                meta = obj["metadata"]
                prefix = meta.get("generateName", "")
                if prefix and _RANDOM.fullmatch(meta["name"].removeprefix(prefix)):
                    self._random[meta["name"]] = f"{prefix}*"
                kind = registry.by_storage(table).kind
                self._uids[meta["uid"]] = f"<{'former ' if change == DELETED else ''}{kind} {meta['name']}>"
                if change == ADDED:
                    self._made.setdefault(table, Counter())[f"{kind} {_place(obj)}"] += 1
        self._pattern = re.compile("|".join(map(re.escape, sorted(self._random, key=len, reverse=True))) or r"(?!)")

    def text(self, value: str) -> str:
        """A text with what stands in the place of UIDs, times, addresses and random names."""
        found = self._texts.get(value)
        if found is None:
            found = self._texts[value] = self._text(value)
        return found

    def _text(self, value: str) -> str:
        value = _ADDRESS.sub("<address>", _TIME.sub("<time>", value))
        value = _UID.sub(lambda m: self._uids.get(m[0], "<unknown>"), value)
        return self._others(self._pattern.sub(lambda m: self._random[m[0]], value))

    def normalised(self, obj: Obj) -> Obj:
        """A copy of an object without what differs between runs."""
        meta = {k: v for k, v in obj["metadata"].items() if k not in _DROPPED}
        generation = obj["metadata"].get("generation")
        return self._value({**obj, "metadata": meta}, generation, "")

    def _value(self, value: Any, generation: Any, key: str) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(k): self._value(v, generation, k) for k, v in value.items()}
        if isinstance(value, list):
            items = [self._value(v, generation, "") for v in value]
            return sorted(items, key=_order) if key in ("conditions", "ownerReferences", "finalizers") else items
        if key == "observedGeneration":
            return "<current>" if value == generation else "<behind>"
        return value

    def made(self, tables: set[str]) -> Counter[str]:
        """How often an object of each name was made."""
        return Counter(
            {
                self.text(place): count
                for table, places in self._made.items()
                if table in tables
                for place, count in places.items()
            }
        )


def _content(obj: Obj) -> bytes:
    return orjson.dumps(obj, option=orjson.OPT_SORT_KEYS)


def _order(item: Any) -> str:
    return str((item.get("type"), item.get("uid"))) if isinstance(item, Mapping) else str(item)
