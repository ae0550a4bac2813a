"""Admission of pods whose groups are known by a key (specification: 10 §8.3, §8.4, §8.7, 30 §5; lines 82–86)."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from lwskit.admission.webhooks import handlers
from lwskit.api import names
from lwskit.runtime.objects import Obj, annotations_of, labels_of
from tests.unit.admission.pods import L, admit, denied, env_of, far, hash_leader, leader, near, pod, sha1, terms, worker
from tests.unit.admission.reviews import ask

GATE = {"name": "leaderworkerset.sigs.k8s.io/group-replacement"}
COST = "controller.kubernetes.io/pod-deletion-cost"
LOW = "0123456789abcdef"


def key_of_group(obj: Obj) -> str:
    return labels_of(obj)[L + "group-key"]


def test_82_a_hash_leader_gets_key_and_host_name() -> None:
    made = admit(hash_leader(), "infer")
    key = key_of_group(made)
    assert re.fullmatch("[0-9a-f]{40}", key)
    assert labels_of(made)[L + "group-index"] == key
    assert made["spec"]["hostname"] == f"test-{key[:8]}"
    assert made["spec"]["subdomain"] == "test"
    assert env_of(made)[0][0] == ("LWS_LEADER_ADDRESS", f"test-{key[:8]}.test.infer")
    assert "name" not in made["metadata"]


def test_82_the_key_is_of_the_namespace_and_sixteen_random_characters() -> None:
    found = handlers(random.Random(7))[names.MUTATE_POD_PATH]
    drawn = "".join(random.Random(7).choices("bcdfghjklmnpqrstvwxz2456789", k=16))
    response = found({"operation": "CREATE", "namespace": "infer", "object": hash_leader()})
    assert {
        "op": "add",
        "path": f"/metadata/labels/{(L + 'group-key').replace('/', '~1')}",
        "value": sha1(f"infer/{drawn}"),
    } in response["patch"]


def test_82_a_host_name_that_is_there_stays() -> None:
    made = admit(hash_leader(hostname="mine"))
    assert made["spec"]["hostname"] == "mine"
    assert env_of(made)[0][0][1] == "mine.test.ns"


def test_83_two_leaders_of_a_set_have_different_keys() -> None:
    keys = {key_of_group(admit(hash_leader())) for _ in range(50)}
    assert len(keys) == 50


@pytest.mark.parametrize("index", ["", LOW, "5" * 40])
def test_83_a_key_that_the_template_has_is_not_taken(index: str) -> None:
    obj = hash_leader()
    obj["metadata"]["labels"] |= {L + "group-key": "5" * 40, L + "group-index": index}
    made = admit(obj)
    assert key_of_group(made) == labels_of(made)[L + "group-index"] != "5" * 40
    assert key_of_group(made) != key_of_group(admit(obj))


def test_84_subgroup_keys_are_of_the_group_key() -> None:
    notes = {"subgroup-size": "2", "subgroup-exclusive-topology": "host", "exclusive-topology": "rack"}
    made = admit(hash_leader(notes))
    key = key_of_group(made)
    sub = sha1(f"{key}/0")
    assert (labels_of(made)[L + "subgroup-index"], labels_of(made)[L + "subgroup-key"]) == ("0", sub)
    assert terms(made, "podAffinity") == [near("group-key", key, "rack"), near("subgroup-key", sub, "host")]
    assert terms(made, "podAntiAffinity") == [far("group-key", key, "rack"), far("subgroup-key", sub, "host")]

    notes |= {"group-identity": "Hash", "leader-name": "test-7d9f8b6c4-x2x4z"}
    for index, expected in enumerate(("0", "1", "1"), 1):
        obj = worker(f"test-{key[:8]}-{index}", notes)
        obj["metadata"]["labels"] |= {L + "group-key": key, L + "group-index": key}
        member = admit(obj)
        assert labels_of(member)[L + "worker-index"] == str(index)
        assert labels_of(member)[L + "subgroup-index"] == expected
        assert labels_of(member)[L + "subgroup-key"] == sha1(f"{key}/{expected}")


def test_84_an_excluded_hash_leader_is_in_no_subgroup() -> None:
    made = admit(hash_leader({"subgroup-size": "3", "subgroup-policy-type": "LeaderExcluded"}))
    assert not {L + "subgroup-index", L + "subgroup-key"} & labels_of(made).keys()


def test_85_a_subdomain_of_its_own_is_the_host_name() -> None:
    made = admit(hash_leader({"subdomainPolicy": "UniquePerReplica"}))
    host = made["spec"]["hostname"]
    assert made["spec"]["subdomain"] == host == f"test-{key_of_group(made)[:8]}"
    assert env_of(made)[0][0][1] == f"{host}.{host}.ns"


@pytest.mark.parametrize("size", ["1", "4"])
def test_86_a_hash_leader_waits_behind_the_gate(size: str) -> None:
    made = admit(hash_leader({"size": size}))
    assert made["spec"]["schedulingGates"] == [GATE]
    assert annotations_of(made)[COST] == "-100"


def test_86_gates_and_costs_of_others_stay() -> None:
    obj = hash_leader(schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])
    obj["metadata"]["annotations"][COST] = "7"
    made = admit(obj)
    assert made["spec"]["schedulingGates"] == [{"name": "kueue.x-k8s.io/admission"}, GATE]
    assert annotations_of(made)[COST] == "7"


def test_86_workers_and_leaders_with_ordinals_do_not_wait() -> None:
    for obj in (leader(), worker(), worker("test-0a1b2c3d-1", {"group-identity": "Hash"}), pod("test-0")):
        obj["metadata"]["labels"].setdefault(L + "group-index", "1")
        made = admit(obj)
        assert "schedulingGates" not in made["spec"]
        assert COST not in annotations_of(made)


@pytest.mark.parametrize(
    ("level", "waits"), [("replica", True), ("true", True), ("role", True), ("lws", False), ("", False)]
)
def test_86_leaders_whose_group_is_scheduled_together_wait(level: str, waits: bool) -> None:
    made = admit(leader(annotations={"workload-aware-scheduling": level}))
    assert made["spec"].get("schedulingGates", []) == ([GATE] if waits else [])
    assert COST not in annotations_of(made)
    assert "schedulingGates" not in admit(worker(annotations={"workload-aware-scheduling": level}))["spec"]


@pytest.mark.parametrize(
    "notes",
    [
        {},
        {"subgroup-size": "2", "subgroup-exclusive-topology": "host", "exclusive-topology": "rack"},
        {"subdomainPolicy": "UniquePerReplica"},
    ],
)
@pytest.mark.parametrize("spec", [{}, {"hostname": "mine"}, {"schedulingGates": [{"name": "a/b"}]}])
def test_a_hash_leader_that_is_asked_about_again_keeps_all_that_it_got(
    notes: dict[str, str], spec: dict[str, Any]
) -> None:
    """30 §18 line 14: key, host name and terms are those of the first time."""
    resources = {"limits": {"google.com/tpu": "4"}}
    once = admit(hash_leader(notes, containers=[{"name": "c", "resources": resources}], **spec))
    assert ask(names.MUTATE_POD_PATH, once).patch == []


def test_a_hash_leader_needs_its_size_too() -> None:
    obj = hash_leader()
    del obj["metadata"]["annotations"][L + "size"]
    assert denied(obj) == "size annotation is unexpectedly missing for pod test-7d9f8b6c4-"
