"""A random life of a set: edits, failures, nodes that go, other clients, and what has to be so whenever it rests."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar

from lwskit.api import names
from lwskit.cli import planning
from lwskit.embedded.controllers.kubelet_behaviour import CRASH, FAIL, READY_DELAY
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.errors import Conflict, Invalid, NotFound
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import Obj, labels_of, uid_of
from lwskit.simulate import order as orders
from lwskit.testing.cluster import TestCluster
from tests.scenarios.laws import LEADER, RESTART, UNREADY, WORKER, Laws
from tests.scenarios.nodes import Nodes
from tests.scenarios.stepped_life import Action, SteppedLife
from tests.scenarios.support import Sets, pod_template, set_object
from tests.scenarios.world import History, image_of, is_leader, restarts_of

L = TypeVar("L", bound=Laws[Any])

SET = "llm"


class RandomLife(SteppedLife, ABC, Generic[L]):
    """A set, its nodes, and everything that may happen to them."""

    fields: ClassVar[Obj] = {}
    """Fields of the set's that say its mode."""
    kinds: ClassVar[dict[str, int]]
    """What is edited, and how often in proportion."""

    def __init__(self, cluster: TestCluster, sets: Sets, seed: int, nodes: Nodes, history: History, laws: L) -> None:
        super().__init__(cluster, sets, seed)
        self.nodes, self.history, self.laws = nodes, history, laws
        self.counts = laws.counts
        self.images = 0
        self.templates: list[Obj] = []
        self.unready: list[tuple[str, str]] = []
        """Pods that are kept from being ready, by name and UID."""
        self.stuck: set[str] = set()
        """Groups that do not become ready any more until they are made anew, by the UID of their leader."""

    # What there is ------------------------------------------------------------------------------------------------

    @property
    def spec(self) -> Obj:
        assert self.laws.world.lws is not None
        return self.laws.world.lws["spec"]

    @property
    def bad(self) -> bool:
        """Whether pods of the newest template cannot become ready."""
        return self.is_bad(self.spec["leaderWorkerTemplate"])

    @staticmethod
    def is_bad(inner: Obj | None) -> bool:
        """Whether pods of this part of a spec cannot become ready."""
        parts = (inner.get("leaderTemplate"), inner["workerTemplate"]) if inner else ()
        return any("bad" in image_of(t) for t in parts if t)

    def trail(self) -> Sequence[str]:
        return self.laws.trail

    async def look(self) -> int:
        """Look at what has happened; returns how much it was."""
        news = await self.history.news()
        for kind, change in news:
            self.laws.see(kind, change)
        return len(news)

    def pod(self, *, leader: bool | None = None, running: bool = False) -> Obj | None:
        found = [
            p
            for p in self.laws.world.live_pods()
            if labels_of(p).get(names.NAME_LABEL) == SET
            and (leader is None or is_leader(p) == leader)
            and (not running or (p.get("status") or {}).get("phase") == "Running")
        ]
        return self.rng.choice(found) if found else None

    def cause(self, pod: Obj, kind: str, what: str) -> None:
        uid = self.laws.world.leader_of(pod)
        if kind == WORKER and is_leader(pod):
            kind = LEADER
        sure = self.managed and self.spec["leaderWorkerTemplate"]["restartPolicy"] == names.RESTART_RECREATE_GROUP
        if uid:
            self.laws.cause(uid, kind, self.cluster.clock.monotonic(), what, sure=sure)

    # Edits --------------------------------------------------------------------------------------------------------

    def image(self) -> str:
        self.images += 1
        return f"img:{'bad' if self.chance(0.15) else 'v'}{self.images}"

    def template(self, image: str) -> Obj:
        return pod_template(image, schedulerName="default-scheduler")

    def first(self) -> Obj:
        rng = self.rng
        group: Obj = {"restartPolicy": rng.choice(names.RESTART_POLICIES[1:])}
        leader = self.template("img:lead") if self.chance(0.3) else None
        pace = self.pace(rng.randint(1, 4))
        lws = set_object(
            SET,
            replicas=rng.randint(1, 4),
            size=rng.choice((1, 2, 2, 3)),
            template=self.template("img:v0"),
            leader=leader,
            group=group,
            startupPolicy=rng.choice(names.STARTUP_POLICIES),
            rolloutStrategy={"type": "RollingUpdate", "rollingUpdateConfiguration": pace},
            **self.fields,
        )
        self.templates.append(lws["spec"]["leaderWorkerTemplate"]["workerTemplate"])
        return lws

    def pace(self, replicas: int) -> Obj:
        surge = self.rng.choice((0, 0, 1, 1, 2, "50%"))
        down = self.rng.choice((1, 1, 2, 3) if surge == 0 else (0, 0, 1, 2, "50%"))
        return {"maxSurge": surge, "maxUnavailable": down}

    def edit(self) -> tuple[str, Obj]:
        """A merge patch of the set, and what it is."""
        rng = self.rng
        kind = rng.choices([*self.kinds], [*self.kinds.values()])[0]
        inner: Obj = {}
        spec: Obj = {}
        if kind in ("template", "template and replicas"):
            inner["workerTemplate"] = self.template(self.image())
            self.templates.append(inner["workerTemplate"])
        if kind == "leader template":
            has = self.spec["leaderWorkerTemplate"].get("leaderTemplate")
            inner["leaderTemplate"] = None if has and self.chance(0.4) else self.template(self.image())
        if kind == "rollback":
            inner["workerTemplate"] = rng.choice(self.templates[-4:])
        if kind == "size":
            inner["size"] = rng.choice((1, 2, 2, 3))
        if kind in ("replicas", "template and replicas"):
            spec["replicas"] = rng.choice((0, 1, 1, 2, 2, 3, 4, 5))
        if kind == "pace":
            spec["rolloutStrategy"] = {"rollingUpdateConfiguration": self.pace(self.spec["replicas"])}
        spec |= self.own_edit(kind)
        if kind == "policy":
            inner["restartPolicy"] = rng.choice(names.RESTART_POLICIES[1:])
        if kind == "startup":
            spec["startupPolicy"] = rng.choice(names.STARTUP_POLICIES)
        if kind == "subdomain":
            spec["networkConfig"] = {"subdomainPolicy": rng.choice(names.SUBDOMAIN_POLICIES)}
        if inner:
            spec["leaderWorkerTemplate"] = inner
        return kind, {"spec": spec}

    @abstractmethod
    def own_edit(self, kind: str) -> Obj:
        """What an edit that only this mode knows changes of the spec; nothing for others."""

    async def put(self, kind: str, body: Obj) -> None:
        self.counts[f"edit: {kind}"] += 1
        self.log[-1] += f" {kind} {_short(body['spec'])}"
        if kind == "replicas" and self.chance(0.5):
            await self.sets.scale(body["spec"]["replicas"])
        else:
            await self.sets.patch(body)

    async def edits(self) -> None:
        await self.put(*self.edit())

    async def edits_often(self) -> None:
        for _ in range(self.rng.randint(2, 3)):
            await self.edits()
            await self.cluster.clock.sleep(self.rng.choice((0.0, 0.02, 0.3)))
            await self.look()

    async def edits_at_rest(self) -> None:
        """An edit from a settled state, with nothing else until it has settled again: `plan` is held to its word."""
        await self.rests(mend=False)
        kind, body = self.edit()
        live = await self.sets.live()
        wanted = {**live, "spec": merged(live["spec"], body["spec"])}
        now = self.cluster.clock.now()
        report = await planning.on_cluster(self.cluster.client, wanted, orders.HIGHEST, now)
        breaks = len(self.laws.breaks)
        await self.put(kind, body)
        await self.rests(mend=False)
        self.counts["plans"] += 1
        broken = [b for b in self.laws.breaks[breaks:] if b.case != "failures"]
        warned = sorted(n.code for n in report.notices if n.code.startswith("floor-"))
        assert "floor-unexpected" not in warned, report
        self.counts["plans that warn of the floor"] += bool(warned)
        assert not broken or warned, f"the plan did not warn: {broken}, {report}"

    # Failures -----------------------------------------------------------------------------------------------------

    async def annotate(self, pod: Obj, key: str, value: str | None) -> None:
        body = {"metadata": {"uid": uid_of(pod), "annotations": {key: value}}}
        try:
            await self.cluster.patch(POD, pod["metadata"]["name"], body)
        except Invalid as error:
            raise Conflict(error.message) from error

    async def restarts(self) -> None:
        if pod := self.pod(running=True):
            self.log[-1] += f" {pod['metadata']['name']}"
            self.cause(pod, RESTART, "container restarted")
            await self.annotate(pod, CRASH, str(restarts_of(pod) + 1))

    async def fails(self) -> None:
        if pod := self.pod(running=True):
            self.log[-1] += f" {pod['metadata']['name']}"
            self.cause(pod, WORKER, "pod evicted")
            await self.annotate(pod, FAIL, "Evicted")

    async def deletes(self, leader: bool | None = None) -> None:
        if pod := self.pod(leader=leader):
            self.log[-1] += f" {pod['metadata']['name']}"
            self.cause(pod, WORKER, "pod deleted")
            how = self.rng.choice(("Background", "Background", "Foreground"))
            await self.cluster.delete(POD, pod["metadata"]["name"], how, uid=uid_of(pod))

    async def deletes_leader(self) -> None:
        await self.deletes(True)

    async def makes_unready(self) -> None:
        if pod := self.pod(running=True):
            self.log[-1] += f" {pod['metadata']['name']}"
            self.cause(pod, UNREADY, "pod not ready for a while")
            self.unready.append((pod["metadata"]["name"], uid_of(pod)))
            await self.annotate(pod, READY_DELAY, "never")

    async def sticks(self) -> None:
        """A pod is not ready any more, for as long as it lives."""
        if pod := self.pod(running=True):
            self.log[-1] += f" {pod['metadata']['name']}"
            self.cause(pod, UNREADY, "pod not ready any more")
            self.stuck.add(self.laws.world.leader_of(pod))
            await self.annotate(pod, READY_DELAY, "never")

    async def recovers(self) -> None:
        if self.unready:
            name, uid = self.unready.pop(self.rng.randrange(len(self.unready)))
            await self.annotate({"metadata": {"name": name, "uid": uid}}, READY_DELAY, None)

    # Nodes --------------------------------------------------------------------------------------------------------

    async def loses_node(self) -> None:
        left = [n for n in self.nodes.names if n not in self.nodes.lost]
        if len(left) > 1:
            for pod in await self.nodes.lose(self.rng.choice(left)):
                self.cause(pod, UNREADY, "node lost")

    async def evicts(self) -> None:
        if self.nodes.lost:
            for pod in await self.nodes.evict(self.rng.choice(self.nodes.lost)):
                self.cause(pod, WORKER, "pod of a lost node deleted")

    async def removes_node(self) -> None:
        if self.nodes.lost:
            for pod in await self.nodes.remove(self.rng.choice(self.nodes.lost)):
                self.cause(pod, WORKER, "node removed")

    async def finds_node(self) -> None:
        if self.nodes.lost:
            await self.nodes.find(self.rng.choice(self.nodes.lost))

    # Others -------------------------------------------------------------------------------------------------------

    @abstractmethod
    async def interferes(self) -> None:
        """Another client writes to what the manager owns."""

    async def orphans(self) -> None:
        """Another client deletes the leader workload and leaves what it has made."""
        workload = self.laws.world.workload
        if workload is not None:
            await self.cluster.delete(self.laws.world.leaders, SET, "Orphan", uid=uid_of(workload))
            self.counts["leaders left behind"] += 1

    async def loses_webhooks(self) -> None:
        with self.without_webhooks():
            await self.cluster.clock.sleep(self.rng.choice((0.2, 1.0, 3.0)))

    # Steps --------------------------------------------------------------------------------------------------------

    def actions(self) -> dict[Action, int]:
        """What may happen whether a manager runs or not, and how often in proportion."""
        return {
            self.edits: 24,
            self.edits_often: 8,
            self.edits_at_rest: 10,
            self.rests: 8,
            self.restarts: 8,
            self.fails: 5,
            self.deletes: 6,
            self.deletes_leader: 4,
            self.makes_unready: 5,
            self.sticks: 5,
            self.recovers: 3,
            self.loses_node: 3,
            self.evicts: 3,
            self.removes_node: 2,
            self.finds_node: 4,
            self.interferes: 4,
            self.orphans: 4,
            self.loses_webhooks: 3,
            self.begin: 2,
        }

    # Rest ---------------------------------------------------------------------------------------------------------

    async def rests(self, *, mend: bool = True) -> None:
        """Everything that disturbs ends; nothing repeats for ever, and it ends where it has to.

        Groups that are stuck are made anew if they are in the way and `mend`.
        """
        await self.calm()
        await self.mends()
        await self.begin()
        self.counts["rests"] += 1
        await self.settles()
        for _ in range(20):
            if not await self.held(mend):
                return
            await self.settles()
        raise AssertionError("it is held again and again")

    async def mends(self) -> None:
        """Everything that passes is over."""
        while self.nodes.lost:
            await self.nodes.find(self.nodes.lost[0])
        while self.unready:
            try:
                await self.recovers()
            except (NotFound, Conflict):
                continue

    @abstractmethod
    async def held(self, mend: bool) -> bool:
        """At rest: whether groups keep it from ending, of which one was made anew; else all is as it must be."""

    async def makes_anew(self, uid: str) -> None:
        leader = self.laws.world.pods[uid]
        self.log[-1] += f" (held; deletes {leader['metadata']['name']})"
        self.cause(leader, LEADER, "deleted to end a hold")
        await self.cluster.delete(POD, leader["metadata"]["name"], uid=uid)

    def causes_have_effect(self) -> None:
        """A group of which a pod was lost or restarted while a manager looked has been made anew (20 §11)."""
        live = {uid_of(p) for p in self.laws.world.live_pods()}
        for uid, causes in self.laws.causes.items():
            for cause in causes:
                applied = self.laws.policy_since(cause.at) == {names.RESTART_RECREATE_GROUP}
                if cause.kind == LEADER or (cause.kind in (WORKER, RESTART) and cause.sure and applied):
                    assert uid not in live, f"group of {uid} was not made anew for {cause}"

    async def ends(self) -> None:
        """The set ends at the newest revision; then it is deleted, and nothing is left."""
        self.log.append("ends")
        await self.rests()
        body: Obj = {"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 0}}}
        if self.bad:
            inner: Obj = {"workerTemplate": self.template("img:v-last")}
            if self.spec["leaderWorkerTemplate"].get("leaderTemplate"):
                inner["leaderTemplate"] = self.template("img:lead-last")
            body["leaderWorkerTemplate"] = inner
        await self.sets.patch({"spec": body})
        await self.rests()
        self.is_updated()
        await self.cluster.delete(LEADER_WORKER_SET, SET)
        await self.settles()
        assert self.laws.world.lws is None
        assert not self.laws.world.pods
        assert not self.laws.world.workers
        assert self.laws.world.workload is None

    @abstractmethod
    def is_updated(self) -> None:
        """All groups are ready and of the newest revision."""


def _short(spec: Obj) -> str:
    text = str(spec)
    return re.sub(r"\{'spec': \{'schedulerName.*?'image': '([^']*)'.*?\}\]\}\}", r"\1", text)


def merged(live: Obj, patch: Obj) -> Obj:
    """An object after a merge patch."""
    found = dict(live)
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        elif isinstance(value, dict) and isinstance(found.get(name), dict):
            found[name] = merged(found[name], value)
        else:
            found[name] = value
    return found
