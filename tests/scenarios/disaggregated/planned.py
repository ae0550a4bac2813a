"""Plans against what comes to pass: readiness as a plan has it, and what was then asked of the children of a set."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from lwskit.api import disaggregated_names as names
from lwskit.api import names as base
from lwskit.cli import disaggregated_planning, explaining
from lwskit.disaggregated.kinds import DISAGGREGATED_SET
from lwskit.disaggregated.model import Part
from lwskit.groups import spec
from lwskit.groups.explanation import State
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import Obj, annotations_of, is_deleting, is_true, labels_of
from lwskit.simulate.disaggregated_output import text
from lwskit.simulate.disaggregated_report import Report
from lwskit.simulate.disaggregated_rollout import Place
from lwskit.simulate.disaggregated_world import Write
from lwskit.simulate.edit import applied
from lwskit.simulate.report import Outcome
from lwskit.testing.cluster import TestCluster
from lwskit.testing.observer import Observer
from tests.scenarios.behind import nobody_is_behind
from tests.scenarios.disaggregated.support import rolling

QUIET = 2.5
"""Seconds without a change of any child after which nothing more is expected: the manager looks each second."""
LOOK = 0.5
"""Seconds between two looks at what there is."""


# Sets and edits -------------------------------------------------------------------------------------------------------


def random_pace(rng: random.Random, surge: int | str) -> Obj:
    """A rollout strategy with this surge, and as many groups down as it leaves to choose from."""
    return rolling(surge, rng.choice([1, 1, 2] if surge == 0 else [0, 1, 2, "25%"]))


def random_image(rng: random.Random, roles: Sequence[Obj], last: int) -> None:
    """Another image for one of the roles, of those from `img:2` to the last."""
    (container,) = rng.choice(roles)["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"]
    container["image"] = f"img:{rng.randint(2, last)}"


# Playing --------------------------------------------------------------------------------------------------------------


class Player:
    """Plays the kubelets: after every quiet moment groups become ready as a plan has assumed."""

    def __init__(self, cluster: TestCluster) -> None:
        self.cluster = cluster

    async def rest(self) -> None:
        """Until the manager asks for nothing more, and each child has the pods that it asks for."""
        quiet, last = 0.0, None
        while quiet < QUIET:
            await self.cluster.clock.sleep(LOOK)
            if not self.cluster.embedded:
                await self.cluster.eventually(lambda: nobody_is_behind(self.cluster))
            children, pods = await self.cluster.list(LEADER_WORKER_SET), await self.cluster.list(POD)
            now = [
                (o["metadata"]["uid"], o["metadata"]["name"], o["spec"].get("replicas", 0), is_deleting(o))
                for o in (*children, *pods)
            ]
            quiet = quiet + LOOK if now == last and has_all(children, pods) else 0.0
            last = now

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


def has_all(children: Sequence[Obj], pods: Sequence[Obj]) -> bool:
    """Whether each child has the pods that it asks for, and none is on its way out.

    It may have more: a child of which many groups are not ready keeps those of its own surge.
    """
    there = Counter(labels_of(pod)[base.NAME_LABEL] for pod in pods)
    wanted = Counter({c["metadata"]["name"]: spec.replicas(c) * spec.size(c) for c in children})
    return not any(map(is_deleting, (*children, *pods))) and wanted <= there and there.keys() <= wanted.keys()


ALL = "all"


def meant(event: str, leaders: Sequence[Obj]) -> list[Obj]:
    """The leaders that an event is about. A plan does not know the names that a Deployment gives, nor how many pods are
    there when sub-roles are handed out: then it is the one of that child and sub-role that has waited longest."""
    if event == ALL:
        return [*leaders]
    name, _, subrole = event.removesuffix(" is ready").partition(" of sub-role ")
    of_child = [pod for pod in leaders if name.startswith(f"{labels_of(pod)[base.NAME_LABEL]}-")]
    alike = [pod for pod in of_child if labels_of(pod).get(names.SUBROLE_LABEL, "") == subrole]
    exactly = [pod for pod in alike if pod["metadata"]["name"] == name]
    oldest = sorted(alike, key=lambda pod: pod["metadata"]["creationTimestamp"])
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
    asked = {c["metadata"]["uid"]: Write.of(c) for c in before}
    going = {c["metadata"]["uid"] for c in before if is_deleting(c)}
    found: dict[str, list[Write]] = defaultdict(list)
    for change in seen.changes:
        labels = labels_of(change.obj)
        if labels.get(names.NAME_LABEL) != name or change.uid in going:
            continue
        index, now = labels[names.SLICE_LABEL], Write.of(change.obj)
        if is_deleting(change.obj) or change.type == "DELETED":
            going.add(change.uid)
            found[index].append(Write(change.name, None))
        elif asked.get(change.uid) != now:
            asked[change.uid] = now
            found[index].append(now)
    return found


def foretold(report: Report, name: str) -> dict[str, list[Write]]:
    """The same as the plan has it."""
    found: dict[str, list[Write]] = defaultdict(list)
    for write in report.writes:
        found[write.child.removeprefix(f"{name}-").partition("-")[0]].append(write)
    return found


def told(found: Mapping[str, Sequence[Write]], before: Sequence[Obj]) -> dict[str, list[Write]]:
    """Writes in an order that a plan can tell.

    Children that shrink in one step, and whose groups lose their sub-roles first, do so each when it is through with
    that: among these the order is that of their names.
    """
    sizes = {c["metadata"]["name"]: spec.replicas(c) for c in before}
    ordered: dict[str, list[Write]] = {}
    for index, written in found.items():
        ordered[index], shrinking = [], list[Write]()
        for write in written:
            shrinks = bool(write.subroles) and (write.replicas or 0) < sizes.get(write.child, 0)
            sizes[write.child] = write.replicas or 0
            if shrinks:
                shrinking.append(write)
                continue
            ordered[index] += [*sorted(shrinking, key=lambda one: one.child), write]
            shrinking.clear()
        ordered[index] += sorted(shrinking, key=lambda one: one.child)
    return ordered


def lowest(seen: Observer, pods: Sequence[Obj], name: str, places: Sequence[Place]) -> dict[Place, int]:
    """The fewest ready groups of these parts in these slices, at any moment."""
    ready: dict[str, Place] = {}
    least: dict[Place, int] = {}

    def place(pod: Obj) -> Place:
        labels = labels_of(pod)
        slice, role, subrole = labels[names.SLICE_LABEL], labels[names.ROLE_LABEL], labels.get(names.SUBROLE_LABEL, "")
        return Place(int(slice), Part(role, subrole))

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
            # A role that is not divided has all groups, also those that still have the label of a sub-role.
            whole = not key.part.subrole
            there = [Place(one.slice, Part(one.part.role)) if whole else one for one in ready.values()]
            count = there.count(key)
            least[key] = min(least.get(key, count), count)
    return least


async def put(cluster: TestCluster, ds: Obj) -> None:
    await cluster.patch(DISAGGREGATED_SET, ds["metadata"]["name"], {"spec": ds["spec"]})


async def manifest(cluster: TestCluster, ds: Obj) -> Obj:
    """What applying the manifest would send."""
    live = await cluster.get(DISAGGREGATED_SET, ds["metadata"]["name"])
    return applied(live, {**ds, "metadata": {**ds["metadata"], "namespace": cluster.namespace}})


async def carried_out(
    player: Player, sets: Mapping[str, Obj], ways: Mapping[str, str]
) -> tuple[dict[str, Report], list[str]]:
    """Plans these manifests, each in its order of readiness, and has them carried out. The plans, and what of them did
    not come to pass: the counts asked of children, the lowest capacity, whether it came to an end."""
    cluster, plans = player.cluster, dict[str, Report]()
    for name, ds in sets.items():
        body = await manifest(cluster, ds)
        plans[name] = await disaggregated_planning.on_cluster(cluster.client, body, ways[name], cluster.clock.now())
    before, pods = await cluster.list(LEADER_WORKER_SET), await cluster.list(POD)
    async with cluster.observe(LEADER_WORKER_SET) as children, cluster.observe(POD) as groups:
        for ds in sets.values():
            await put(cluster, ds)
        await player.play({name: as_planned(plans[name]) for name in sets})

    wrong: list[str] = []
    for name, report in plans.items():
        found: dict[str, tuple[object, object]] = {}
        found["writes"] = told(foretold(report, name), before), told(writes(children, before, name), before)
        low = {Place(one.slice, part): one.ready for part, one in report.lowest.items()}
        found["lowest"] = low, lowest(groups, pods, name, [*low])
        explained = await explaining.on_cluster(
            cluster.client, cluster.namespace, name, cluster.clock.now(), DISAGGREGATED_SET
        )
        found["ends well"] = report.outcome is Outcome.DONE, explained.state is State.OK
        different = [f"{what}: foretold {a}\nseen {b}" for what, (a, b) in found.items() if a != b]
        wrong += ["\n".join((*text(report), *different))] if different else []
    return plans, wrong
