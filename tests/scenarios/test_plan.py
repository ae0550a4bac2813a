"""A plan is what comes to pass: random sets and edits, planned and then carried out by the manager, step by step."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
from collections import defaultdict
from typing import Any

import pytest

from lwskit.api import names
from lwskit.cli import explaining, planning
from lwskit.groups.explain import Explanation, State
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.errors import NotFound
from lwskit.runtime.kinds import POD, STATEFUL_SET
from lwskit.runtime.objects import Obj, annotations_of, is_true, labels_of, uid_of
from lwskit.simulate import edit as edits
from lwskit.simulate import order as orders
from lwskit.simulate.output import text
from lwskit.simulate.report import Report
from lwskit.testing.cluster import ClusterOptions, TestCluster
from tests.scenarios.behind import nobody_is_behind
from tests.scenarios.support import Sets, options, pod_template, set_object

SETS = 40
"""Random sets of one run; two runs make the sample."""
REAL_SETS = 8
"""The same where time is real."""
QUIET = 2.0
CAUSES = {
    "held-formula": "formula-hold",
    "held-budget": "no-budget",
    "held-partition": "partition",
    "held-replacing": "replacing",
}
"""What `lwskit explain` says of a set whose plan ended so."""


def random_set(rng: random.Random, name: str) -> Obj:
    surge = rng.choice([0, 0, 1, 2, "50%"])
    rolling = {
        "partition": rng.choice([0, 0, 0, 1, 2]),
        "maxSurge": surge,
        "maxUnavailable": rng.choice([1, 1, 2] if surge == 0 else [0, 1, 2, "25%"]),
    }
    return set_object(
        name,
        replicas=rng.randint(1, 4),
        size=rng.choice([1, 1, 1, 2]),
        rolloutStrategy={"type": "RollingUpdate", "rollingUpdateConfiguration": rolling},
        metadata={"namespace": "default"},
    )


def random_edit(rng: random.Random, lws: Obj) -> Obj:
    """Another manifest of the same set."""
    spec: dict[str, Any] = {**lws["spec"]}
    template = {**spec["leaderWorkerTemplate"]}
    rolling = {**spec["rolloutStrategy"]["rollingUpdateConfiguration"]}
    meta = dict(lws["metadata"])
    if rng.random() < 0.8:
        template["workerTemplate"] = pod_template(f"img:{rng.choice('123')}")
    if rng.random() < 0.3:
        spec["replicas"] = rng.randint(0, 5)
    if rng.random() < 0.2:
        rolling["partition"] = rng.randint(0, 3)
    if rng.random() < 0.15 and "annotations" not in meta:
        template["size"] = rng.choice([1, 2])
    if rng.random() < 0.2 and template["size"] == 1:
        # No node is played here, which workers would wait for.
        meta["annotations"] = {names.EXCLUSIVE_TOPOLOGY_ANNOTATION: "rack"}
    spec |= {"leaderWorkerTemplate": template}
    spec["rolloutStrategy"] = {"type": "RollingUpdate", "rollingUpdateConfiguration": rolling}
    return {**lws, "metadata": meta, "spec": spec}


class Player:
    """Plays the kubelets of many sets: after every quiet moment the next groups of each set become ready."""

    def __init__(self, cluster: TestCluster) -> None:
        self.cluster = cluster
        self.known: dict[str, set[str]] = {}
        self.starting: dict[str, str] = {}

    async def rest(self) -> None:
        """Until nothing changes any more."""
        if self.cluster.embedded:
            await asyncio.sleep(QUIET)
            return
        while True:
            await self.cluster.eventually(lambda: nobody_is_behind(self.cluster))
            await self.cluster.settled(LEADER_WORKER_SET, STATEFUL_SET, POD)
            with contextlib.suppress(AssertionError):
                await nobody_is_behind(self.cluster)
                return

    async def leaders(self) -> dict[str, dict[int, Obj]]:
        found: dict[str, dict[int, Obj]] = defaultdict(dict)
        for pod in await self.cluster.list(POD, f"{names.WORKER_INDEX_LABEL}={names.LEADER_INDEX}"):
            labels = labels_of(pod)
            found[labels[names.NAME_LABEL]][int(labels[names.GROUP_INDEX_LABEL])] = pod
        return found

    async def remember(self) -> None:
        """The leaders that are there now: those that are not ready stay so, but for those of an unfinished rollout."""
        for workload in await self.cluster.list(STATEFUL_SET):
            status = workload["status"]
            if status["currentRevision"] != status["updateRevision"]:
                self.starting[workload["metadata"]["name"]] = status["updateRevision"]
        self.known = {n: {uid_of(p) for p in pods.values()} for n, pods in (await self.leaders()).items()}

    async def ready(self, name: str, leader: Obj) -> None:
        """A whole group, its leader last."""
        size = int(annotations_of(leader)[names.SIZE_ANNOTATION])
        workers = [f"{leader['metadata']['name']}-{i}" for i in range(1, size)]
        # Of several groups of one set, one may be given up when another has become ready.
        with contextlib.suppress(NotFound):
            await self.cluster.kubelet.ready(*workers, leader["metadata"]["name"])

    async def round(self, choose: dict[str, orders.Order]) -> bool:
        """One event for each set; whether there was any."""
        workloads = {w["metadata"]["name"]: w for w in await self.cluster.list(STATEFUL_SET)}
        any_ready = False
        for name, pods in (await self.leaders()).items():
            growing = (workloads[name]["status"]["updateRevision"], self.starting.get(name))
            pending = [i for i, pod in sorted(pods.items()) if self.may_become_ready(name, pod, growing)]
            for i in choose[name](pending) if pending else ():
                await self.ready(name, pods[i])
                any_ready = True
        return any_ready

    def may_become_ready(self, name: str, pod: Obj, growing: tuple[str, str | None]) -> bool:
        made = uid_of(pod) not in self.known.get(name, ())
        return not is_true(pod, "Ready") and (made or labels_of(pod)["controller-revision-hash"] in growing)

    async def play(self, choose: dict[str, orders.Order]) -> None:
        """Until nothing becomes ready any more."""
        while True:
            await self.rest()
            if not await self.round(choose):
                return


def expected(report: Report, workload: Obj) -> list[tuple[int, int, str]]:
    """The states of the leader StatefulSet that the plan goes through."""
    return distinct([written(workload), *((s.partition, s.replicas, s.key) for s in report.steps)])


def written(workload: Obj) -> tuple[int, int, str]:
    rolling = workload["spec"]["updateStrategy"]["rollingUpdate"]
    return rolling.get("partition", 0), workload["spec"]["replicas"], labels_of(workload)[names.REVISION_LABEL]


def distinct(states: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    return [s for i, s in enumerate(states) if i == 0 or s != states[i - 1]]


@pytest.fixture
def cluster_options() -> ClusterOptions:
    """What is quiet for so long has come to rest; on a real cluster some twenty times this long passes."""
    return options(quiet=0.8)


@pytest.mark.parametrize("seed", range(2))
async def test_a_plan_is_what_comes_to_pass(cluster: TestCluster, seed: int) -> None:
    """On a real cluster with fewer sets; and in the end `lwskit explain` says of each what its plan has foretold."""
    rng = random.Random(seed)
    player = Player(cluster)
    count = SETS if cluster.embedded else REAL_SETS
    sets = {f"s{i}": random_set(rng, f"s{i}") for i in range(count)}
    for lws in sets.values():
        await cluster.create(LEADER_WORKER_SET, {**lws, "metadata": {"name": lws["metadata"]["name"]}})
    everything = {name: orders.parse(orders.TOGETHER) for name in sets}
    await player.play(everything)
    # Some are in the middle of a rollout when the edit comes, and some have groups that are down.
    for name in rng.sample(sorted(sets), count // 3):
        sets[name] = random_edit(rng, sets[name])
        await put(cluster, sets[name])
    for _ in range(2):
        await player.rest()
        await player.round({name: orders.parse(orders.HIGHEST) for name in sets})
    await player.rest()
    for pods in (await player.leaders()).values():
        for pod in pods.values():
            if rng.random() < 0.1:
                await cluster.kubelet.unready(pod["metadata"]["name"])
    await player.rest()

    ways = [orders.HIGHEST, orders.LOWEST, orders.TOGETHER, "2,1,4"]
    if not cluster.embedded:
        # Groups that become ready at once take a moment to do so where time is real.
        ways.remove(orders.TOGETHER)
    texts = {name: rng.choice(ways) for name in sets}
    before = {w["metadata"]["name"]: w for w in await cluster.list(STATEFUL_SET)}
    plans: dict[str, Report] = {}
    for name, order in texts.items():
        sets[name] = random_edit(rng, sets[name])
        live = await cluster.get(LEADER_WORKER_SET, name)
        body = edits.applied(live, in_namespace(cluster, sets[name]))
        plans[name] = await planning.on_cluster(cluster.client, body, order, cluster.clock.now())
    await player.remember()
    async with cluster.observe(STATEFUL_SET) as workloads, cluster.observe(POD) as pods:
        for lws in sets.values():
            await put(cluster, lws)
        await player.play({name: orders.parse(order) for name, order in texts.items()})

    wrong: dict[str, tuple[object, object]] = {}
    for name, report in plans.items():
        seen = [written(before[name])]
        seen += [written(c.obj) for c in workloads.changes if c.name == name and c.type != "DELETED"]
        if distinct(seen) != expected(report, before[name]):
            wrong[name] = expected(report, before[name]), distinct(seen)
        made = sorted(int(n.rpartition("-")[2]) for n, count in born(pods, name).items() for _ in range(count))
        if made != sorted(o for step in report.steps for o in step.up):
            wrong[f"{name} made"] = sorted(o for step in report.steps for o in step.up), made
        status = (await cluster.get(LEADER_WORKER_SET, name)).get("status") or {}
        end = report.steps[-1].ready if report.steps else report.ready_before
        if status.get("readyReplicas", 0) != end:
            wrong[f"{name} ready"] = end, status
        if any(n.code == "floor-unexpected" for n in report.notices):
            wrong[f"{name} floor"] = "explained", (*text(report), before[name]["spec"])
        found = await explaining.on_cluster(cluster.client, cluster.namespace, name, cluster.clock.now())
        if not is_what_the_plan_said(found, report):
            wrong[f"{name} explained"] = (report.outcome, report.notices), found
    assert not wrong, "\n".join(f"{k}: {v}" for k, v in wrong.items())
    outcomes = {r.outcome.value for r in plans.values()}
    assert outcomes >= ({"done", "held by the partition", "stalls"} if cluster.embedded else {"done"})
    assert len(outcomes) > 1


def is_what_the_plan_said(found: Explanation, report: Report) -> bool:
    """Whether an explanation of how a set stands fits how its plan ended: the cause, and the group if there is one."""
    ends = {n.code: n.message for n in report.notices if n.code.startswith("held-") or n.code == "not-ready"}
    if not ends:
        return found.state is State.OK
    code, message = next(iter(ends.items()))
    if code in CAUSES:
        told = message in found.paragraph or message[:1].upper() + message[1:] in found.paragraph
        return found.cause == CAUSES[code] and told
    # The plan knows only that a group is waited for; the explanation also what is the matter with its pod.
    groups = [int(n) for n in re.findall(r"\d+", message)]
    return isinstance(found.group, int) and min(groups) <= found.group <= max(groups)


async def planned(cluster: TestCluster, manifest: Obj) -> Report:
    """The plan against the cluster."""
    return await planning.on_cluster(
        cluster.client, in_namespace(cluster, manifest), orders.HIGHEST, cluster.clock.now()
    )


async def test_the_cluster_is_asked_what_it_would_store(cluster: TestCluster, sets: Sets) -> None:
    """A new set, one that is not changed, one that is refused, and one that rolls; nothing is written."""
    new = await planned(cluster, set_object(replicas=2, size=2))
    assert (new.verdict, new.steps[0].up) == (edits.Verdict.CREATES, (0, 1))
    assert await cluster.gone(LEADER_WORKER_SET, "llm")
    await sets.running(replicas=2, size=2)
    await sets.settled()
    before = await sets.live()
    assert (await planned(cluster, set_object(replicas=2, size=2))).verdict is edits.Verdict.NOTHING
    bad = await planned(cluster, set_object(replicas=2, size=0))
    assert bad.verdict is edits.Verdict.REFUSED
    assert "size must be equal or greater than 1" in bad.notices[0].message
    fewer = await planned(cluster, set_object(replicas=2, size=2, image="img:v2"))
    assert (fewer.verdict, fewer.rolled, fewer.lowest) == (edits.Verdict.ROLLS, 2, 1)
    assert await sets.live() == before


def born(pods: Any, name: str) -> dict[str, int]:
    """How often each leader of a set was made."""
    return {
        n: count for n, count in pods.born.items() if n.rpartition("-")[0] == name and n.rpartition("-")[2].isdecimal()
    }


def in_namespace(cluster: TestCluster, lws: Obj) -> Obj:
    return {**lws, "metadata": {**lws["metadata"], "namespace": cluster.namespace}}


async def put(cluster: TestCluster, lws: Obj) -> None:
    """Store a manifest as `kubectl apply` does."""
    live = await cluster.get(LEADER_WORKER_SET, lws["metadata"]["name"])
    await cluster.client.update(LEADER_WORKER_SET, edits.applied(live, in_namespace(cluster, lws)))
