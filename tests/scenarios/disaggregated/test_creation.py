"""A new DisaggregatedSet: its mark, its children, their names, labels and owners (specification: 50 §3–§6)."""

from __future__ import annotations

from typing import Any

import pytest

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated.kinds import DISAGGREGATED_SET
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.errors import Conflict, ConnectionFailed, InternalError
from lwskit.runtime.objects import annotations_of, labels_of
from lwskit.testing.cluster import TestCluster
from lwskit.testing.interceptors import matching
from tests.scenarios.disaggregated.support import (
    DisaggregatedSets,
    initial_of,
    own_labels,
    revision_of,
    role,
    written_about,
)
from tests.scenarios.support import pod_template
from tests.scenarios.written import none_failed, nothing_at_rest

MARK = f"patch {names.PLURAL}/chat"
CHILD = "create leaderworkersets"
STATUS = f"update {names.PLURAL}/chat/status"

SAMPLE: dict[str, Any] = {
    "template": {
        "spec": {
            "containers": [
                {
                    "name": "nginx",
                    "image": "nginx:1.27",
                    "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
                }
            ]
        }
    }
}


async def test_each_role_becomes_a_set_of_its_size(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 12: names, replicas 1 and 2, five labels, owner reference, initial-replicas."""
    created = await sets.create()
    await sets.has_children("0/prefill=1", "0/decode=2")
    (revision,) = await sets.revisions()
    for one, count in (("prefill", "1"), ("decode", "2")):
        child = await sets.child(one)
        assert child["metadata"]["name"] == f"chat-0-{revision}-{one}"
        assert labels_of(child) == own_labels(one, revision)
        assert initial_of(child) == count
        (owner,) = child["metadata"]["ownerReferences"]
        assert owner == {
            "apiVersion": "disaggregatedset.x-k8s.io/v1",
            "kind": "DisaggregatedSet",
            "name": "chat",
            "uid": created["metadata"]["uid"],
            "controller": True,
        }


@pytest.mark.undisturbed("it looks at every request")
async def test_the_mark_comes_before_the_children(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 11: the annotation is written first, when there is no child yet; then each child is made once."""
    await sets.running()
    await sets.settled()
    assert annotations_of(await sets.live())[names.REVISION_HASH_VERSION_ANNOTATION] == "v2"
    written = written_about(cluster)
    assert written[:3] == [MARK, CHILD, CHILD]
    assert set(written[3:]) == {STATUS}
    # At first, and as each of three groups is made and gets ready.
    assert len(written[3:]) <= 7
    none_failed(cluster)


@pytest.mark.undisturbed("it counts requests")
async def test_nothing_is_written_about_a_set_at_rest(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 54: given no change, no write; whatever the watches do."""
    await sets.running(role("prefill", 1), role("decode", 2, mode="External"))
    await sets.settled()
    await nothing_at_rest(cluster)


async def test_metadata_of_the_user_and_of_the_controller(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 13: a role's labels and annotations are on its child, a template's on its pods; our own keys win."""
    mine = {"team": "llm", "app": "mine", names.SLICE_LABEL: "7"}
    template = pod_template("img:v1", labels={"tier": "gpu", "app": "mine"})
    template["metadata"]["annotations"] = {"note": "pods"}
    metadata = {"labels": mine, "annotations": {"note": "child", names.SCALE_DOWN_PENDING_ANNOTATION: "true"}}
    await sets.running(role("decode", 1, template=template, metadata=metadata))
    child = await sets.child("decode")
    own = own_labels("decode", revision_of(child))
    assert labels_of(child) == {"team": "llm", **own}
    assert annotations_of(child)["note"] == "child"
    assert names.SCALE_DOWN_PENDING_ANNOTATION not in annotations_of(child)
    (pod,) = await sets.pods()
    assert labels_of(pod) == {**labels_of(pod), "tier": "gpu", **own}
    assert "team" not in labels_of(pod)
    assert annotations_of(pod)["note"] == "pods"


async def test_leaders_and_workers_carry_the_labels(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §3: the labels are on the leader template too where the role has one."""
    group = {"leaderTemplate": pod_template("img:leader", "leader")}
    await sets.running(role("decode", 1, size=2, group=group))
    own = own_labels("decode", revision_of(await sets.child("decode")))
    pods = await sets.pods()
    assert sorted(pod["spec"]["containers"][0]["image"] for pod in pods) == ["img:leader", "img:v1"]
    assert all(labels_of(pod) == {**labels_of(pod), **own} for pod in pods)


async def test_each_slice_has_all_roles(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 14: given slices 2, both slices have all roles with the same revision."""
    await sets.create(slices=2)
    await sets.has_children("0/prefill=1", "0/decode=2", "1/prefill=1", "1/decode=2")
    assert len(await sets.revisions()) == 1


async def test_the_revision_of_the_sample(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 15: given the seed sample, the revision is 69150551."""
    await sets.create(role("prefill", 1, **SAMPLE), role("decode", 2, **SAMPLE), name="nginx-disagg")
    await sets.has_children("0/prefill=1", "0/decode=2", name="nginx-disagg")
    assert await sets.revisions("nginx-disagg") == {"69150551"}


async def test_an_unknown_mark(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 19: given hash version "v9", an error and no writes; once it is mended the set is made."""
    mark = {names.REVISION_HASH_VERSION_ANNOTATION: "v9"}
    await sets.create(metadata={"annotations": mark})

    async def nothing() -> None:
        assert written_about(cluster) == []

    await cluster.consistently(nothing)
    await sets.patch({"metadata": {"annotations": {names.REVISION_HASH_VERSION_ANNOTATION: "v2"}}})
    await sets.has_children("0/prefill=1", "0/decode=2")


WRITES = [
    ("PATCH", r"/disaggregatedsets/chat$"),
    ("POST", r"/leaderworkersets$"),
    ("POST", r"/disaggregatedsetrolescalers$"),
    ("PATCH", r"/disaggregatedsetrolescalers/chat-decode/status$"),
    ("PUT", r"/disaggregatedsets/chat/status$"),
]


@pytest.mark.parametrize("error", [InternalError("boom"), ConnectionFailed("reset"), Conflict("busy")])
@pytest.mark.parametrize("lost", [False, True], ids=["fails", "is lost"])
async def test_any_write_may_fail(cluster: TestCluster, sets: DisaggregatedSets, lost: bool, error: Exception):
    """50 §18: each write is tried again, whether the server has done its part before the answer got lost or not."""
    interceptor = cluster.interceptors[0]
    for what in WRITES:
        (interceptor.lose if lost else interceptor.fail)(matching(*what), error, times=2)
    await sets.running(role("prefill", 1), role("decode", 9, mode="External"))
    await sets.has_children("0/prefill=1", "0/decode=1")
    assert sorted(await sets.scalers()) == ["chat-decode"]

    async def tried() -> None:
        for what in WRITES:
            # Where only the answer got lost, the watch tells that the write was one.
            assert interceptor.count(matching(*what)) >= (1 if lost else 3), what

    await cluster.eventually(tried)


async def test_a_child_that_the_cache_does_not_show_is_found(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §18: a creation that meets a child of our own has succeeded."""
    interceptor = cluster.interceptors[0]
    interceptor.lose(matching("POST", r"/leaderworkersets$"), InternalError("boom"), times=2)
    with interceptor.hold_watches():
        await sets.create()
    await sets.ready()
    assert sorted((await sets.sizes()).values()) == [1, 2]


async def test_children_are_collected_with_their_set(cluster: TestCluster, sets: DisaggregatedSets):
    """50 §23 line 24: given a deletion of the set, children and scalers are collected; none is made anew."""
    await sets.running(role("prefill", 1), role("decode", 2, mode="External"))
    for propagation in ("Background", "Foreground"):
        await cluster.delete(DISAGGREGATED_SET, "chat", propagation)

        async def gone() -> None:
            assert await sets.all_children() == {}
            assert await sets.scalers() == {}
            assert await cluster.names(DISAGGREGATED_SET) == []

        await cluster.eventually(gone)
        if propagation == "Background":
            await sets.running(role("prefill", 1), role("decode", 2, mode="External"))
    made = [line for line in written_about(cluster) if line == CHILD]
    assert len(made) == 4
    assert await cluster.names(LEADER_WORKER_SET) == []
