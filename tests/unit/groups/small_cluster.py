"""A cluster of one set for tests of decisions: it carries out plans, and its StatefulSet controller acts at once."""

from __future__ import annotations

import copy
import itertools
from datetime import UTC, datetime
from typing import Any

from lwskit.api import names
from lwskit.backends.statefulset import StatefulSetLeaders, StatefulSetWorkers
from lwskit.groups import identity, member, ordinal, ownership, revisions
from lwskit.groups.index import GroupIndex
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.model import MemberSnapshot, SetSnapshot
from lwskit.runtime.kinds import CONTROLLER_REVISION, POD, SERVICE, STATEFUL_SET
from lwskit.runtime.objects import Obj, controller_reference, key_of, labels_of
from lwskit.runtime.plan import Apply, Create, Delete, Emit, Event, NeedFresh, Plan, UpdateStatus
from lwskit.runtime.request import Result

NOW = datetime(2026, 10, 20, 10, 0, 0, tzinfo=UTC)
LEADERS, WORKERS = StatefulSetLeaders(), StatefulSetWorkers()


def make_lws(name: str = "x", *, replicas: int = 2, size: int = 3, image: str = "a", **template: Any) -> Obj:
    """A set as the API server stores it, in namespace `ns`."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {"name": name, "namespace": "ns", "uid": "set-uid", "generation": 1, "resourceVersion": "1"},
        "spec": {
            "replicas": replicas,
            "leaderWorkerTemplate": {
                "size": size,
                "restartPolicy": names.RESTART_RECREATE_GROUP,
                "workerTemplate": {"spec": {"containers": [{"name": "c", "image": image}]}},
                **template,
            },
            "rolloutStrategy": {
                "type": "RollingUpdate",
                "rollingUpdateConfiguration": {"partition": 0, "maxUnavailable": 1, "maxSurge": 0},
            },
            "startupPolicy": names.STARTUP_LEADER_CREATED,
            "networkConfig": {"subdomainPolicy": names.SUBDOMAIN_SHARED},
            "groupIdentity": names.IDENTITY_ORDINAL,
        },
    }


def ready_pod(pod: Obj, ready: bool = True) -> Obj:
    """The pod running, and ready or not."""
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {**pod, "status": {"phase": "Running" if ready else "Pending", "conditions": conditions}}


def ready_workers(workers: Obj, ready: bool = True) -> Obj:
    """The StatefulSet of workers with all of them available, or none."""
    count = workers["spec"]["replicas"] if ready else 0
    status = {"replicas": count, "availableReplicas": count, "currentRevision": "r", "updateRevision": "r"}
    return {**workers, "status": status}


class SmallCluster:
    """One set and what belongs to it. With `passive` no pod appears or goes but by `make_ready` and `remove`."""

    def __init__(self, lws: Obj, *, passive: bool = False) -> None:
        self.lws, self.passive = lws, passive
        self.workload: Obj | None = None
        self.revisions: list[Obj] = []
        self.services: dict[str, Obj] = {}
        self.leaders: dict[int, Obj] = {}
        self.workers: dict[int, Obj] = {}
        self.index = GroupIndex(LEADERS, WORKERS)
        self.healthy = True
        self._uids = (f"uid-{n}" for n in itertools.count(1))

    # What tests change ----------------------------------------------------------------------------------------

    def change(self, **fields: Any) -> None:
        """Change the spec: `image`, `size`, `replicas`, or a field of the rolling update."""
        lws = copy.deepcopy(self.lws)
        template = lws["spec"]["leaderWorkerTemplate"]
        for name, value in fields.items():
            if name == "image":
                template["workerTemplate"]["spec"]["containers"][0]["image"] = value
            elif name == "size":
                template["size"] = value
            elif name == "replicas":
                lws["spec"]["replicas"] = value
            else:
                lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"][name] = value
        lws["metadata"]["generation"] += 1
        self.lws = lws

    def make_ready(self, *ordinals: int, ready: bool = True) -> None:
        """Groups get ready or unready; in a passive cluster they are brought to the current revision too."""
        for i in ordinals:
            if self.passive and ready:
                self.remove(i)
                self._create(i)
            self._put_leader(i, ready_pod(self.leaders[i], ready))
            if i in self.workers:
                self._put_workers(i, ready_workers(self.workers[i], ready))

    def make_leader_ready(self, i: int) -> None:
        """The leader of a group gets ready, and its workers stay as they are."""
        self._put_leader(i, ready_pod(self.leaders[i]))

    def remove(self, i: int) -> None:
        """A group goes at once."""
        if i in self.leaders:
            self.index.apply(POD, self.leaders.pop(i), None)
        if i in self.workers:
            self.index.apply(STATEFUL_SET, self.workers.pop(i), None)

    # Reconciling ----------------------------------------------------------------------------------------------

    def snapshot(self) -> SetSnapshot:
        """What a reconciler would hand to the decision."""
        return SetSnapshot(
            now=NOW,
            lws=self.lws,
            workload=self.workload,
            revisions=self.revisions,
            shared_service=self.services.get(self.lws["metadata"]["name"]),
            state=self.index.state_of(self.lws["metadata"]["uid"]),
            healthy=self.healthy,
            live=frozenset({(STATEFUL_SET, key_of(self.lws))}),
        )

    def reconcile(self) -> list[str]:
        """Decide once for the set and carry it out; the notes of the events."""
        plan = ordinal.decide(self.snapshot(), LEADERS)
        assert isinstance(plan, Plan)
        return [event.note for event in self.execute(plan)]

    def execute(self, plan: Plan) -> list[Event]:
        """Carry out a plan in which nothing fails; the events it records."""
        events = []
        for action in plan.actions:
            match action:
                case Create(kind=kind, obj=obj) if kind == CONTROLLER_REVISION:
                    self.revisions.append(self._born(obj))
                case Create(kind=kind, obj=obj) if kind == SERVICE:
                    self.services[obj["metadata"]["name"]] = self._born(obj)
                case Apply(obj=obj):
                    self._apply(obj)
                case UpdateStatus(obj=obj):
                    self.lws = {**self.lws, "status": obj["status"]}
                case Delete(kind=kind, key=key) if kind == CONTROLLER_REVISION:
                    self.revisions = [r for r in self.revisions if r["metadata"]["name"] != key.name]
                case Emit(event=event):
                    events.append(event)
                case _:
                    raise AssertionError(f"unexpected {action}")
            if action.on_success is not None:
                events.append(action.on_success)
        return events

    def settle(self) -> list[str]:
        """Reconcile and let the controller act until nothing changes any more; the notes of the events."""
        events, before = [], None
        while before != (before := (self.workload, self.lws.get("status"), sorted(self.leaders))):
            events += self.reconcile()
            self.act()
        return events

    def act(self) -> None:
        """The StatefulSet controller, and the pod reconciler for what it makes."""
        if self.passive or self.workload is None:
            return
        spec = self.workload["spec"]
        for i in sorted(set(self.leaders) - set(range(spec["replicas"]))):
            self.remove(i)
        current = labels_of(self.workload)[names.REVISION_LABEL]
        partition = spec["updateStrategy"]["rollingUpdate"]["partition"]
        for i in range(spec["replicas"]):
            if i in self.leaders and i >= partition and ownership.revision_key(self.leaders[i]) != current:
                self.remove(i)
            if i not in self.leaders:
                self._create(i)
        self._count()

    @property
    def target(self) -> tuple[int, int]:
        """Replicas and partition of the leader StatefulSet."""
        assert self.workload is not None
        spec = self.workload["spec"]
        return spec["replicas"], spec["updateStrategy"]["rollingUpdate"]["partition"]

    @property
    def counts(self) -> str:
        """Ready and updated groups as the status has them."""
        status = self.lws.get("status") or {}
        return f"{status.get('readyReplicas', 0)}/{status.get('updatedReplicas', 0)}"

    @property
    def conditions(self) -> dict[str, str]:
        """Type and status of the set's conditions."""
        return {c["type"]: c["status"] for c in (self.lws.get("status") or {}).get("conditions", ())}

    def member_snapshot(self, i: int, **fields: Any) -> MemberSnapshot:
        """What the pod reconciler would see of a leader."""
        leader = self.leaders[i]
        seen = {
            "pod": leader,
            "lws": self.lws,
            "leader": leader,
            "workers": self.workers.get(i),
            "service": self.services.get(ownership.service_name(leader)),
            "revisions": self.revisions,
            "workload": self.workload,
        }
        return MemberSnapshot(now=NOW, **(seen | fields))

    # Inside ---------------------------------------------------------------------------------------------------

    def _born(self, obj: Obj) -> Obj:
        return {**obj, "metadata": {**obj["metadata"], "uid": next(self._uids), "resourceVersion": "1"}}

    def _apply(self, obj: Obj) -> None:
        old = self.workload
        new = self._born(obj) if old is None else {**obj, "status": old.get("status", {})}
        if old is not None:
            new["metadata"] = {**obj["metadata"], "uid": old["metadata"]["uid"], "resourceVersion": "1"}
        self.index.apply(STATEFUL_SET, old, new)
        self.workload = new

    def _create(self, i: int) -> None:
        assert self.workload is not None
        name = f"{self.lws['metadata']['name']}-{i}"
        template = self.workload["spec"]["template"]
        pod = {
            "metadata": {
                **template["metadata"],
                "name": name,
                "namespace": "ns",
                "ownerReferences": [controller_reference(self.workload, STATEFUL_SET)],
            },
            "spec": {**template["spec"], "hostname": name, "subdomain": self.workload["spec"]["serviceName"]},
            "status": {"phase": "Pending"},
        }
        self._put_leader(i, self._born(identity.identified(pod, "ns", "b".__mul__)))
        plan = member.decide(self.member_snapshot(i), LEADERS, WORKERS)
        assert not isinstance(plan, NeedFresh)
        for action in plan.actions:
            if isinstance(action, Create) and action.kind == STATEFUL_SET:
                self._put_workers(i, ready_workers(self._born(action.obj), ready=False))
            elif isinstance(action, Create):
                self.services[action.obj["metadata"]["name"]] = self._born(action.obj)
        assert plan.result == Result(), plan.result

    def _put_leader(self, i: int, pod: Obj) -> None:
        self.index.apply(POD, self.leaders.get(i), pod)
        self.leaders[i] = pod

    def _put_workers(self, i: int, workers: Obj) -> None:
        self.index.apply(STATEFUL_SET, self.workers.get(i), workers)
        self.workers[i] = workers

    def _count(self) -> None:
        assert self.workload is not None
        self.workload = {**self.workload, "status": {"replicas": len(self.leaders)}}


def settled(lws: Obj, **fields: Any) -> SmallCluster:
    """A cluster in which all groups of the set are ready."""
    cluster = SmallCluster(lws, **fields)
    cluster.settle()
    cluster.make_ready(*range(lws["spec"]["replicas"]))
    cluster.settle()
    return cluster


def key_of_live(cluster: SmallCluster) -> str:
    """The key that the set's template has as it is now."""
    return revisions.hash_of(revisions.record(cluster.lws))


__all__ = ["LEADERS", "LEADER_WORKER_SET", "NOW", "WORKERS", "SmallCluster", "make_lws", "ready_pod", "settled"]
