"""Where a rollout stands, and one step of it: for the scenarios that go through rollouts group by group."""

from __future__ import annotations

from lwskit.api import names
from lwskit.runtime.objects import Obj, is_true, labels_of
from tests.scenarios.support import Sets, partition_of, revision_key


async def state(sets: Sets) -> tuple[int, list[str]]:
    """The partition, and for each group its image tag, with a star where its leader is not ready."""
    workload = await sets.leader_workload()
    leaders = [p for p in (await sets.pods()).values() if p["metadata"]["labels"][names.WORKER_INDEX_LABEL] == "0"]
    leaders.sort(key=_index)
    return partition_of(workload), [_short(p) for p in leaders]


def _short(pod: Obj) -> str:
    tag = pod["spec"]["containers"][0]["image"].partition(":")[2]
    return tag + ("" if is_true(pod, "Ready") else "*")


async def reaches(sets: Sets, partition: int, *groups: str) -> None:
    """Wait until the rollout is there, and see that it goes no further."""

    async def there() -> None:
        assert await state(sets) == (partition, list(groups))

    await sets.cluster.eventually(there)
    await sets.cluster.consistently(there)


async def group_ready(sets: Sets, index: int, image: str = "") -> None:
    """Make one group ready, once all its pods are there: with this image if one is given, else with any.

    Pods of the group before may be there for a while, so all have to be of their leader's revision.
    """
    size = (await sets.live())["spec"]["leaderWorkerTemplate"]["size"]

    async def ready() -> None:
        group = {n: p for n, p in (await sets.live_pods()).items() if _index(p) == index}
        assert len(group) == size
        assert len({revision_key(p) for p in group.values()}) == 1
        assert image in ("", *(p["spec"]["containers"][0]["image"] for p in group.values()))
        await sets.cluster.kubelet.ready(*group)

    await sets.cluster.eventually(ready)


def _index(pod: Obj) -> int:
    return int(labels_of(pod)[names.GROUP_INDEX_LABEL])
