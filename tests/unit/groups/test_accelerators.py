"""TPU variables of whole groups: ids and hosts fit together, whatever the group (specification: 10 §10)."""

from __future__ import annotations

import copy
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lwskit.api import names
from lwskit.groups import accelerators, identity, templates
from lwskit.groups.model import DecisionError
from lwskit.runtime.objects import Obj, annotations_of, labels_of

L = names.PREFIX
ASKS = {"limits": {"google.com/tpu": "4"}}


def made(name: str, containers: int, labels: dict[str, str], notes: dict[str, str]) -> Obj:
    """A pod of the group `llm-0` with its identity and variables."""
    before: Obj = {
        "metadata": {
            "name": name,
            "labels": {L + key: value for key, value in {"name": "llm", "group-index": "0", **labels}.items()},
            "annotations": {L + key: value for key, value in {"leader-name": "llm-0", **notes}.items()},
        },
        "spec": {"subdomain": "sub", "containers": [{"name": f"c{i}", "resources": ASKS} for i in range(containers)]},
    }
    kept = copy.deepcopy(before)
    after = accelerators.with_tpu_variables(identity.identified(before, "ns", "b".__mul__))
    assert before == kept
    return after


def group(size: int, lead: bool, containers: int, notes: dict[str, str]) -> list[Obj]:
    """The pods of a group that ask for TPUs: all, or all but the leader."""
    notes = {"size": str(size), **notes}
    pods = [made("llm-0", containers, {"worker-index": "0"}, notes)] if lead else []
    told = {"leader-requests-tpus": "true"} if lead else {}
    return pods + [made(f"llm-0-{w}", containers, {}, {**notes, **told}) for w in range(1, size)]


def tpus(pod: Obj) -> list[dict[str, str]]:
    return [{entry["name"]: entry["value"] for entry in c["env"]} for c in pod["spec"]["containers"] if "env" in c]


def own(pod: Obj) -> str:
    return f"{pod['metadata']['name']}.sub"


@given(st.integers(1, 12), st.booleans(), st.integers(1, 3))
def test_every_container_of_a_group_has_an_id_and_is_listed_there(size: int, lead: bool, containers: int) -> None:
    ids: list[int] = []
    lists: set[tuple[str, str]] = set()
    for pod in group(size, lead, containers, {}):
        found = tpus(pod)
        assert len(found) == containers
        for variables in found:
            number = int(variables["TPU_WORKER_ID"])
            ids.append(number)
            lists.add((variables["TPU_WORKER_HOSTNAMES"], variables["TPU_PROCESS_ADDRESSES"]))
            assert variables["TPU_WORKER_HOSTNAMES"].split(",")[number] == own(pod)
            address = f"{own(pod)}:{variables['TPU_PROCESS_PORT']}"
            assert variables["TPU_PROCESS_ADDRESSES"].split(",")[number] == address
            assert variables["TPU_NAME"] == "llm-0"
    assert ids == list(range((size if lead else size - 1) * containers))
    assert len(lists) == (1 if ids else 0)
    for hostnames, addresses in lists:
        assert len(hostnames.split(",")) == len(addresses.split(",")) == len(ids)
        assert len(set(addresses.split(","))) == len(ids)


shapes = (
    st.tuples(st.integers(1, 24), st.integers(1, 24), st.sampled_from([None, "LeaderWorker", "LeaderExcluded"]))
    .filter(lambda shape: shape[1] <= shape[0])
    .filter(lambda shape: (shape[0] - 1) % shape[1] == 0 or (shape[0] % shape[1] == 0 and shape[2] != "LeaderExcluded"))
)
"""Sizes of group and sub-group and type of policy that the API accepts."""


@given(shapes, st.booleans(), st.integers(1, 2))
def test_every_host_of_a_subgroup_has_an_id_and_is_listed_there(
    shape: tuple[int, int, str | None], lead: bool, containers: int
) -> None:
    size, part, policy = shape
    notes = {"subgroup-size": str(part), **({"subgroup-policy-type": policy} if policy else {})}
    ids: dict[str, list[int]] = defaultdict(list)
    lists: dict[str, set[str]] = defaultdict(set)
    members: dict[str, list[str]] = defaultdict(list)
    for pod in group(size, lead, containers, notes):
        (variables,) = tpus(pod)
        key = labels_of(pod).get(L + "subgroup-key", "the leader alone")
        number = int(variables["TPU_WORKER_ID"])
        ids[key].append(number)
        lists[key].add(variables["TPU_WORKER_HOSTNAMES"])
        members[key].append(own(pod))
        assert variables["TPU_WORKER_HOSTNAMES"].split(",")[number] == own(pod)
    for key, numbers in ids.items():
        assert numbers == list(range(len(numbers)))
        assert lists[key] == {",".join(members[key])}


