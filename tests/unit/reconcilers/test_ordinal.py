"""What is observed of a set in Ordinal mode (specification: 20 §2)."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

from lwskit.backends.registry import find
from lwskit.groups.model import SetSnapshot
from lwskit.reconcilers.ordinal import OrdinalReconciler
from lwskit.reconcilers.watches import Watches
from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.cache.listwatch import Replace
from lwskit.runtime.client.client import Client
from lwskit.runtime.kinds import STATEFUL_SET
from lwskit.runtime.objects import Obj
from lwskit.runtime.request import Request
from lwskit.testing.scripted import Script
from lwskit.testing.virtual import VirtualClock
from tests.unit.groups.small_cluster import SmallCluster, make_lws, settled


def seen(cluster: SmallCluster, *, workload: bool = True, **changed: Any) -> SetSnapshot:
    """What is observed of the cluster's set; `changed` are fields of the metadata of leader 1."""
    leaders = copy.deepcopy(cluster.leaders)
    leaders[1]["metadata"] |= changed
    made = Watches(Cache(Client(Script()), VirtualClock(), random.Random(1)), find())
    made.sets.handle(Replace([cluster.lws], "1"))
    made.pods.handle(Replace([*leaders.values()], "1"))
    live: list[Obj] = [cluster.workload] if workload and cluster.workload is not None else []
    made.workloads[STATEFUL_SET].handle(Replace(live, "1"))
    reconciler = OrdinalReconciler(made, object(), VirtualClock())  # type: ignore[arg-type]
    return reconciler.observe(Request("ns", "x", "LeaderWorkerSet"), {})


@pytest.mark.parametrize(
    ("changed", "known"),
    [
        ({}, True),
        ({"ownerReferences": []}, False),
        ({"ownerReferences": [], "deletionTimestamp": "2026-10-20T10:00:00Z"}, True),
        ({"ownerReferences": [], "name": "other-1"}, True),
    ],
    ids=["all owned", "one to be taken over", "one that goes", "one that is no leader of this set"],
)
async def test_the_groups_are_not_known_while_leaders_are_to_be_taken_over(changed: Obj, known: bool) -> None:
    found = seen(settled(make_lws(replicas=2, size=1)), **changed)
    assert found.known is known
    assert found.left == ()


async def test_without_a_leader_workload_it_is_looked_which_leaders_are_left() -> None:
    cluster = settled(make_lws(replicas=2, size=1))
    assert [p["metadata"]["name"] for p in seen(cluster, workload=False).left] == ["x-0", "x-1"]
    going = seen(cluster, workload=False, deletionTimestamp="2026-10-20T10:00:00Z")
    assert [p["metadata"]["name"] for p in going.left] == ["x-0"]
