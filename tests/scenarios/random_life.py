"""A random life of a set: edits, failures, nodes that go, other clients, and what has to be so whenever it rests."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence

from lwskit.api import names
from lwskit.cli import explaining, planning
from lwskit.embedded.controllers.kubelet_behaviour import CRASH, FAIL, READY_DELAY
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.errors import Conflict, Invalid, NotFound
from lwskit.runtime.kinds import POD, STATEFUL_SET
from lwskit.runtime.objects import Obj, is_true, labels_of, uid_of, version_of
from lwskit.simulate import order as orders
from lwskit.testing.cluster import TestCluster
from tests.scenarios.laws import LEADER, RESTART, UNREADY, WORKER, Laws
from tests.scenarios.life import Life
from tests.scenarios.nodes import Nodes
from tests.scenarios.support import Sets, pod_template, set_object
from tests.scenarios.world import History, asked, image_of, is_leader, restarts_of, stopped, unfinished

Action = Callable[[], Awaitable[None]]

SET = "llm"
QUIET = 90.0
"""Seconds without a change after which nothing more is expected.

That is longer than anything in a pod's life takes, and than a controller waits after a dozen failures in a row.
"""
PATIENCE = 1800.0
"""Seconds after which a set that still changes does not come to rest."""


class RandomLife(Life):
    """A set, its nodes, and everything that may happen to them."""

    def __init__(self, cluster: TestCluster, sets: Sets, seed: int, nodes: Nodes, history: History) -> None:
        super().__init__(cluster, sets, seed)
        self.nodes, self.history = nodes, history
        self.laws = Laws(SET)
        self.counts = self.laws.counts
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
        kinds: dict[str, int] = {
            "template": 30,
            "leader template": 6,
            "rollback": 8,
            "size": 10,
            "replicas": 20,
            "template and replicas": 8,
            "pace": 12,
            "partition": 8,
            "policy": 6,
            "startup": 3,
            "subdomain": 2,
        }
        kind = rng.choices([*kinds], [*kinds.values()])[0]
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
        if kind == "partition":
            spec["rolloutStrategy"] = {"rollingUpdateConfiguration": {"partition": rng.choice((0, 0, 1, 2, 3))}}
        if kind == "policy":
            inner["restartPolicy"] = rng.choice(names.RESTART_POLICIES[1:])
        if kind == "startup":
            spec["startupPolicy"] = rng.choice(names.STARTUP_POLICIES)
        if kind == "subdomain":
            spec["networkConfig"] = {"subdomainPolicy": rng.choice(names.SUBDOMAIN_POLICIES)}
        if inner:
            spec["leaderWorkerTemplate"] = inner
        return kind, {"spec": spec}

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
        wanted = {**live, "spec": _merged(live["spec"], body["spec"])}
        now = self.cluster.clock.now()
        report = await planning.on_cluster(self.cluster.client, wanted, orders.HIGHEST, now)
        breaks = len(self.laws.breaks)
        await self.put(kind, body)
        await self.rests(mend=False)
        self.counts["plans"] += 1
        broken = [b for b in self.laws.breaks[breaks:] if b.case != "failures"]
        warned = sorted(n.code for n in report.notices if n.code.startswith("floor-"))
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

    async def interferes(self) -> None:
        """Another client writes to what the manager owns."""
        workload = self.laws.world.workload
        if workload is None:
            return
        now = asked(workload, 0.0)
        label = {"metadata": {"labels": {names.ROLE_LABEL: "mine"}}}
        replicas = {"spec": {"replicas": max(0, now.replicas + self.rng.choice((-1, 1)))}}
        pace = {"partition": self.rng.randint(0, 3)}
        partition = {"spec": {"updateStrategy": {"rollingUpdate": pace}}}
        body = self.rng.choice((label, replicas, partition))
        self.log[-1] += f" {body}"
        answer = await self.cluster.patch(STATEFUL_SET, SET, body)
        self.laws.foreign.add(version_of(answer))
        self.counts["interference"] += 1

    async def orphans(self) -> None:
        """Another client deletes the leader workload and leaves its pods."""
        if self.laws.world.workload is not None:
            await self.cluster.delete(STATEFUL_SET, SET, "Orphan", uid=uid_of(self.laws.world.workload))
            self.counts["leaders left behind"] += 1

    async def loses_webhooks(self) -> None:
        with self.without_webhooks():
            await self.cluster.clock.sleep(self.rng.choice((0.2, 1.0, 3.0)))

    # Steps --------------------------------------------------------------------------------------------------------

    async def step(self) -> None:
        """One thing happens, and some time passes."""
        manager: dict[Action, int] = {
            self.changes_managers: 3,
            self.dies: 4,
            self.end: 2,
            self.cuts: 4,
            self.breaks: 5,
            self.loses_answers: 4,
            self.slows: 4,
            self.silences: 2,
            self.disconnects: 2,
            self.calm: 4,
        }
        actions: dict[Action, int] = {
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
        if self.managed:
            actions |= manager
        elif self.chance(0.5):
            actions = {self.begin: 1}
        action = self.rng.choices([*actions], [*actions.values()])[0]
        self.log.append(getattr(action, "__name__", ""))
        self.counts["steps"] += 1
        try:
            await action()
        except (NotFound, Conflict):
            # The pod was replaced between the look and the act.
            self.log[-1] += " (too late)"
        await self.cluster.clock.sleep(self.rng.choice((0.0, 0.05, 0.3, 1.0, 3.0, 8.0)))
        await self.look()

    # Rest ---------------------------------------------------------------------------------------------------------

    async def rests(self, *, mend: bool = True) -> None:
        """Everything that disturbs ends; nothing repeats for ever, and it ends where it has to.

        Groups that are stuck are made anew if they are in the way and `mend`.
        """
        await self.calm()
        while self.nodes.lost:
            await self.nodes.find(self.nodes.lost[0])
        while self.unready:
            try:
                await self.recovers()
            except (NotFound, Conflict):
                continue
        await self.begin()
        self.counts["rests"] += 1
        await self.settles()
        for _ in range(20):
            if not await self.held(mend):
                return
            await self.settles()
        raise AssertionError("it is held again and again")

    async def settles(self) -> None:
        """Wait until nothing changes any more; then the manager does not write either."""
        clock, seen = self.cluster.clock, len(self.connection.requests)
        began = since = clock.monotonic()
        while clock.monotonic() - since < QUIET:
            await clock.sleep(2.0)
            if await self.look():
                since, seen = clock.monotonic(), len(self.connection.requests)
            assert clock.monotonic() - began < PATIENCE, "it does not come to rest"
        writes = [r for r in self.connection.requests[seen:] if r.verb not in ("get", "list", "watch")]
        writes = [r for r in writes if "/events" not in r.request.path and r.at > since + 1.0]
        assert not writes, f"at rest the manager still writes: {writes}"

    async def held(self, mend: bool) -> bool:
        """At rest: whether the hold of §6.5 applies, which is ended as `explain` says; else all is as it must be."""
        laws, world = self.laws, self.laws.world
        workload = world.workload
        assert workload is not None
        now, wanted, groups = asked(workload, 0.0), laws.now, world.groups()
        self.causes_have_effect()
        assert now.recorded == str(wanted.replicas)
        assert now.replicas <= wanted.most
        if self.bad:
            self.counts["rests with a template that never becomes ready"] += 1
            return False
        left = [i for i in unfinished(groups, now.key, wanted) if i >= wanted.partition]
        if not left:
            self.is_done(now.replicas, now.partition)
            return False
        found = await explaining.on_cluster(self.cluster.client, self.cluster.namespace, SET, self.cluster.clock.now())
        partition, below = stopped(groups, now, wanted)
        assert partition == now.partition
        if wanted.partition and partition <= wanted.partition and not [i for i in left if i >= partition]:
            return False
        where = f"it stays at {groups}, {now}, {wanted}: {found.cause}, {found.paragraph}"
        first = next(i for i in reversed(range(now.replicas)) if not groups[i].ready or groups[i].key != now.key)
        if not groups[first].ready:
            # The update has reached it and it cannot become ready: that is no hold, and `explain` names it.
            assert groups[first].uid in self.stuck or self.is_bad(world.recorded(groups[first].key)), where
            assert found.group == first, where
            self.counts["at rest a group is stuck"] += 1
            if mend:
                await self.makes_anew(groups[first].uid)
            return mend
        self.counts[f"held: {found.cause}"] += 1
        named = [int(m) for text in found.advice for m in re.findall(rf"delete pod {SET}-(\d+)`", text)]
        assert named, where
        go_on = named[-1]
        assert groups[go_on].ready, where
        assert groups[go_on].key != now.key, where
        if first >= partition:
            # The update has reached it, and the StatefulSet controller may take no more leaders down.
            assert (found.cause, go_on) == ("replacing", first), where
            assert world.leaders_down() >= max(1, wanted.unavailable + wanted.surge), where
        else:
            assert found.cause == "formula-hold", where
            assert found.group in below, where
        # Either piece of advice ends it, but a group whose revision is no good does not become ready.
        mendable = groups[named[0]].uid in self.stuck and self.chance(0.5)
        await self.makes_anew(groups[named[0] if mendable else go_on].uid)
        return True

    async def makes_anew(self, uid: str) -> None:
        leader = self.laws.world.pods[uid]
        self.log[-1] += f" (held; deletes {leader['metadata']['name']})"
        self.cause(leader, LEADER, "deleted to end a hold")
        await self.cluster.delete(POD, leader["metadata"]["name"], uid=uid)

    def is_done(self, replicas: int, partition: int) -> None:
        """All groups that are to be are ready and of the newest revision, and no others are there (but surge, §6.6)."""
        wanted, world = self.laws.now, self.laws.world
        groups = world.groups()
        assert partition == wanted.partition, (partition, wanted)
        if wanted.partition == 0:
            assert replicas == wanted.replicas, (replicas, wanted)
        assert sorted(groups) == [*range(replicas)]
        assert world.lws is not None
        status = world.lws["status"]
        assert status["observedGeneration"] == world.lws["metadata"]["generation"]
        assert status.get("readyReplicas", 0) == sum(g.ready for g in groups.values())
        if wanted.partition == 0:
            assert is_true(world.lws, names.CONDITION_AVAILABLE), status
            assert status.get("updatedReplicas", 0) == wanted.replicas

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
        assert self.laws.world.workload is not None
        newest = asked(self.laws.world.workload, 0.0).key
        assert not [*unfinished(self.laws.world.groups(), newest, self.laws.now)]
        await self.cluster.delete(LEADER_WORKER_SET, SET)
        await self.settles()
        assert self.laws.world.lws is None
        assert not self.laws.world.pods
        assert not self.laws.world.workers
        assert self.laws.world.workload is None


def _short(spec: Obj) -> str:
    text = str(spec)
    return re.sub(r"\{'spec': \{'schedulerName.*?'image': '([^']*)'.*?\}\]\}\}", r"\1", text)


def _merged(live: Obj, patch: Obj) -> Obj:
    found = dict(live)
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        elif isinstance(value, dict) and isinstance(found.get(name), dict):
            found[name] = _merged(found[name], value)
        else:
            found[name] = value
    return found
