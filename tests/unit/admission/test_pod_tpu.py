"""The TPU variables that admission adds (specification: 10 §10; lines 91–98)."""

from __future__ import annotations

from typing import Any

import pytest

from lwskit.api import names
from lwskit.runtime.objects import Obj, labels_of
from tests.unit.admission.pods import L, admit, denied, env_of, hash_leader, leader, pod, worker
from tests.unit.admission.reviews import ask

ORDER = ["TPU_WORKER_HOSTNAMES", "TPU_WORKER_ID", "TPU_NAME", "TPU_PROCESS_ADDRESSES", "TPU_PROCESS_PORT"]
OURS = ["LWS_LEADER_ADDRESS", "LWS_GROUP_SIZE", "LWS_WORKER_INDEX"]
LEAD = {"leader-requests-tpus": "true"}


def container(name: str = "c", env: list[Obj] | None = None, **resources: Any) -> Obj:
    """A container that asks for TPUs, or for what it is told."""
    found: Obj = {"name": name, "resources": resources or {"limits": {"google.com/tpu": "4"}}}
    if env is not None:
        found["env"] = env
    return found


def asking(obj: Obj, *containers: Obj, **spec: Any) -> Obj:
    """The pod with these containers, one that asks if none are told, in the subdomain `default`."""
    return {**obj, "spec": {"subdomain": "default", "containers": list(containers) or [container()], **spec}}


def tpus(obj: Obj, where: str = "containers") -> list[dict[str, str]]:
    """The TPU variables of each container."""
    return [{name: value for name, value in env if name.startswith("TPU_")} for env in env_of(obj, where)]


def hosts(*names_of_hosts: str) -> str:
    return ",".join(f"{name}.default" for name in names_of_hosts)


def variables(listed: list[str], id: int, name: str, port: int = 8476) -> dict[str, str]:
    return {
        "TPU_WORKER_HOSTNAMES": hosts(*listed),
        "TPU_WORKER_ID": str(id),
        "TPU_NAME": name,
        "TPU_PROCESS_ADDRESSES": ",".join(f"{host}.default:8476" for host in listed),
        "TPU_PROCESS_PORT": str(port),
    }


BOTH = ["test-sample-0", "test-sample-0-1"]


@pytest.mark.parametrize(
    ("obj", "listed", "id"),
    [
        (leader("test-sample-0", {"size": "2"}), BOTH, 0),
        (worker("test-sample-0-1", {"size": "2", **LEAD}), BOTH, 1),
        (worker("test-sample-0-1", {"size": "2"}), BOTH[1:], 0),
        (worker("test-sample-0-1", {"size": "2", "leader-requests-tpus": "false"}), BOTH[1:], 0),
    ],
)
def test_91_hosts_of_a_group(obj: Obj, listed: list[str], id: int) -> None:
    assert tpus(admit(asking(obj))) == [variables(listed, id, "test-sample-0")]


def test_91_two_containers_of_a_leader() -> None:
    """F62: each container that asks for TPUs gets the variables, and no other."""
    made = admit(asking(leader("test-sample-0", {"size": "2"}), container("c1"), {"name": "plain"}, container("c2")))
    first, plain, second = tpus(made)
    assert plain == {}
    twice = [host for host in BOTH for _ in range(2)]
    assert first["TPU_WORKER_HOSTNAMES"] == second["TPU_WORKER_HOSTNAMES"] == hosts(*twice)
    addresses = ",".join(f"{host}.default:{port}" for host in BOTH for port in (8476, 8477))
    assert first["TPU_PROCESS_ADDRESSES"] == second["TPU_PROCESS_ADDRESSES"] == addresses
    assert [(c["TPU_WORKER_ID"], c["TPU_PROCESS_PORT"]) for c in (first, second)] == [("0", "8476"), ("1", "8477")]


def test_91_two_containers_of_a_worker() -> None:
    made = admit(asking(worker("test-sample-0-1", {"size": "2", **LEAD}), container("c1"), container("c2")))
    assert [c["TPU_WORKER_ID"] for c in tpus(made)] == ["2", "3"]


@pytest.mark.parametrize(
    ("name", "size", "part", "index", "notes", "id", "listed"),
    [
        ("test-sample-1-3", 5, 5, 0, LEAD, 3, [0, 1, 2, 3, 4]),
        ("test-sample-1-7", 8, 4, 1, LEAD, 3, [4, 5, 6, 7]),
        ("test-sample-1-5", 9, 4, 1, {}, 0, [5, 6, 7, 8]),
        ("test-sample-0-2", 3, 2, 0, {"subgroup-policy-type": "LeaderExcluded"}, 1, [1, 2]),
        ("prefill-0-1", 2, 1, 1, {}, 0, [1]),
        ("prefill-0-1", 2, 1, 1, LEAD, 0, [1]),
    ],
)
def test_91_hosts_of_a_workers_subgroup(
    name: str, size: int, part: int, index: int, notes: dict[str, str], id: int, listed: list[int]
) -> None:
    made = admit(asking(worker(name, {"size": str(size), "subgroup-size": str(part), **notes})))
    parent = name.rpartition("-")[0]
    assert labels_of(made)[L + "subgroup-index"] == str(index)
    assert tpus(made) == [variables([f"{parent}-{i}" if i else parent for i in listed], id, parent)]


