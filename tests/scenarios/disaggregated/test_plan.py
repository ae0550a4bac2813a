"""A plan is what comes to pass: random DisaggregatedSets and edits, planned and then carried out by the manager."""

from __future__ import annotations

import copy
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence

import pytest

from lwskit.api import disaggregated_names as names
from lwskit.api import names as base
from lwskit.cli import disaggregated_planning, explaining
from lwskit.disaggregated.kinds import DISAGGREGATED_SET
from lwskit.groups.explanation import State
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import Obj, annotations_of, is_deleting, is_true, labels_of
from lwskit.simulate import order as orders
from lwskit.simulate.disaggregated_output import text
from lwskit.simulate.disaggregated_report import Report
from lwskit.simulate.disaggregated_world import Write
from lwskit.simulate.edit import applied
from lwskit.simulate.report import Outcome
from lwskit.testing.cluster import TestCluster
from lwskit.testing.observer import Observer
from tests.scenarios.disaggregated.support import DisaggregatedSets, role, rolling, set_object, two_roles
from tests.scenarios.support import pod_template

SETS = 6
"""Random sets of one run."""
REAL_SETS = 4
"""The same where time is real."""
ROLES = ("prefill", "decode", "encode")
QUIET = 3.0
"""Seconds without a change of any child after which nothing more is expected: the manager looks each second."""


# Sets and edits -------------------------------------------------------------------------------------------------------


def random_role(rng: random.Random, name: str, *, paused: bool = False) -> Obj:
    surge = rng.choice([0, 0, 1, 2, "50%"])
    unavailable = rng.choice([1, 1, 2] if surge == 0 else [0, 1, 2, "25%"])
    spec = {**rolling(surge, unavailable), "groupIdentity": rng.choice(["Ordinal", "Ordinal", "Hash"])}
    return role(name, 0 if paused else rng.randint(1, 5), size=rng.choice([1, 1, 1, 2]), spec=spec)


def random_set(rng: random.Random, name: str) -> Obj:
    roles = [random_role(rng, one) for one in ROLES[: rng.choice([1, 2, 2, 2, 3])]]
    policy = {"duringRollout": rng.choice(names.SCALING_POLICIES)}
    return set_object(*roles, name=name, slices=rng.choice([1, 1, 1, 2]), scalingPolicy=policy)


def random_edit(rng: random.Random, ds: Obj) -> Obj:
    """Another manifest of the same set."""
    ds = copy.deepcopy(ds)
    roles: list[Obj] = ds["spec"]["roles"]
    if rng.random() < 0.75:
        (container,) = rng.choice(roles)["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"]
        container["image"] = f"img:{rng.randint(2, 5)}"
    if rng.random() < 0.35:
        rng.choice(roles)["spec"]["replicas"] = rng.randint(1, 5)
    if rng.random() < 0.15:
        for one in roles:
            one["spec"] |= rolling(rng.choice([1, 2]), rng.choice([0, 1]))
    if rng.random() < 0.15 and len(roles) < len(ROLES):
        unused = next(name for name in ROLES if name not in {r["name"] for r in roles})
        roles.append(random_role(rng, unused))
    elif rng.random() < 0.15 and len(roles) > 1:
        roles.remove(rng.choice(roles))
    if rng.random() < 0.1:
        ds["spec"]["slices"] = rng.choice([1, 2])
    if rng.random() < 0.05:
        for one in roles:
            one["spec"]["replicas"] = 0
    return ds


# Playing --------------------------------------------------------------------------------------------------------------


