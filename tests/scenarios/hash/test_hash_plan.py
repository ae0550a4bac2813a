"""A plan of a set in Hash mode is what comes to pass: random sets and edits, planned, and then carried out."""

from __future__ import annotations

import contextlib
import os
import random
from typing import Any

import pytest

from lwskit.api import names
from lwskit.cli import planning
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.errors import Forbidden
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import Obj, is_deleting, is_true, uid_of
from lwskit.runtime.ranking import DELETION_COST
from lwskit.simulate import edit as edits
from lwskit.simulate import order as orders
from lwskit.simulate.hashed_rollout import HashStep
from lwskit.simulate.output import text
from lwskit.simulate.report import Report
from lwskit.testing.cluster import ClusterOptions, TestCluster
from tests.scenarios.hash.gating import WAIT
from tests.scenarios.hash.playing import Class, Player, classes, foretold
from tests.scenarios.hash.support import HashSets, is_gated
from tests.scenarios.support import options, pod_template, set_object

SETS = 24
"""Random sets of one run."""
REAL_SETS = 6
"""The same where time is real."""
SEEDS = [int(s) for s in os.environ.get("LWSKIT_PLAN_SEEDS", "0 1").split()]


def held(image: str) -> Obj:
    """A template of pods that are gone when the test says so."""
    return {**pod_template(image, terminationGracePeriodSeconds=0), "metadata": {"finalizers": [WAIT]}}


def random_rolling(rng: random.Random) -> dict[str, Any]:
    surge = rng.choice([0, 0, 1, 2, "50%", "100%"])
    return {"maxSurge": surge, "maxUnavailable": rng.choice([1, 1, 2] if surge == 0 else [0, 1, 2, "25%"])}


def is_alone(name: str) -> bool:
    """Whether the groups of a set are always of one pod: those may be placed exclusively, for no node is played here,
    which workers would wait for."""
    return int(name[1:]) % 2 == 0


def random_set(rng: random.Random, name: str) -> Obj:
    return set_object(
        name,
        replicas=rng.randint(1, 5),
        size=1 if is_alone(name) else rng.choice([1, 2, 2]),
        template=held("img:1"),
        rolloutStrategy={"type": "RollingUpdate", "rollingUpdateConfiguration": random_rolling(rng)},
        groupReplacementPolicy=rng.choice([names.REPLACEMENT_POST_TERMINATION, names.REPLACEMENT_IMMEDIATE]),
        metadata={"namespace": "default"},
        groupIdentity=names.IDENTITY_HASH,
    )


def random_edit(rng: random.Random, lws: Obj) -> Obj:
    """Another manifest of the same set."""
    spec: dict[str, Any] = {**lws["spec"]}
    template = {**spec["leaderWorkerTemplate"]}
    meta = dict(lws["metadata"])
    if rng.random() < 0.7:
        template["workerTemplate"] = held(f"img:{rng.choice('123')}")
    if rng.random() < 0.35:
        spec["replicas"] = rng.randint(0, 6)
    if rng.random() < 0.2:
        spec["rolloutStrategy"] = {"type": "RollingUpdate", "rollingUpdateConfiguration": random_rolling(rng)}
    if rng.random() < 0.2 and not is_alone(meta["name"]):
        template["size"] = rng.choice([1, 2])
    if rng.random() < 0.2:
        spec["groupReplacementPolicy"] = rng.choice([names.REPLACEMENT_POST_TERMINATION, names.REPLACEMENT_IMMEDIATE])
    if rng.random() < 0.25 and is_alone(meta["name"]):
        meta["annotations"] = {names.EXCLUSIVE_TOPOLOGY_ANNOTATION: "rack"}
    spec["leaderWorkerTemplate"] = template
    return {**lws, "metadata": meta, "spec": spec}


@pytest.fixture
def cluster_options() -> ClusterOptions:
    """What is quiet for so long has come to rest; leaders are told apart by seconds."""
    return options(quiet=1.2)