def test_91_hosts_of_a_leaders_subgroup() -> None:
    made = admit(asking(leader("test-sample-1", {"size": "8", "subgroup-size": "4"})))
    listed = ["test-sample-1", "test-sample-1-1", "test-sample-1-2", "test-sample-1-3"]
    assert tpus(made) == [variables(listed, 0, "test-sample-1")]


def test_91_a_hash_leader_is_known_by_its_host_name() -> None:
    for notes, count in (({}, 4), ({"subgroup-size": "2"}, 2)):
        made = admit(asking(hash_leader(notes)))
        host = made["spec"]["hostname"]
        assert tpus(made) == [variables([host, *(f"{host}-{i}" for i in range(1, count))], 0, host)]


def test_91_an_excluded_leader_that_asks_has_its_hosts_for_itself() -> None:
    notes = {"size": "5", "subgroup-size": "2", "subgroup-policy-type": "LeaderExcluded"}
    assert tpus(admit(asking(leader("test-1", notes)))) == [variables(["test-1"], 0, "test-1")]
    for index, listed in ((1, [1, 2]), (2, [1, 2]), (3, [3, 4]), (4, [3, 4])):
        made = admit(asking(worker(f"test-1-{index}", {**notes, **LEAD})))
        assert tpus(made) == [variables([f"test-1-{i}" for i in listed], listed.index(index), "test-1")]


def test_91_the_first_subgroup_with_one_more_pod_has_one_more_host() -> None:
    notes = {"size": "5", "subgroup-size": "2"}
    listed = ["test-1", "test-1-1", "test-1-2"]
    assert tpus(admit(asking(leader("test-1", notes)))) == [variables(listed, 0, "test-1")]
    for index, host in enumerate(listed[1:], 1):
        assert tpus(admit(asking(worker(host, {**notes, **LEAD})))) == [variables(listed, index, "test-1")]
    assert tpus(admit(asking(worker("test-1-4", {**notes, **LEAD})))) == [
        variables(["test-1-3", "test-1-4"], 1, "test-1")
    ]


def test_91_no_host_is_listed_that_does_not_exist() -> None:
    notes = {"size": "4", "subgroup-size": "2"}
    for index, listed in ((1, [1]), (2, [2, 3]), (3, [2, 3])):
        made = admit(asking(worker(f"test-1-{index}", notes)))
        assert tpus(made) == [variables([f"test-1-{i}" for i in listed], listed.index(index), "test-1")]


def test_91_variables_follow_those_of_the_user_in_their_order() -> None:
    env = [{"name": "A", "value": "$(LWS_LEADER_ADDRESS)"}, {"name": "TPU_NAME", "value": "mine"}]
    made = admit(asking(leader(), container(env=env)))
    (found,) = env_of(made)
    expected = [*OURS, "A", "TPU_NAME", *(name for name in ORDER if name != "TPU_NAME")]
    assert [name for name, _ in found] == expected
    assert ("TPU_NAME", "mine") in found


def test_92_pods_of_no_set_get_none() -> None:
    obj = asking(leader())
    del obj["metadata"]["labels"]
    assert ask(names.MUTATE_POD_PATH, obj).patch == []


@pytest.mark.parametrize("amount", [None, "0", 0, "0.0"])
def test_92_no_tpus_are_no_tpus(amount: Any) -> None:
    made = admit(asking(leader(), container(limits={"google.com/tpu": amount}, requests={"google.com/tpu": amount})))
    assert tpus(made) == [{}]


@pytest.mark.parametrize(
    "resources",
    [
        {"requests": {"google.com/tpu": "4"}},
        {"limits": {"google.com/tpu": "0"}, "requests": {"google.com/tpu": "1"}},
        {"limits": None, "requests": {"google.com/tpu": 4}},
        {"limits": {"google.com/tpu": 4.0}},
    ],
)
def test_93_requests_count_too(resources: Obj) -> None:
    assert list(tpus(admit(asking(leader(), container(**resources))))[0]) == ORDER


def test_93_init_containers_count_too() -> None:
    made = admit(asking(leader("test-1", {"size": "2"}), {"name": "plain"}, initContainers=[container("i")]))
    assert tpus(made) == [{}]
    assert tpus(made, "initContainers") == [variables(["test-1", "test-1-1"], 0, "test-1")]


def test_93_init_containers_are_counted_after_the_others() -> None:
    made = admit(asking(leader("test-1", {"size": "1"}), container(), initContainers=[container("i")]))
    assert tpus(made)[0]["TPU_WORKER_ID"] == "0"
    assert tpus(made, "initContainers")[0]["TPU_WORKER_ID"] == "1"
    assert tpus(made, "initContainers")[0]["TPU_PROCESS_PORT"] == "8477"


