"""How LeaderWorkerSets are explored: what of two ends is compared, and which death may lose something."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from lwskit.api import disaggregated_names, names
from lwskit.groups import budget, counters, ownership, restarts
from lwskit.groups.identity import is_leader
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.deployment_sizes import DESIRED, MOST
from lwskit.runtime.kinds import CONTROLLER_REVISION, POD, REPLICA_SET, STATEFUL_SET, Kind
from lwskit.runtime.objects import Obj, annotations_of, controller_of, is_deleting, labels_of, uid_of
from lwskit.testing.cluster import TestCluster
from lwskit.testing.endstate import Compared
from lwskit.testing.explore import Settings

LOST = "a deletion that only the stopped process saw"
"""The documented exception: a pod is gone, its leader is there, and nothing on the cluster tells that they belonged
together."""


SIZES = (
    names.REPLICAS_ANNOTATION,
    disaggregated_names.INITIAL_REPLICAS_ANNOTATION,
    disaggregated_names.INITIAL_SUBROLE_REPLICAS_ANNOTATION,
    disaggregated_names.SUBROLE_REPLICAS_ANNOTATION,
    disaggregated_names.SUBROLE_PLAN_ANNOTATION,
    disaggregated_names.SCALE_DOWN_PENDING_ANNOTATION,
)
"""Annotations of a leader StatefulSet that tell of its size, some of them its set's."""


def playing(cluster: TestCluster) -> AbstractAsyncContextManager[object]:
    """A kubelet that makes every pod ready."""
    return cluster.kubelet.playing()


def normalise(obj: Obj) -> Obj:
    """A set's conditions that are False say the same as those that are missing, but for Degraded. A revision of a
    StatefulSet keeps what that noted of sizes when it was made, which may be before or after it has grown."""
    if obj.get("kind") == CONTROLLER_REVISION.kind:
        notes = {k: v for k, v in annotations_of(obj).items() if k not in SIZES}
        return {**obj, "metadata": {**obj["metadata"], "annotations": notes}}
    if obj.get("kind") in (names.KIND, disaggregated_names.KIND) and obj.get("status"):
        status = obj["status"]
        kept = [c for c in status.get("conditions") or () if c["status"] == "True" or c["type"] == "Degraded"]
        return {**obj, "status": {**status, "conditions": kept}}
    return obj


def known(cluster: TestCluster) -> str | None:
    """The exception, if at this moment a worker is gone for which its group should be recreated, and nothing tells."""
    sets = {(o["metadata"]["namespace"], o["metadata"]["name"]): o for o in _objects(cluster, LEADER_WORKER_SET)}
    leaders = {uid_of(pod): pod for pod in _objects(cluster, POD) if is_leader(pod)}
    owners = {
        uid_of(obj): owner["uid"]
        for _, obj in _changes(cluster, STATEFUL_SET)
        if (owner := controller_of(obj)) is not None
    }
    for change, pod in _changes(cluster, POD):
        owner = controller_of(pod)
        if change != "DELETED" or owner is None or names.WORKER_INDEX_LABEL not in labels_of(pod):
            continue
        leader = leaders.get(owners.get(owner["uid"], ""))
        lws = sets.get((pod["metadata"]["namespace"], ownership.set_name(pod)))
        if leader is not None and lws is not None and _owed(lws, leader):
            return LOST
    return None


def _owed(lws: Obj, leader: Obj) -> bool:
    """Whether a leader whose group has lost a worker stands there as if nothing had happened."""
    told = is_deleting(leader) or budget.cause_of_pending(leader) or budget.is_exhausted(leader)
    return restarts.recreates(lws) and not told and not counters.is_counted(lws, leader)


def _table(cluster: TestCluster, kind: Kind) -> str:
    return cluster.server.backend.registry.find(kind.group, kind.version, kind.plural).storage


def _objects(cluster: TestCluster, kind: Kind) -> list[Obj]:
    return [entry.obj for entry in cluster.server.backend.store.list(_table(cluster, kind))]


def _changes(cluster: TestCluster, kind: Kind) -> Iterator[tuple[str, Obj]]:
    return cluster.server.backend.store.changes(_table(cluster, kind))


_KEY = re.compile(r"[0-9a-f]{40}")
_HOST = re.compile(r"\b(llm|d-\d+-[0-9a-f]{8}-[a-z]+)-[0-9a-f]{8}(-[0-9a-z]{4,10})?\b")
"""What is named by a key; the revisions of a StatefulSet are too, by a hash of a template that has the key (a number of
up to ten digits, while an ordinal has one or two)."""


def without_keys(text: str) -> str:
    """A text without the keys of groups, which are drawn, and what is named by them."""
    return _HOST.sub(r"\1-<key>", _KEY.sub("<key>", text))


def normalise_drawn(obj: Obj) -> Obj:
    """The same for sets in Hash mode: the revisions of their StatefulSets are labelled with a hash over a key, and an
    empty ReplicaSet keeps the sizes that the Deployment had when it was sized last, which may be at any time."""
    if obj.get("kind") == REPLICA_SET.kind and not obj["spec"].get("replicas"):
        notes = {k: v for k, v in annotations_of(obj).items() if k not in (DESIRED, MOST)}
        return {**obj, "metadata": {**obj["metadata"], "annotations": notes}}
    if obj.get("kind") == CONTROLLER_REVISION.kind:
        labels = {k: v for k, v in labels_of(obj).items() if k != "controller.kubernetes.io/hash"}
        return normalise({**obj, "metadata": {**obj["metadata"], "labels": labels}})
    return normalise(obj)


def drawn(compared: Compared) -> Compared:
    """The same comparison for sets in Hash mode."""
    return replace(compared, normalise=normalise_drawn, text=without_keys)


SETTINGS = Settings(services=(playing,), compared=Compared(normalise=normalise), known=known)
