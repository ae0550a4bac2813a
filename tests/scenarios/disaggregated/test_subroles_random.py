"""Random lives of a divided role: counts, names and images change, pods go and break, whatever is under way (50 §13).

LWSKIT_REPEAT says how many are lived, LWSKIT_SEED with which seed they begin.
"""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from lwskit.api import disaggregated_names as names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import annotations_of, is_deleting, labels_of
from lwskit.testing.cluster import TestCluster
from lwskit.testing.observer import Change
from tests.scenarios.disaggregated.support import KINDS, DisaggregatedSets, replicas_of, role, rolling
from tests.scenarios.disaggregated.test_subroles import HASH, assigned, divided, resize
from tests.scenarios.life import seeds

STEPS = 12

pytestmark = pytest.mark.virtual_only("minutes of a set's life")


class Life:
    """One set, and what happens to it."""

    def __init__(self, cluster: TestCluster, sets: DisaggregatedSets, seed: int) -> None:
        self.cluster, self.sets, self.rng = cluster, sets, random.Random(seed)
        self.hashed = self.rng.random() < 0.4
        self.size = self.rng.choice((1, 2))
        self.images = 1
        self.wanted = self.counts()

    def counts(self) -> dict[str, int]:
        """Other sub-roles, one to three of them."""
        chosen = self.rng.sample("abcd", self.rng.randint(1, 3))
        found = {name: self.rng.randint(0, 4) for name in chosen}
        return found if any(found.values()) else {**found, chosen[0]: 1}

    async def begin(self) -> None:
        """The set, with a role that is not divided beside the one that is."""
        spec = {**rolling(self.rng.choice((1, 2, "50%")), self.rng.choice((0, 1))), **(HASH if self.hashed else {})}
        first = role("prefill", 3, size=self.size, spec=spec) if self.rng.random() < 0.3 else None
        one = first or divided(size=self.size, spec=spec, **self.wanted)
        await self.sets.running(one, role("decode", 2, spec=rolling(1, 0)))
        if first:
            await resize(self.sets, **self.wanted)

    async def step(self) -> None:
        """Something happens."""
        match self.rng.randrange(8):
            case 0 | 1 | 2:
                self.wanted = self.counts()
                await resize(self.sets, **self.wanted)
            case 3:
                self.images += 1
                await self.sets.set_image(f"img:v{self.images}")
            case 4:
                if (pod := await self.pod()) is not None:
                    await self.cluster.delete(POD, pod)
            case 5:
                if (pod := await self.pod()) is not None:
                    await self.cluster.kubelet.unready(pod)
            case 6:
                if (pod := await self.pod()) is not None:
                    label = self.rng.choice((None, "a", "stranger"))
                    await self.cluster.patch(POD, pod, {"metadata": {"labels": {names.SUBROLE_LABEL: label}}})
            case _:
                async with self.cluster.kubelet.playing():
                    await self.cluster.clock.sleep(self.rng.uniform(0, 6))
        await self.cluster.clock.sleep(self.rng.choice((0.0, 0.1, 1.5, 4.0)))

    async def pod(self) -> str | None:
        """Any pod of the divided role."""
        found = [
            p for p in await self.sets.pods() if labels_of(p)[names.ROLE_LABEL] == "prefill" and not is_deleting(p)
        ]
        return self.rng.choice(sorted(p["metadata"]["name"] for p in found)) if found else None


def check(change: Change) -> None:
    """The counts always add up, in every version of a child."""
    notes = annotations_of(change.obj)
    issued = notes.get(names.SUBROLE_REPLICAS_ANNOTATION)
    if issued is not None:
        assert sum(json.loads(issued).values()) == replicas_of(change.obj), change.name
        initial = notes.get(names.INITIAL_REPLICAS_ANNOTATION)
        assert sum(json.loads(notes[names.INITIAL_SUBROLE_REPLICAS_ANNOTATION]).values()) == int(initial or -1)


@pytest.mark.parametrize("seed", seeds(3))
async def test_a_life(cluster: TestCluster, sets: DisaggregatedSets, seed: int) -> None:
    """Whatever happened, in the end there is one revision, and each sub-role has its groups."""
    life = Life(cluster, sets, seed)
    async with cluster.observe(LEADER_WORKER_SET) as children:
        await life.begin()
        for _ in range(STEPS):
            await life.step()

        async def ended() -> None:
            assert len(await sets.children()) == 2
            wanted = {name: count for name, count in life.wanted.items() if count}
            assert await assigned(sets) == await _rows(sets) == wanted
            assert names.SUBROLE_PLAN_ANNOTATION not in annotations_of(await sets.child("prefill"))
            pods = await sets.pods()
            assert not [pod for pod in pods if names.SUBROLE_VICTIM_ANNOTATION in annotations_of(pod)]

        async with cluster.kubelet.playing():
            await cluster.eventually(ended, timeout=600)
            await cluster.settled(*KINDS)
            await sets.ready()
            await ended()
        for change in children.changes:
            check(change)


async def _rows(sets: DisaggregatedSets) -> Counter[str]:
    found: Counter[str] = Counter()
    for name, row in (await sets.rows()).items():
        if name.startswith("prefill/"):
            found[name.partition("/")[2]] = row.get("readyReplicas", 0)
    return +found
