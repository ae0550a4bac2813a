"""An explanation is found for every state of a set, and is consistent with what is there."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from lwskit.cli.explaining import as_data
from lwskit.groups.explain import State, explain
from lwskit.runtime.objects import Obj
from tests.unit.groups.small_cluster import LEADERS, NOW, WORKERS
from tests.unit.simulate.scenes import scene_of, small
from tests.unit.simulate.test_plan import edits, settings_of_sets
from tests.unit.simulate.test_rollout import edited

few = st.sets(st.integers(0, 4))


@settings(max_examples=60, deadline=None)
@given(settings_of_sets, edits, st.integers(0, 4), few, few, st.booleans())
def test_every_state_is_explained(
    wanted: tuple[int, int, int, int, int],
    edit: Obj,
    progress: int,
    down: set[int],
    gone: set[int],
    seen: bool,
) -> None:
    replicas, unavailable, surge, partition, size = wanted
    cluster = small(
        replicas, size, maxUnavailable=unavailable or (0 if surge else 1), maxSurge=surge, partition=partition
    )
    cluster.lws = edited(cluster.lws, **edit)
    cluster.settle()
    for _ in range(progress):
        unready = [i for i, p in sorted(cluster.leaders.items()) if p["status"]["phase"] != "Running"]
        if unready:
            cluster.make_ready(unready[-1])
            cluster.settle()
    cluster.make_ready(*(i for i in down if i in cluster.leaders), ready=False)
    for i in gone:
        cluster.remove(i)
    if seen:
        cluster.settle()
    found = explain(scene_of(cluster), LEADERS, WORKERS, NOW)
    assert found.sentences
    assert all(s.endswith(".") for s in found.sentences)
    assert not any(s.endswith(("..", "!.")) for s in found.sentences)
    json.dumps(as_data(found))
    ready = all(p["status"]["phase"] == "Running" for p in cluster.leaders.values())
    if found.state is State.OK:
        assert ready
    if found.group is not None and found.pod:
        assert found.pod.startswith(f"x-{found.group}")