@pytest.mark.parametrize("name", ["TPU_WORKER_ID", "TPU_WORKER_HOSTNAMES"])
@pytest.mark.parametrize("notes", [{}, {"subgroup-size": "2"}])
def test_94_what_the_user_decided_is_left_alone(name: str, notes: dict[str, str]) -> None:
    first = container("c1", [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}])
    made = admit(asking(leader(annotations=notes), {"name": "plain"}, first, container("c2")))
    assert [list(found) for found in tpus(made)] == [[], [name], []]


def test_94_only_the_first_container_that_asks_is_looked_at() -> None:
    second = container("c2", [{"name": "TPU_WORKER_ID", "value": "9"}])
    made = admit(asking(leader(annotations={"size": "1"}), container("c1"), second))
    assert [found["TPU_WORKER_ID"] for found in tpus(made)] == ["0", "9"]


@pytest.mark.parametrize(
    ("obj", "host"),
    [
        (leader("test-1", {"size": "1"}), "test-1"),
        (worker("test-1-1", {"size": "2", "subgroup-size": "1"}), "test-1-1"),
    ],
)
def test_95_the_users_port_counts(obj: Obj, host: str) -> None:
    port = [{"name": "TPU_PROCESS_PORT", "value": "9000"}]
    (found,) = tpus(admit(asking(obj, container(env=port))))
    assert found["TPU_PROCESS_PORT"] == "9000"
    assert found["TPU_PROCESS_ADDRESSES"] == f"{host}.default:9000"
    assert [name for name, _ in env_of(admit(asking(obj, container(env=port))))[0]].count("TPU_PROCESS_PORT") == 1


def test_95_a_port_that_is_not_known_yet_is_left_out_of_addresses() -> None:
    port = [{"name": "TPU_PROCESS_PORT", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}}]
    made = admit(asking(leader("test-1", {"size": "1"}), container(env=port)))
    assert tpus(made)[0]["TPU_PROCESS_ADDRESSES"] == "test-1.default:"
    assert port[0] in made["spec"]["containers"][0]["env"]


def test_96_with_subgroups_only_the_first_container_that_asks_changes() -> None:
    containers = [{"name": "plain"}, container("c1"), container("c2")]
    made = admit(asking(leader("test-1", {"subgroup-size": "2"}), *containers))
    assert [list(found) for found in tpus(made)] == [[], ORDER, []]
    assert tpus(made)[1] == variables(["test-1", "test-1-1"], 0, "test-1")


@pytest.mark.parametrize(
    ("obj", "text"),
    [
        (worker(annotations={"subgroup-size": "two"}), "subgroup-size of pod test-1-1 is 'two': invalid syntax"),
        (leader(annotations={"subgroup-size": "two"}), "subgroup-size of pod test-1 is 'two': invalid syntax"),
        (pod("test-1", {"worker-index": "0", "subgroup-index": "x"}, {"subgroup-size": "2"}), "invalid syntax"),
        (pod("test-1-1", {"subgroup-index": "x"}, {"subgroup-size": "2"}), "subgroup-index of pod test-1-1 is 'x'"),
        (pod("-1", {"group-index": "0"}), "parsing parent name from pod -1"),
        (worker("test"), "parsing pod ordinal for pod test"),
    ],
)
def test_97_what_cannot_be_read_is_denied(obj: Obj, text: str) -> None:
    assert text in denied(asking(obj))


@pytest.mark.parametrize("amount", ["many", "9" * 5000, "1e", True])
def test_97_an_amount_that_is_none_is_denied(amount: Any) -> None:
    message = denied(asking(leader(), container(limits={"google.com/tpu": amount})))
    assert message.startswith("google.com/tpu of pod test-1 is ")
    assert message.endswith(", not a quantity")
    assert len(message) < 100


def test_97_a_list_of_hosts_that_nothing_could_store_is_denied() -> None:
    obj = asking(leader(annotations={"size": str(2**31 - 1)}))
    assert denied(obj) == "the 2147483647 TPU hosts of pod test-1 are too many to be listed in variables"
    assert len(tpus(admit(asking(leader(annotations={"size": "4096"}))))[0]["TPU_WORKER_HOSTNAMES"].split(",")) == 4096


def test_98_a_group_of_its_leader_alone() -> None:
    for notes in ({}, {"subgroup-size": "1"}):
        made = admit(asking(leader("test-1", {"size": "1", **notes})))
        assert tpus(made) == [variables(["test-1"], 0, "test-1")]


@pytest.mark.parametrize("notes", [{}, {"subgroup-size": "2"}])
def test_pods_with_tpus_that_were_admitted_stay_as_they_are(notes: dict[str, str]) -> None:
    for obj in (leader("test-1", notes), worker("test-1-2", notes), hash_leader(notes)):
        once = admit(asking(obj, container("c1"), container("c2"), initContainers=[container("i")]))
        assert ask(names.MUTATE_POD_PATH, once).patch == []