class Player:
    """Plays the kubelets: after every quiet moment groups become ready as a plan has assumed."""

    def __init__(self, cluster: TestCluster) -> None:
        self.cluster = cluster

    async def rest(self) -> None:
        """Until the manager asks for nothing more."""

        async def asked() -> list[tuple[str, str, int, bool]]:
            children = await self.cluster.list(LEADER_WORKER_SET)
            pods = await self.cluster.list(POD)
            return [
                (o["metadata"]["uid"], o["metadata"]["name"], o["spec"].get("replicas", 0), is_deleting(o))
                for o in (*children, *pods)
            ]

        quiet, last = 0.0, await asked()
        while quiet < QUIET:
            await self.cluster.clock.sleep(1.0)
            now = await asked()
            quiet, last = (quiet + 1.0, last) if now == last else (0.0, now)

    async def unready(self) -> dict[str, list[Obj]]:
        """The leaders of groups that are not ready and stay, by the name of their DisaggregatedSet."""
        found: dict[str, list[Obj]] = defaultdict(list)
        for pod in await self.cluster.list(POD, f"{base.WORKER_INDEX_LABEL}={base.LEADER_INDEX}"):
            if not is_deleting(pod) and not is_true(pod, "Ready"):
                found[labels_of(pod)[names.NAME_LABEL]].append(pod)
        return found

    async def ready(self, leader: Obj) -> None:
        """A whole group, its leader last."""
        labels = labels_of(leader)
        group = f"{base.NAME_LABEL}={labels[base.NAME_LABEL]},{base.GROUP_INDEX_LABEL}={labels[base.GROUP_INDEX_LABEL]}"
        pods = await self.cluster.list(POD, group)
        assert len(pods) == int(annotations_of(leader)[base.SIZE_ANNOTATION])
        workers = sorted(p["metadata"]["name"] for p in pods if p["metadata"]["name"] != leader["metadata"]["name"])
        await self.cluster.kubelet.ready(*workers)
        name = leader["metadata"]["name"]

        async def led() -> None:
            await self.cluster.kubelet.ready(name)
            assert is_true(await self.cluster.get(POD, name), "Ready")

        # In Hash mode a leader is ready once its gate is open, which takes the manager a moment.
        await self.cluster.eventually(led)

    async def play(self, ways: dict[str, Iterator[str]]) -> None:
        """Until nothing becomes ready any more. Each way tells what becomes ready next: all groups of a set, or one."""
        while True:
            await self.rest()
            going = False
            for name, leaders in (await self.unready()).items():
                chosen = meant(next(ways[name], ""), leaders)
                for leader in chosen:
                    await self.ready(leader)
                going = going or bool(chosen)
            if not going:
                return


ALL = "all"


def meant(event: str, leaders: Sequence[Obj]) -> list[Obj]:
    """The leaders that an event is about. A plan does not know the names that a Deployment gives: then it is the one
    of that child that has waited longest."""
    if event == ALL:
        return [*leaders]
    name = event.removesuffix(" is ready")
    exactly = [pod for pod in leaders if pod["metadata"]["name"] == name]
    of_child = [pod for pod in leaders if name.startswith(f"{labels_of(pod)[base.NAME_LABEL]}-")]
    oldest = sorted(of_child, key=lambda pod: pod["metadata"]["creationTimestamp"])
    return exactly or oldest[:1]


def everything() -> Iterator[str]:
    """All groups become ready, time and again."""
    while True:
        yield ALL


def as_planned(report: Report) -> Iterator[str]:
    """What becomes ready, as the plan has it: each is a step of its own, whatever follows from it."""
    return (step.after for step in report.steps if step.after.endswith(" is ready"))


# What came to pass ----------------------------------------------------------------------------------------------------


def writes(seen: Observer, before: Sequence[Obj], name: str) -> dict[str, list[Write]]:
    """What was asked of the children of a set, in order, by slice."""
    sizes = {c["metadata"]["uid"]: c["spec"]["replicas"] for c in before}
    going = {c["metadata"]["uid"] for c in before if is_deleting(c)}
    found: dict[str, list[Write]] = defaultdict(list)
    for change in seen.changes:
        labels = labels_of(change.obj)
        if labels.get(names.NAME_LABEL) != name or change.uid in going:
            continue
        index, replicas = labels[names.SLICE_LABEL], change.obj["spec"]["replicas"]
        if is_deleting(change.obj) or change.type == "DELETED":
            going.add(change.uid)
            found[index].append(Write(change.name, None))
        elif sizes.get(change.uid) != replicas:
            sizes[change.uid] = replicas
            found[index].append(Write(change.name, replicas))
    return found


def foretold(report: Report, name: str) -> dict[str, list[Write]]:
    """The same as the plan has it."""
    found: dict[str, list[Write]] = defaultdict(list)
    for write in report.writes:
        found[write.child.removeprefix(f"{name}-").partition("-")[0]].append(write)
    return found


def lowest(
    seen: Observer, pods: Sequence[Obj], name: str, places: Sequence[tuple[int, str]]
) -> dict[tuple[int, str], int]:
    """The fewest ready groups of these roles in these slices, at any moment."""
    ready: dict[str, tuple[int, str]] = {}
    least: dict[tuple[int, str], int] = {}

    def place(pod: Obj) -> tuple[int, str]:
        return int(labels_of(pod)[names.SLICE_LABEL]), labels_of(pod)[names.ROLE_LABEL]

    def take(pod: Obj, gone: bool) -> None:
        if labels_of(pod).get(names.NAME_LABEL) != name or labels_of(pod).get(base.WORKER_INDEX_LABEL) != "0":
            return
        uid = pod["metadata"]["uid"]
        if gone or is_deleting(pod) or not is_true(pod, "Ready"):
            ready.pop(uid, None)
        else:
            ready[uid] = place(pod)

    for pod in pods:
        take(pod, False)
    for change in (None, *seen.changes):
        if change is not None:
            take(change.obj, change.type == "DELETED")
        for key in places:
            count = sum(one == key for one in ready.values())
            least[key] = min(least.get(key, count), count)
    return least


