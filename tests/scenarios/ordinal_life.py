"""A random life of a set in Ordinal mode."""

from __future__ import annotations

import re
from typing import ClassVar

from lwskit.api import names
from lwskit.cli import explaining
from lwskit.runtime.kinds import STATEFUL_SET
from lwskit.runtime.objects import Obj, is_true, version_of
from lwskit.testing.cluster import TestCluster
from tests.scenarios.nodes import Nodes
from tests.scenarios.ordinal_laws import OrdinalLaws
from tests.scenarios.ordinals import asked, stopped, unfinished
from tests.scenarios.random_life import SET, RandomLife
from tests.scenarios.support import Sets
from tests.scenarios.world import History


class OrdinalLife(RandomLife[OrdinalLaws]):
    """A set in Ordinal mode, and everything that may happen to it."""

    kinds: ClassVar[dict[str, int]] = {
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

    def __init__(self, cluster: TestCluster, sets: Sets, seed: int, nodes: Nodes, history: History) -> None:
        super().__init__(cluster, sets, seed, nodes, history, OrdinalLaws(SET))

    def own_edit(self, kind: str) -> Obj:
        if kind != "partition":
            return {}
        return {"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": self.rng.choice((0, 0, 1, 2, 3))}}}

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
        if not (groups[first].ready or world.works(groups[first], now.key)):
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
        assert groups[go_on].ready or world.works(groups[go_on], now.key), where
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

    def is_updated(self) -> None:
        assert self.laws.world.workload is not None
        newest = asked(self.laws.world.workload, 0.0).key
        assert not [*unfinished(self.laws.world.groups(), newest, self.laws.now)]
