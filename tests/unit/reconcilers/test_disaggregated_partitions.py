"""The groups of divided children, as the shared cache has them (specification: 50 §13)."""

from __future__ import annotations

import pytest

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated.model import Ready
from lwskit.disaggregated.subroles.groups import Partition
from lwskit.reconcilers.watches import Watches
from lwskit.runtime.cache.listwatch import Applied, Deleted
from lwskit.runtime.kinds import STATEFUL_SET
from lwskit.runtime.objects import Obj
from tests.unit.reconcilers.test_disaggregated_readiness import (
    World,
    child,
    hashed_leader,
    leader,
    owned,
    pod,
    waiting,
    workload,
)


@pytest.fixture(autouse=True)
def healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The watches are believed to work, although none is open."""
    monkeypatch.setattr(Watches, "healthy", True)


def divided(lws: Obj) -> Obj:
    """The child with counts of sub-roles."""
    lws["metadata"]["annotations"] = {names.SUBROLE_REPLICAS_ANNOTATION: "{}"}
    return lws


def of(subrole: str, obj: Obj) -> Obj:
    """The pod with the label of a sub-role."""
    obj["metadata"]["labels"][names.SUBROLE_LABEL] = subrole
    return obj


def worker(i: int, index: int = 1) -> Obj:
    """A worker of group i in Ordinal mode."""
    return owned(pod(f"c-{i}-{index}", worker_index=str(index), group_index=str(i)), STATEFUL_SET, f"c-{i}", "ws")


def changed(obj: Obj, version: str = "2") -> Obj:
    """A later version of an object."""
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": version}}


def partition(world: World, lws: Obj) -> Partition:
    """What is read of the child's groups."""
    found = world.observer.partitions.of(lws)
    assert found is not None
    return found


def seen(world: World, lws: Obj) -> list[tuple[int, str, bool]]:
    """Ordinal, sub-role and readiness of each group."""
    return [(group.ordinal, group.subrole, group.ready) for group in partition(world, lws).groups]


def test_groups_with_ordinals() -> None:
    lws = divided(child())
    world = World(lws, workload(), [of("a", leader(0)), leader(1, ready=False), leader(2, by="another")])
    assert seen(world, lws) == [(0, "a", True), (1, "", False), (2, "", False)]
    assert [*(partition(world, lws).ordinals or ())] == [0, 1]


def test_a_group_is_ready_with_its_workers() -> None:
    lws = divided(child(1, size=2))
    world = World(lws, workload(1), [of("a", leader(0)), of("a", worker(0))])
    assert seen(world, lws) == [(0, "a", False)], "the workload of its workers is not there"
    assert [len(group.workers) for group in partition(world, lws).groups] == [1]


def test_groups_with_keys() -> None:
    lws = divided(child(hashed=True))
    world = World(lws, workload(), [of("b", hashed_leader(0)), hashed_leader(1, ready=False)])
    assert seen(world, lws) == [(-1, "b", True), (-1, "", False)]
    assert partition(world, lws).ordinals is None


@pytest.mark.parametrize("hashed", [False, True])
def test_without_a_workload_there_are_no_groups(hashed: bool) -> None:
    lws = divided(child(hashed=hashed))
    world = World(lws, None, [leader(0)])
    assert partition(world, lws).groups == ()
    assert (partition(world, lws).ordinals is None) is hashed


def test_a_child_that_is_not_divided_is_not_read() -> None:
    lws = child()
    world = World(lws, workload(), [leader(0)])
    assert world.observer.partitions.of(lws) is None
    assert world.observer.partitions.all_of([lws]) == {}


def test_it_is_read_anew_only_after_something_of_it_has_changed() -> None:
    lws = divided(child())
    world = World(lws, workload(), [leader(0), leader(1)])
    first = partition(world, lws)
    stranger = pod("x-0")
    stranger["metadata"]["labels"] = {}
    world.watches.pods.handle(Applied(stranger))
    assert partition(world, lws) is first
    world.watches.pods.handle(Applied(changed(of("a", leader(0)))))
    assert seen(world, lws) == [(0, "a", True), (1, "", True)]
    world.watches.pods.handle(Deleted(changed(leader(1), "3")))
    assert seen(world, lws) == [(0, "a", True)]
    world.watches.workloads[STATEFUL_SET].handle(Applied(changed(workload(5))))
    assert [*(partition(world, lws).ordinals or ())] == [0, 1, 2, 3, 4]


def test_a_successor_of_the_same_name_is_another_child() -> None:
    lws = divided(child())
    world = World(lws, workload(), [leader(0)])
    assert seen(world, lws)
    other = divided(child())
    other["metadata"]["uid"] = "later"
    assert partition(world, other).groups == (), "the workload is not of this one"


def test_ready_groups_are_told_by_sub_role() -> None:
    lws = divided(child(3))
    pods = [of("a", leader(0)), of("a", leader(1, leaving=True)), of("b", waiting(leader(2, ready=False), 90))]
    found = World(lws, workload(3), pods).observer.of(lws)
    assert found.parts == {"a": Ready(2, 1)}
    assert found.unschedulable_parts == {"b"}


def test_a_leader_that_a_smaller_size_may_cost_is_taken_from_every_sub_role() -> None:
    lws = divided(child(3, hashed=True))
    pods = [of(name, hashed_leader(i)) for i, name in enumerate("aabb")]
    found = World(lws, workload(3), pods).observer.of(lws)
    assert found.parts == {"a": Ready(2, 1), "b": Ready(2, 1)}
