"""A random life of a set in Hash mode."""

from __future__ import annotations

from typing import ClassVar

from lwskit.api import names
from lwskit.cli import explaining
from lwskit.groups.explanation import State
from lwskit.runtime.errors import Conflict, Invalid, NotFound
from lwskit.runtime.kinds import DEPLOYMENT, POD
from lwskit.runtime.objects import Obj, is_true, labels_of, uid_of, version_of
from lwskit.testing.cluster import TestCluster
from tests.scenarios.hash.gating import WAIT
from tests.scenarios.hash.keyed import asked, group_key
from tests.scenarios.hash.laws import HashLaws
from tests.scenarios.hash.support import HASH
from tests.scenarios.nodes import Nodes
from tests.scenarios.random_life import SET, RandomLife
from tests.scenarios.sight import Sight, SightedLife
from tests.scenarios.stepped_life import Action
from tests.scenarios.support import Sets
from tests.scenarios.world import Group, History, key_of


class HashLife(SightedLife, RandomLife[HashLaws]):
    """A set in Hash mode, and everything that may happen to it."""

    fields: ClassVar[Obj] = HASH
    kinds: ClassVar[dict[str, int]] = {
        "template": 30,
        "leader template": 6,
        "rollback": 10,
        "size": 8,
        "replicas": 24,
        "template and replicas": 10,
        "pace": 12,
        "replacement": 8,
        "policy": 6,
        "startup": 3,
        "subdomain": 2,
    }

    def __init__(self, cluster: TestCluster, sets: Sets, seed: int, nodes: Nodes, history: History) -> None:
        super().__init__(cluster, sets, seed, nodes, history, HashLaws(SET))
        self.kept: list[tuple[str, str]] = []
        """Pods that stay when they are deleted, by name and UID."""

    @property
    def sight(self) -> Sight:
        return self.laws.sight

    def own_edit(self, kind: str) -> Obj:
        if kind != "replacement":
            return {}
        return {"groupReplacementPolicy": self.rng.choice(names.GROUP_REPLACEMENT_POLICIES)}

    def actions(self) -> dict[Action, int]:
        return {**super().actions(), self.keeps: 6, self.releases: 3}

    # What happens -------------------------------------------------------------------------------------------------

    async def keeps(self) -> None:
        """A pod gets a finalizer of somebody else's: it stays when it is deleted."""
        if pod := self.pod(running=True):
            name = pod["metadata"]["name"]
            self.log[-1] += f" {name}"
            self.kept.append((name, uid_of(pod)))
            await self._finalize(name, uid_of(pod), [WAIT])
            self.counts["pods with a finalizer"] += 1

    async def releases(self) -> None:
        if self.kept:
            name, uid = self.kept.pop(self.rng.randrange(len(self.kept)))
            self.log[-1] += f" {name}"
            live = await self.cluster.get(POD, name)
            rest = [f for f in live["metadata"].get("finalizers") or () if f != WAIT]
            await self._finalize(name, uid, rest)

    async def _finalize(self, name: str, uid: str, finalizers: list[str]) -> None:
        try:
            await self.cluster.patch(POD, name, {"metadata": {"uid": uid, "finalizers": finalizers or None}})
        except Invalid as error:
            raise Conflict(error.message) from error

    async def mends(self) -> None:
        while self.kept:
            try:
                await self.releases()
            except (NotFound, Conflict):
                continue
        await super().mends()

    async def interferes(self) -> None:
        workload = self.laws.world.workload
        if workload is None:
            return
        now = asked(workload, 0.0)
        label = {"metadata": {"labels": {names.NAME_LABEL: "mine"}}}
        replicas = {"spec": {"replicas": max(0, now.replicas + self.rng.choice((-1, 1)))}}
        pace = {"maxUnavailable": self.rng.randint(1, 3), "maxSurge": self.rng.randint(0, 2)}
        strategy = {"spec": {"strategy": {"rollingUpdate": pace}}}
        body = self.rng.choice((label, replicas, strategy))
        self.log[-1] += f" {body}"
        answer = await self.cluster.patch(DEPLOYMENT, SET, body)
        self.laws.foreign.add(version_of(answer))
        self.counts["interference"] += 1

    # Rest ---------------------------------------------------------------------------------------------------------

    def unready_groups(self) -> list[Group]:
        return [group for group in self.laws.world.groups().values() if not group.ready]

    async def held(self, mend: bool) -> bool:
        """A group that cannot become ready may hold the rollout; `explain` names it, and it is made anew."""
        laws, world = self.laws, self.laws.world
        assert world.workload is not None
        now, wanted = asked(world.workload, 0.0), laws.now
        self.causes_have_effect()
        assert now.recorded == str(wanted.replicas)
        assert (now.replicas, now.surge) == (wanted.replicas, wanted.surge)
        # Those of a revision that is being replaced are not let in any more, however long that takes.
        waiting = {uid_of(p) for p in world.gated()}
        assert not [p["metadata"]["name"] for p in world.gated() if key_of(p) == now.key]
        groups = world.groups()
        # A lower maxSurge takes nothing away from a rollout that goes on.
        assert len(world.mine()) == laws.total()
        assert all(groups[uid].ready for uid in world.serving()), (groups, world.serving())
        if self.bad:
            self.counts["rests with a template that never becomes ready"] += 1
            return False
        found = await explaining.on_cluster(self.cluster.client, self.cluster.namespace, SET, self.cluster.clock.now())
        unready = self.unready_groups()
        if not unready:
            assert found.state is State.OK, found.paragraph
            self.is_done()
            return False
        where = f"it stays at {groups}, {now}, {wanted}: {found.cause}, {found.paragraph}"
        for group in (g for g in unready if g.uid not in waiting):
            assert group.uid in self.stuck or self.is_bad(world.recorded(group.key)), where
        keys = {group_key(world.pods[group.uid]): group.uid for group in unready}
        assert found.group in keys, where
        self.counts[f"held: {found.cause}"] += 1
        if mend:
            await self.makes_anew(keys[str(found.group)])
        return mend

    def is_done(self) -> None:
        """All groups that are to be are ready and of the newest revision, and no others are there."""
        world, wanted = self.laws.world, self.laws.now
        assert len(world.mine()) == wanted.replicas, [p["metadata"]["name"] for p in world.mine()]
        self.is_updated()
        assert world.lws is not None
        status = world.lws["status"]
        assert status["observedGeneration"] == world.lws["metadata"]["generation"]
        for count in ("replicas", "readyReplicas", "updatedReplicas"):
            assert status.get(count, 0) == wanted.replicas, (count, status)
        assert is_true(world.lws, names.CONDITION_AVAILABLE), status
        assert not is_true(world.lws, names.CONDITION_UPDATE_IN_PROGRESS), status
        keys = {group_key(pod) for pod in world.mine()}
        pods = [p for p in world.pods.values() if labels_of(p).get(names.NAME_LABEL) == SET]
        assert {group_key(p) for p in pods} == keys
        assert len(pods) == wanted.replicas * wanted.size

    def is_updated(self) -> None:
        world = self.laws.world
        assert world.workload is not None
        newest = asked(world.workload, 0.0).key
        groups = world.groups()
        assert len(groups) == self.laws.now.replicas
        assert all(group.ready and group.key == group.workers_key == newest for group in groups.values())
