"""A namespace in names that are alike on every cluster: ReplicaSets by their order, pods by all that tells of them."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from datetime import datetime
from typing import Any

from lwskit.runtime.clock import parse_time
from lwskit.runtime.kinds import DEPLOYMENT, POD, REPLICA_SET
from lwskit.runtime.objects import Obj, annotations_of, condition_of, controller_of, is_deleting, labels_of, uid_of
from lwskit.runtime.ranking import DELETION_COST
from tests.differential.side_by_side.mirror import Place

NAME = "web"
"""The name of the Deployment."""
HASH = "pod-template-hash"
KINDS = (DEPLOYMENT, REPLICA_SET, POD)
RECENT = 10_000
"""Seconds; what became ready later than that before a sequence began did so in it."""


class View(Place):
    """The Deployment, its ReplicaSets `rs1`, `rs2`… in the order in which they appeared, and pods by their class."""

    def __init__(self) -> None:
        super().__init__(KINDS)
        self._sets: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._hashes: dict[str, str] = {}
        self.lost: list[str] = []
        """The classes, before the move, of pods that are gone since."""
        self._born: list[Obj] = []
        self._before: dict[str, str] = {}

    def turn(self) -> None:
        """Count births and deaths anew."""
        super().turn()
        self.lost, self._born = [], []
        self._before = {uid_of(p): self.class_of(p) for p in self.of(POD).values()}

    def take(self, plural: str, event: dict[str, Any]) -> None:
        """A watch tells of an object."""
        obj = event["object"]
        uid = uid_of(obj)
        if plural == REPLICA_SET.plural and uid not in self._sets:
            symbol = f"rs{len(self._sets) + 1}"
            self._sets[uid] = symbol
            self._names[obj["metadata"]["name"]] = symbol
            self._hashes.setdefault(labels_of(obj).get(HASH, ""), symbol)
        new = uid not in self.symbols
        super().take(plural, event)
        if plural != POD.plural:
            return
        if new and obj["metadata"].get("generateName"):
            self._born.append(obj)
        if event["type"] == "DELETED" and uid in self._before:
            self.lost.append(self._before[uid])

    def born(self) -> dict[str, int]:
        """How many pods each ReplicaSet has made since the move began."""
        return dict(sorted(Counter(self.owner(p) for p in self._born).items()))

    def owner(self, obj: Obj) -> str:
        """The controller of an object, as a symbol."""
        ref = controller_of(obj)
        if ref is None:
            return "nobody"
        return self._sets.get(ref["uid"]) or self.symbols.get(ref["uid"], "something else")

    def symbol(self, obj: Obj) -> str:
        """The symbol of a ReplicaSet, the name of anything else."""
        return self._sets.get(uid_of(obj), obj["metadata"]["name"])

    def masked(self, value: Any) -> Any:
        """A value with symbols for the names and hashes of ReplicaSets."""
        if isinstance(value, dict):
            return {k: self.masked(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self.masked(v) for v in value]
        if not isinstance(value, str):
            return value
        if value in self._hashes:
            return self._hashes[value]
        return re.sub(rf"\b{NAME}-[a-z0-9]+\b", lambda m: self._names.get(m[0], m[0]), value)

    def set_of(self, symbol: str) -> Obj | None:
        """The ReplicaSet that has a symbol, None when it is not there any more."""
        return next((s for s in self.of(REPLICA_SET).values() if self._sets[uid_of(s)] == symbol), None)

    def hash_of(self, symbol: str) -> str:
        """The hash in the labels of the ReplicaSet that has a symbol."""
        replica_set = self.set_of(symbol)
        return labels_of(replica_set).get(HASH, "") if replica_set else "none"

    def pods(self) -> list[tuple[str, Obj]]:
        """All pods with their classes, sorted by them."""
        return sorted(((self.class_of(p), p) for p in self.of(POD).values()), key=lambda c: (c[0], uid_of(c[1])))

    def pod_of(self, kind: str) -> Obj | None:
        """One of the pods of a class."""
        return next((p for c, p in self.pods() if c == kind), None)

    def class_of(self, pod: Obj) -> str:
        """All that tells of a pod but its name, its UID and its age."""
        status, spec = pod.get("status") or {}, pod["spec"]
        parts = [self.owner(pod), status.get("phase", "-"), self._readiness(pod)]
        if spec.get("nodeName"):
            parts.append(f"on {spec['nodeName']}")
        if DELETION_COST in annotations_of(pod):
            parts.append(f"cost {annotations_of(pod)[DELETION_COST]}")
        restarts = [str(c["restartCount"]) for c in status.get("containerStatuses") or ()]
        if restarts:
            parts.append(f"restarts {','.join(restarts)}")
        if is_deleting(pod):
            parts.append("deleting")
        parts += sorted(pod["metadata"].get("finalizers") or ())
        rest = {
            "labels": self.masked(dict(labels_of(pod))),
            "annotations": {k: v for k, v in annotations_of(pod).items() if k != DELETION_COST},
            "containers": [{k: c.get(k) for k in ("name", "image", "env")} for c in spec["containers"]],
            "prefix": self.masked((pod["metadata"].get("generateName") or "").removesuffix("-")),
        }
        return f"{' '.join(parts)} {json.dumps(rest, sort_keys=True)}"

    @staticmethod
    def _readiness(pod: Obj) -> str:
        """Whether it is ready, and about how long it had been when the pod was made, as a power of two."""
        condition = condition_of(pod, "Ready") or {}
        if condition.get("status") != "True":
            return "unready"
        if not condition.get("lastTransitionTime"):
            return "ready"
        span = (_born(pod) - parse_time(condition["lastTransitionTime"])).total_seconds()
        return f"ready^{round(math.log2(span / 1.5))}" if span > RECENT else "ready now"


def _born(pod: Obj) -> datetime:
    return parse_time(pod["metadata"]["creationTimestamp"])