class Play:
    """Random sets on their way."""

    def __init__(self, cluster: TestCluster, seed: int, count: int) -> None:
        self.cluster, self.rng, self.player = cluster, random.Random(seed), Player(cluster)
        self.sets = {f"s{i}": random_set(self.rng, f"s{i}") for i in range(count)}
        self.stuck: dict[str, set[str]] = {}

    def applied(self, live: Obj, name: str) -> Obj:
        meta = {**self.sets[name]["metadata"], "namespace": self.cluster.namespace}
        return edits.applied(live, {**self.sets[name], "metadata": meta})

    async def put(self, name: str) -> None:
        """Store a manifest as `kubectl apply` does."""
        live = await self.cluster.get(LEADER_WORKER_SET, name)
        await self.cluster.client.update(LEADER_WORKER_SET, self.applied(live, name))

    async def begin(self) -> None:
        """Sets that are there: a third in the middle of a rollout, some with groups that are down, stuck, or going."""
        for name, lws in self.sets.items():
            await self.cluster.create(LEADER_WORKER_SET, {**lws, "metadata": {"name": name}})
        await self.player.rest()
        await self.player.remember({})
        while True:
            await self.player.look()
            if not await self.player.round(dict.fromkeys(self.sets, orders.parse(orders.TOGETHER))):
                break
            await self.player.rest()
        for name in self.rng.sample(sorted(self.sets), len(self.sets) // 3):
            self.sets[name] = random_edit(self.rng, self.sets[name])
            with contextlib.suppress(Forbidden):
                await self.put(name)
        for _ in range(self.rng.choice([1, 2, 3])):
            await self.player.rest()
            await self.player.look()
            await self.player.round(dict.fromkeys(self.sets, orders.parse(orders.HIGHEST)))
        await self.player.rest()
        for name, pods in (await self.player.leaders()).items():
            for pod in pods:
                await self.disturb(name, pod)
        await self.player.rest()

    async def disturb(self, name: str, pod: Obj) -> None:
        """Some groups are down, some of them for good, and some are recreated."""
        if is_gated(pod) or is_deleting(pod) or (chance := self.rng.random()) >= 0.2:
            return
        if chance < 0.05:
            await self.cluster.delete(POD, pod["metadata"]["name"])
        elif chance < 0.1:
            conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"}]
            status = {"phase": "Pending", "conditions": conditions}
            await self.cluster.patch(POD, pod["metadata"]["name"], {"status": status}, subresource="status")
            # Otherwise it would be chance whether one that is stuck goes before one that starts.
            cost = {"metadata": {"annotations": {DELETION_COST: "-7"}}}
            await self.cluster.patch(POD, pod["metadata"]["name"], cost)
            self.stuck.setdefault(name, set()).add(uid_of(pod))
        elif is_true(pod, "Ready"):
            await self.cluster.kubelet.unready(pod["metadata"]["name"])

    async def planned(self, ways: dict[str, str]) -> dict[str, Report]:
        """Edit all sets, in the file only, and plan that."""
        found: dict[str, Report] = {}
        for name, order in ways.items():
            before, live = self.sets[name], await self.cluster.get(LEADER_WORKER_SET, name)
            for edit in (random_edit(self.rng, before), before):
                self.sets[name] = edit
                body = self.applied(live, name)
                found[name] = await planning.on_cluster(self.cluster.client, body, order, self.cluster.clock.now())
                if found[name].verdict is not edits.Verdict.REFUSED:
                    # Of no groups no surge is a part.
                    break
        return found

    async def carried_out(self, ways: dict[str, str]) -> dict[str, list[list[Class]]]:
        """Make the edits, and play each to its end: how the groups of each set stood after every event."""
        await self.player.remember(self.stuck)
        for name in self.sets:
            await self.put(name)
        return await self.followed(ways)

    async def followed(self, ways: dict[str, str]) -> dict[str, list[list[Class]]]:
        """Play each set to its end: how its groups stood after every event."""
        choose = {name: orders.parse(order) for name, order in ways.items()}
        found: dict[str, list[list[Class]]] = {name: [] for name in self.sets}
        acted = set(self.sets)
        while acted:
            await self.player.rest()
            seen = await self.player.look()
            for name in acted:
                found[name].append(seen[name])
            acted = await self.player.round(choose)
        return found


def same(step: HashStep, found: list[Class], virtual: bool) -> bool:
    """Whether groups stand as foretold. A leader that comes just when groups go may wait for these or not; where time
    is real, that may be so while others go too."""
    wanted = foretold(step)
    if classes(wanted, gates=False) != classes(found, gates=False):
        return False
    waiting, most = (sum(gated for _, gated, *_ in one) for one in (found, wanted))
    if step.going and not virtual:
        return True
    return most - len(step.either) <= waiting <= most


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_plan_is_what_comes_to_pass(cluster: TestCluster, seed: int) -> None:
    """Step by step, which groups of which template stand where; on a real cluster with fewer sets."""
    play = Play(cluster, seed, SETS if cluster.embedded else REAL_SETS)
    async with play.player.playing():
        await play.begin()
        ways = {
            name: play.rng.choice([orders.HIGHEST, orders.LOWEST, orders.NEVER, "2,1,4"]) for name in sorted(play.sets)
        }
        if cluster.embedded:
            # Groups that become ready at once take a moment to do so where time is real.
            ways |= dict.fromkeys(play.rng.sample(sorted(ways), len(ways) // 4), orders.TOGETHER)
        plans = await play.planned(ways)
        seen = await play.carried_out(ways)
    wrong: dict[str, object] = {}
    for name, report in plans.items():
        told = report.hash_steps or [None]
        if len(told) != len(seen[name]):
            wrong[name] = (f"seed {seed}", len(told), len(seen[name]), seen[name], *text(report))
            continue
        for number, (step, found) in enumerate(zip(told, seen[name], strict=True)):
            # Without steps nothing was to change.
            if step is not None and not same(step, found, cluster.embedded):
                wrong[name] = (f"seed {seed}", number + 1, foretold(step), found, *text(report))
                break
        if any(n.code == "floor-unexpected" for n in report.notices):
            wrong[f"{name} floor"] = ("explained", *text(report))
    assert not wrong, "\n".join(f"{k}: {v}" for k, v in wrong.items())
    outcomes = {r.outcome.value for r in plans.values()}
    # Of the seeds that always run each has both.
    assert outcomes >= ({"done", "stalls"} if cluster.embedded and seed < 2 else {"done"})


@pytest.mark.parametrize("policy", [names.REPLACEMENT_POST_TERMINATION, names.REPLACEMENT_IMMEDIATE])
async def test_a_planned_restart_is_what_comes_to_pass(cluster: TestCluster, sets: HashSets, policy: str) -> None:
    """A pod of a group fails: the next group waits for the pods of this one, or does not."""
    play = Play(cluster, 0, 0)
    async with play.player.playing():
        lws = await sets.running(replicas=3, size=2, template=held("img:1"), groupReplacementPolicy=policy, metadata={})
        group, *_ = (await sets.groups()).values()
        report = await planning.restart_on_cluster(
            cluster.client, group.host, cluster.namespace, "", cluster.clock.now()
        )
        play.sets = {"llm": lws}
        await play.player.remember({})
        await cluster.kubelet.restart_container(group.workers[0]["metadata"]["name"])
        seen = (await play.followed({"llm": orders.LOWEST}))["llm"]
    assert [step.down[0].name if step.down else "" for step in report.hash_steps] == [group.name, "", ""]
    assert report.hash_steps[0].let_in == (() if policy == names.REPLACEMENT_POST_TERMINATION else ("new 1",))
    for number, (step, found) in enumerate(zip(report.hash_steps, seen, strict=True)):
        assert same(step, found, cluster.embedded), (number + 1, foretold(step), found, *text(report))
    assert (report.lowest, report.at_worst, report.outcome.value) == (2, 2, "done")
