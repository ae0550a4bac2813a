"""A random life of a set with a restart budget (specification: 20 §12, 30 §11)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lwskit.api import names
from lwskit.groups.gates import is_gated
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.errors import NotFound
from lwskit.runtime.kinds import POD, STATEFUL_SET
from lwskit.runtime.objects import Obj, annotations_of, is_deleting, labels_of
from lwskit.testing.cluster import TestCluster
from tests.scenarios.budgets import FINALIZER, counts
from tests.scenarios.life import Life
from tests.scenarios.support import Sets

STEPS = 25
MOST = 3
MOST_GROUPS = 4


def is_kept(pod: Obj) -> bool:
    return FINALIZER in pod["metadata"].get("finalizers", ())


def is_marked(pod: Obj) -> bool:
    return annotations_of(pod).get(names.GROUP_RESTART_BUDGET_EXHAUSTED_ANNOTATION) == "true"


def group_of(pod: Obj) -> str:
    return labels_of(pod).get(names.GROUP_INDEX_LABEL, "")


class BudgetLife(Life):
    """What happens to one set, and the causes there are for a group to be made anew."""

    def __init__(self, cluster: TestCluster, sets: Sets, seed: int) -> None:
        super().__init__(cluster, sets, seed)
        self.causes: Counter[str] = Counter()
        self.image = 1
        self.replicas = 2

    async def pod(self) -> str:
        pods = [name for name, pod in (await self.sets.live_pods()).items() if not is_gated(pod)]
        return self.rng.choice(sorted(pods)) if pods else ""

    def index_of(self, name: str) -> str:
        """What the group of a pod is counted under."""
        return name.split("-")[1]

    def whole_set(self) -> Sequence[str]:
        """What all groups that may be there are counted under, each once."""
        return [str(i) for i in range(MOST_GROUPS)]

    def is_leaders(self, name: str) -> bool:
        """Whether that is the name of a leader."""
        return name.count("-") == 1

    async def claimed(self) -> set[str]:
        """The groups that a count may be of."""
        return {str(i) for i in range(self.replicas)}

    async def step(self) -> None:
        actions = (
            self.loses,
            self.loses,
            self.fails,
            self.fails,
            self.fails,
            self.recovers,
            self.recovers,
            self.is_updated,
            self.is_scaled,
            self.is_limited,
            self.changes_managers,
            self.cuts,
            self.breaks,
            self.loses_answers,
        )
        action = self.rng.choice(actions)
        self.log.append(action.__name__)
        await action()
        await self.cluster.clock.sleep(self.rng.choice((0.0, 0.1, 1.0, 3.0)))

    async def loses(self) -> None:
        if name := await self.pod():
            self.causes[self.index_of(name)] += 1
            await self.cluster.delete(POD, name)

    async def fails(self) -> None:
        if name := await self.pod():
            self.causes[self.index_of(name)] += 1
            await self.cluster.kubelet.restart_container(name)

    async def recovers(self) -> None:
        for name, pod in (await self.sets.pods()).items():
            if is_marked(pod):
                self.causes[self.index_of(name)] += 1
                await self.cluster.patch(POD, name, {"metadata": {"annotations": {names.RECOVER_ANNOTATION: "true"}}})
                return

    async def is_updated(self) -> None:
        self.image += 1
        self.causes.update(self.whole_set())
        await self.sets.set_image(f"img:v{self.image}")

    async def is_scaled(self) -> None:
        self.replicas = self.rng.choice((1, 2, 3))
        self.causes.update(self.whole_set())
        await self.sets.scale(self.replicas)

    async def is_limited(self) -> None:
        backoff = self.rng.choice((None, {"baseSeconds": 1, "capSeconds": 4}))
        body = {"maxGroupRestarts": self.rng.choice((0, 1, MOST)), "restartBackoff": backoff}
        await self.sets.patch({"spec": {"leaderWorkerTemplate": body}})

    async def whole(self) -> None:
        """At rest every kept pod is of a marked leader, and a marked group is terminated and kept whole."""
        await self.sets.settled()
        pods = await self.sets.pods()
        marked = {group_of(p) for p in pods.values() if is_marked(p)}
        for name, pod in pods.items():
            assert is_kept(pod) == (group_of(pod) in marked), (name, pod["metadata"], marked)
            assert is_deleting(pod) == (group_of(pod) in marked), (name, pod["metadata"], marked)
        found = await counts(self.sets)
        assert all(0 < count <= MOST for count in found.values()), found
        assert found.keys() <= await self.claimed(), found


async def live(life: BudgetLife) -> None:
    """Live it to its end: no group is restarted more often than there are causes, and none is stuck."""
    cluster, sets = life.cluster, life.sets
    async with life.lived():
        await life.begin()
        pace = {"rollingUpdateConfiguration": {"maxUnavailable": 3}}
        await sets.running(size=2, group={"maxGroupRestarts": 1}, rolloutStrategy=pace)
        async with cluster.observe(POD) as observer, cluster.kubelet.playing():
            for _ in range(STEPS):
                try:
                    await life.step()
                except NotFound:
                    # The pod was replaced between the look and the act.
                    continue
            await life.calm()
            await life.whole()
            for _ in range(20):
                marked = [n for n, p in (await sets.pods()).items() if is_marked(p)]
                if not marked:
                    break
                await life.recovers()
                await cluster.clock.sleep(2)
            live = await sets.ready()
            await life.whole()
            assert live["status"]["updatedReplicas"] == life.replicas
        made: Counter[str] = Counter()
        for name, births in observer.born.items():
            if life.is_leaders(name):
                made[life.index_of(name)] += births
        assert all(count <= life.causes[index] for index, count in made.items()), (made, life.causes)
        await cluster.delete(LEADER_WORKER_SET, "llm")

        async def nothing_left() -> None:
            assert await sets.pods() == {}
            assert await cluster.names(STATEFUL_SET) == []

        await cluster.eventually(nothing_left)