@given(shapes)
def test_subgroups_share_out_the_workers(shape: tuple[int, int, str | None]) -> None:
    size, part, _ = shape
    counts: dict[int, int] = defaultdict(int)
    for worker in range(1, size):
        index = identity.subgroup_index(size, part, worker)
        found = identity.subgroup_of(size, part, worker)
        assert worker in found
        assert all(identity.subgroup_index(size, part, other) == index for other in found if other)
        counts[index] += 1
    one_too_many = (size - 1) % part == 0 and size % part != 0
    if not one_too_many:
        counts[0] += 1
    assert sorted(counts) == list(range(len(counts)))
    assert set(counts.values()) <= {part} | ({0} if size == 1 else set())
    assert identity.subgroup_index(size, part, 0) == 0


def test_subgroup_size_is_pods_of_a_subgroup() -> None:
    """F59: the sub-group size is how many pods a sub-group has, not how many sub-groups there are."""
    assert [identity.subgroup_index(7, 3, w) for w in range(7)] == [0, 0, 0, 0, 1, 1, 1]


SET: Obj = {
    "apiVersion": names.API_VERSION,
    "kind": names.KIND,
    "metadata": {"name": "llm", "namespace": "ns", "uid": "u"},
    "spec": {
        "leaderWorkerTemplate": {
            "size": 5,
            "workerTemplate": {"spec": {"containers": [{"name": "w", "resources": ASKS}]}},
            "subGroupPolicy": {"subGroupSize": 2, "subGroupPolicyType": "LeaderExcluded"},
        }
    },
}


def leader(**spec: object) -> Obj:
    labels = {L + "name": "llm", L + "group-index": "0", L + "group-key": "k", L + "template-revision-hash": "r"}
    spec = {"hostname": "llm-0", "subdomain": "llm", "containers": [{"name": "c"}], **spec}
    return {"metadata": {"name": "llm-0", "namespace": "ns", "uid": "l", "labels": labels}, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "asks"),
    [
        ({}, False),
        ({"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}]}, False),
        ({"containers": [{"name": "c", "resources": {"limits": {"google.com/tpu": "0"}}}]}, False),
        ({"containers": [{"name": "c"}, {"name": "d", "resources": {"requests": {"google.com/tpu": "4"}}}]}, True),
        ({"initContainers": [{"name": "i", "resources": ASKS}]}, True),
    ],
)
def test_65_workers_are_told_that_their_leader_asks_for_tpus(spec: dict[str, object], asks: bool) -> None:
    notes = annotations_of(templates.group_plan(SET, SET, leader(**spec)).template)
    assert notes.get(L + "leader-requests-tpus") == ("true" if asks else None)


def test_workers_know_that_their_leader_is_excluded() -> None:
    """F61: workers carry the type of the sub-group policy; the leader needs no accelerator and is in no sub-group."""
    notes = annotations_of(templates.group_plan(SET, SET, leader()).template)
    assert notes[L + "subgroup-policy-type"] == "LeaderExcluded"
    told = {key.removeprefix(L): value for key, value in notes.items()}
    indices = [labels_of(made(f"llm-0-{w}", 1, {}, told))[L + "subgroup-index"] for w in range(1, 5)]
    assert indices == ["0", "0", "1", "1"]
    first = made("llm-0", 0, {"worker-index": "0"}, told)
    assert not {L + "subgroup-index", L + "subgroup-key"} & labels_of(first).keys()


def test_an_amount_that_is_no_quantity_is_told() -> None:
    with pytest.raises(DecisionError, match="not a quantity"):
        accelerators.requests_tpus(leader(containers=[{"name": "c", "resources": {"limits": {"google.com/tpu": "x"}}}]))