BETWEEN = "where time is real, the manager may look while groups that were given up are still on their way out"


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.virtual_only(BETWEEN))])
async def test_a_plan_is_what_comes_to_pass(cluster: TestCluster, seed: int) -> None:
    rng, player = random.Random(seed), Player(cluster)
    count = SETS if cluster.embedded else REAL_SETS
    sets = {f"s{i}": random_set(rng, f"s{i}") for i in range(count)}
    for ds in sets.values():
        await cluster.create(DISAGGREGATED_SET, ds)
    await player.play({name: everything() for name in sets})
    # Some are in the middle of a rollout when the edit comes.
    for name in rng.sample(sorted(sets), count // 2):
        sets[name] = random_edit(rng, sets[name])
        await put(cluster, sets[name])
    for _ in range(2):
        await player.rest()
        for leaders in (await player.unready()).values():
            await player.ready(rng.choice(leaders))
    await player.rest()

    plans: dict[str, Report] = {}
    # Several that become ready at once take a moment to do so, and the manager may look in between.
    choices = [orders.LOWEST, orders.LOWEST, orders.HIGHEST, orders.NEVER]
    ways = {name: choices[i % len(choices)] for i, name in enumerate(sets)}
    for name, way in ways.items():
        sets[name] = random_edit(rng, sets[name])
        if way == orders.NEVER:
            (first, *_) = sets[name]["spec"]["roles"]
            first["spec"]["leaderWorkerTemplate"]["workerTemplate"] = pod_template("img:never")
            for one in sets[name]["spec"]["roles"]:
                one["spec"]["replicas"] = max(1, one["spec"]["replicas"])
        body = await manifest(cluster, sets[name])
        plans[name] = await disaggregated_planning.on_cluster(cluster.client, body, way, cluster.clock.now())
    before, pods = await cluster.list(LEADER_WORKER_SET), await cluster.list(POD)
    async with cluster.observe(LEADER_WORKER_SET) as children, cluster.observe(POD) as groups:
        for ds in sets.values():
            await put(cluster, ds)
        await player.play({name: as_planned(plans[name]) for name in sets})

    wrong: dict[str, tuple[object, object]] = {}
    for name, report in plans.items():
        seen, wanted = writes(children, before, name), foretold(report, name)
        if seen != wanted:
            wrong[name] = "\n".join(text(report)), (dict(wanted), dict(seen))
        low = {(one.slice, part.role): one.ready for part, one in report.lowest.items()}
        least = lowest(groups, pods, name, [*low])
        if least != low:
            wrong[f"{name} lowest"] = low, least
        told = await explaining.on_cluster(
            cluster.client, cluster.namespace, name, cluster.clock.now(), DISAGGREGATED_SET
        )
        if (told.state is State.OK) is not (report.outcome is Outcome.DONE):
            wrong[f"{name} explained"] = told, "\n".join(text(report))
    assert not wrong, "\n\n".join(f"{k}: {v[0]}\n{v[1]}" for k, v in wrong.items())
    if cluster.embedded:
        assert {r.outcome for r in plans.values()} == {Outcome.DONE, Outcome.STALLED}
    assert any(len(report.steps) > 6 for report in plans.values())


async def put(cluster: TestCluster, ds: Obj) -> None:
    await cluster.patch(DISAGGREGATED_SET, ds["metadata"]["name"], {"spec": ds["spec"]})


async def manifest(cluster: TestCluster, ds: Obj) -> Obj:
    """What applying the manifest would send."""
    live = await cluster.get(DISAGGREGATED_SET, ds["metadata"]["name"])
    return applied(live, {**ds, "metadata": {**ds["metadata"], "namespace": cluster.namespace}})


async def test_the_table_of_the_specification(cluster: TestCluster, sets: DisaggregatedSets) -> None:
    """50 §9 r01: 4:2 with surge 1 and unavailable 0, as `plan` tells it."""
    await sets.running(*two_roles(4, 2, spec=rolling(1, 0)))
    ds = set_object(*two_roles(4, 2, spec=rolling(1, 0), image="img:v2"))
    report = await disaggregated_planning.on_cluster(
        cluster.client, await manifest(cluster, ds), "", cluster.clock.now()
    )
    told = [tuple((count.old, count.new) for count in step.counts.values()) for step in report.steps]
    assert told[:3] == [((4, 0), (2, 0)), ((4, 1), (2, 1)), ((3, 1), (1, 1))]
    assert told[-1] == ((0, 4), (0, 2))
    assert {str(part): low.ready for part, low in report.lowest.items()} == {"prefill": 4, "decode": 2}
    assert report.outcome is Outcome.DONE
