"""Admission of pods, from review to patch (specification: 10 §8, §9, §11; checklist lines 64–81, 90, 92)."""

from __future__ import annotations

import pytest

from lwskit.api import names
from lwskit.runtime.objects import Obj, labels_of
from tests.unit.admission.pods import (
    REQUIRED,
    L,
    admit,
    denied,
    env_of,
    far,
    hash_leader,
    leader,
    near,
    pod,
    sha1,
    terms,
    worker,
)
from tests.unit.admission.reviews import Answer, ask


def test_64_a_pod_of_no_set_is_unchanged() -> None:
    stranger = {"metadata": {"name": "a-0", "labels": {"app": "a"}}, "spec": {"containers": [{"name": "c"}]}}
    assert ask(names.MUTATE_POD_PATH, stranger) == Answer(True, 200, "", stranger, [], [])


@pytest.mark.parametrize("obj", [leader(), worker()])
def test_65_a_pod_without_its_size_is_denied(obj: Obj) -> None:
    name = obj["metadata"]["name"]
    del obj["metadata"]["annotations"][L + "size"]
    assert denied(obj) == f"size annotation is unexpectedly missing for pod {name}"
    del obj["metadata"]["annotations"]
    assert denied(obj) == f"size annotation is unexpectedly missing for pod {name}"


@pytest.mark.parametrize("text", ["many", "", "4.0", "-+4", " 4", "٤", "1_0"])
def test_65_a_size_that_is_no_number_is_denied(text: str) -> None:
    assert "invalid syntax" in denied(leader(annotations={"size": text}))


def test_65_a_size_beyond_all_numbers_is_denied() -> None:
    assert "value out of range" in denied(leader(annotations={"size": "9" * 5000}))


def test_66_a_leader_gets_index_and_key() -> None:
    made = admit(leader("test-1"), "default")
    assert labels_of(made) == {
        L + "name": "test",
        L + "worker-index": "0",
        L + "group-index": "1",
        L + "group-key": sha1("default/test-1"),
    }


def test_66_labels_that_were_there_are_overwritten() -> None:
    obj = pod("test-1", {"worker-index": "0", "group-index": "7", "group-key": "old"})
    assert labels_of(admit(obj))[L + "group-index"] == "1"
    assert labels_of(admit(obj))[L + "group-key"] == sha1("ns/test-1")


def test_67_a_worker_gets_its_index_and_keeps_its_group() -> None:
    obj = worker("test-1-1")
    assert labels_of(admit(obj)) == {**labels_of(obj), L + "worker-index": "1"}
    del obj["metadata"]["labels"][L + "group-key"]
    assert L + "group-key" not in labels_of(admit(obj))


@pytest.mark.parametrize(
    "obj", [leader("test"), leader("test-"), worker("test-x"), leader("test-2147483648"), worker("w-" + "9" * 5000)]
)
def test_68_a_name_without_ordinal_is_denied(obj: Obj) -> None:
    assert denied(obj) == f"parsing pod ordinal for pod {obj['metadata']['name']}"


def test_68_a_pod_that_is_only_to_be_named_is_denied_with_what_it_has() -> None:
    obj = leader()
    del obj["metadata"]["name"]
    obj["metadata"]["generateName"] = "test-abc-"
    assert denied(obj) == "parsing pod ordinal for pod test-abc-"
    obj["metadata"]["generateName"] = "test-1"
    assert denied(obj) == "parsing pod ordinal for pod test-1"


@pytest.mark.parametrize(
    ("namespace", "name", "key"),
    [
        ("default", "test-sample", "95e88034e460983f51a9952fe128729fbc0663b5"),
        ("leaderworkerset", "test-sample", "39f5d7e9122b9d94d3932e3720b43fd3b56347e8"),
    ],
)
def test_69_keys_are_made_of_namespace_and_name(namespace: str, name: str, key: str) -> None:
    # The published vectors have names without ordinals, so the key's recipe is what is compared.
    assert sha1(f"{namespace}/{name}") == key
    made = admit(leader(f"{name}-0"), namespace)
    assert labels_of(made)[L + "group-key"] == sha1(f"{namespace}/{name}-0")


def test_70_a_leader_is_in_the_first_subgroup() -> None:
    made = admit(leader("test-1", {"subgroup-size": "2"}))
    assert labels_of(made)[L + "subgroup-index"] == "0"
    assert labels_of(made)[L + "subgroup-key"] == sha1("test-1/0")


def test_70_an_excluded_leader_is_in_none() -> None:
    made = admit(leader("test-1", {"subgroup-size": "2", "subgroup-policy-type": "LeaderExcluded"}))
    assert not {L + "subgroup-index", L + "subgroup-key"} & labels_of(made).keys()


def test_70_a_place_that_was_given_stays() -> None:
    obj = pod("test-1-3", {"subgroup-index": "9"}, {"subgroup-size": "2", "leader-name": "test-1", "size": "4"})
    obj["metadata"]["labels"][L + "group-index"] = "1"
    assert labels_of(admit(obj))[L + "subgroup-index"] == "9"
    assert L + "subgroup-key" not in labels_of(admit(obj))


@pytest.mark.parametrize(
    ("size", "part", "indices"),
    [
        (4, 2, [0, 1, 1]),
        (5, 2, [0, 0, 1, 1]),
        (8, 4, [0, 0, 0, 1, 1, 1, 1]),
        (9, 4, [0, 0, 0, 0, 1, 1, 1, 1]),
        (3, 1, [1, 2]),
        (2, 2, [0]),
    ],
)
def test_71_workers_subgroups(size: int, part: int, indices: list[int]) -> None:
    made = [
        labels_of(admit(worker(f"test-1-{w}", {"size": str(size), "subgroup-size": str(part)}))) for w in range(1, size)
    ]
    assert [m[L + "subgroup-index"] for m in made] == [str(i) for i in indices]
    assert [m[L + "subgroup-key"] for m in made] == [sha1(f"test-1/{i}") for i in indices]


@pytest.mark.parametrize("text", ["two", "0", "-1", ""])
def test_71_a_subgroup_size_that_makes_no_sense_is_denied(text: str) -> None:
    assert f"annotation {L}subgroup-size of pod test-1-1 is {text!r}" in denied(
        worker(annotations={"subgroup-size": text})
    )


def test_72_exclusive_placement_is_the_leaders() -> None:
    made = admit(leader(annotations={"exclusive-topology": "rack"}))
    key = sha1("ns/test-1")
    assert made["spec"]["affinity"] == {
        "podAffinity": {REQUIRED: [near("group-key", key, "rack")]},
        "podAntiAffinity": {REQUIRED: [far("group-key", key, "rack")]},
    }
    assert "affinity" not in admit(worker(annotations={"exclusive-topology": "rack"}))["spec"]


def test_73_both_levels() -> None:
    notes = {"exclusive-topology": "rack", "subgroup-size": "2", "subgroup-exclusive-topology": "host"}
    made = admit(leader("test-1", notes))
    group, part = sha1("ns/test-1"), sha1("test-1/0")
    assert terms(made, "podAffinity") == [near("group-key", group, "rack"), near("subgroup-key", part, "host")]
    assert terms(made, "podAntiAffinity") == [far("group-key", group, "rack"), far("subgroup-key", part, "host")]
    made = admit(worker("test-1-3", notes))
    assert terms(made, "podAffinity") == [near("subgroup-key", sha1("test-1/1"), "host")]
    assert terms(made, "podAntiAffinity") == [far("subgroup-key", sha1("test-1/1"), "host")]


def test_74_without_annotations_there_is_no_affinity() -> None:
    for obj in (leader(), worker(), leader(annotations={"subgroup-size": "2"})):
        assert "affinity" not in admit(obj)["spec"]


def test_75_admission_of_what_was_admitted_changes_nothing() -> None:
    notes = {"exclusive-topology": "rack", "subgroup-size": "2", "subgroup-exclusive-topology": "host"}
    for obj in (leader("test-1", notes), worker("test-1-2", notes)):
        once = admit(obj)
        assert ask(names.MUTATE_POD_PATH, once).patch == []


def test_76_the_users_terms_stay_first() -> None:
    theirs = {"labelSelector": {}, "topologyKey": "zone", "namespaces": ["x"]}
    affinity = {
        "nodeAffinity": {"x": "y"},
        "podAffinity": {REQUIRED: [theirs], "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]},
        "podAntiAffinity": {REQUIRED: [theirs]},
    }
    made = admit(leader(annotations={"exclusive-topology": "rack"}, affinity=affinity))
    assert [t["topologyKey"] for t in terms(made, "podAffinity")] == ["zone", "rack"]
    assert [t["topologyKey"] for t in terms(made, "podAntiAffinity")] == ["zone", "rack"]
    assert terms(made, "podAffinity")[0] == theirs
    assert made["spec"]["affinity"]["nodeAffinity"] == {"x": "y"}
    assert made["spec"]["affinity"]["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] == [{"weight": 1}]


def test_77_affinity_alone_on_the_same_topology_does_not_suppress() -> None:
    theirs = {"labelSelector": {}, "topologyKey": "rack"}
    made = admit(leader(annotations={"exclusive-topology": "rack"}, affinity={"podAffinity": {REQUIRED: [theirs]}}))
    assert [len(terms(made, kind)) for kind in ("podAffinity", "podAntiAffinity")] == [2, 1]


def test_78_a_subdomain_for_each_group() -> None:
    made = admit(leader("test-1", {"subdomainPolicy": "UniquePerReplica"}), "ns")
    assert made["spec"]["subdomain"] == "test-1"
    assert env_of(made)[0][0] == ("LWS_LEADER_ADDRESS", "test-1.test-1.ns")
    assert admit(leader("test-1", {"subdomainPolicy": "Shared"}))["spec"]["subdomain"] == "test"


@pytest.mark.parametrize(("obj", "index"), [(leader(), "0"), (worker("test-1-3"), "3")])
def test_79_every_container_begins_with_the_three_variables(obj: Obj, index: str) -> None:
    obj["spec"]["containers"] = [{"name": "a", "env": [{"name": "X", "value": "1"}]}, {"name": "b"}]
    obj["spec"]["initContainers"] = [{"name": "i", "env": None}]
    obj["spec"]["ephemeralContainers"] = [{"name": "e"}]
    made = admit(obj)
    ours = [("LWS_LEADER_ADDRESS", "test-1.test.ns"), ("LWS_GROUP_SIZE", "4"), ("LWS_WORKER_INDEX", index)]
    assert env_of(made) == [[*ours, ("X", "1")], ours]
    assert env_of(made, "initContainers") == [ours]
    assert made["spec"]["ephemeralContainers"] == [{"name": "e"}]


def test_80_our_names_are_ours_and_of_equal_names_the_first_stays() -> None:
    env = [
        {"name": "A", "value": "1"},
        {"name": "LWS_GROUP_SIZE", "value": "99"},
        {"name": "A", "value": "2"},
        {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ]
    made = admit(leader(containers=[{"name": "c", "env": env}]))
    assert [e["name"] for e in made["spec"]["containers"][0]["env"]][3:] == ["A", "B"]
    assert made["spec"]["containers"][0]["env"][1] == {"name": "LWS_GROUP_SIZE", "value": "4"}
    assert made["spec"]["containers"][0]["env"][3:] == [env[0], env[3]]


def test_81_the_address_that_a_worker_is_told() -> None:
    told = admit(worker(annotations={"leader-address": "host.sub.ns"}))
    assert env_of(told)[0][0] == ("LWS_LEADER_ADDRESS", "host.sub.ns")
    assert env_of(admit(worker()))[0][0] == ("LWS_LEADER_ADDRESS", "test-1.test.ns")
    lost = worker()
    del lost["metadata"]["labels"][L + "group-index"]
    assert denied(lost) == "no group index label found for pod test-1-1"


def test_90_changes_and_deletions_of_pods_are_always_allowed() -> None:
    broken = pod("test", annotations={"size": "x"})
    for operation in ("CREATE", "UPDATE", "DELETE"):
        answer = ask(names.VALIDATE_POD_PATH, broken, broken, operation=operation)
        assert answer == Answer(True, 200, "", broken, [], [])
    assert ask(names.MUTATE_POD_PATH, None, broken, operation="DELETE").allowed


def test_90_a_change_of_a_pod_is_left_as_it_is() -> None:
    for obj in (leader("test-1"), hash_leader()):
        answer = ask(names.MUTATE_POD_PATH, obj, obj, operation="UPDATE")
        assert (answer.allowed, answer.patch) == (True, [])


def test_92_without_accelerators_there_are_no_variables_about_them() -> None:
    resources = {"limits": {"nvidia.com/gpu": "8"}, "requests": {"cpu": "1"}}
    made = admit(leader(containers=[{"name": "c", "resources": resources}]))
    assert [name for name, _ in env_of(made)[0]] == ["LWS_LEADER_ADDRESS", "LWS_GROUP_SIZE", "LWS_WORKER_INDEX"]


def test_the_patch_names_only_what_changed() -> None:
    obj = leader(newerField={"deep": [1]}, schedulingGroup={"podGroupName": "g"})
    obj["metadata"]["newer"] = True
    obj["status"] = {"phase": "Pending"}
    answer = ask(names.MUTATE_POD_PATH, obj)
    assert {op["path"] for op in answer.patch} == {
        "/metadata/labels/leaderworkerset.sigs.k8s.io~1group-index",
        "/metadata/labels/leaderworkerset.sigs.k8s.io~1group-key",
        "/spec/containers/0/env",
    }
    assert answer.obj["spec"]["newerField"] == {"deep": [1]}
    assert answer.obj["spec"]["schedulingGroup"] == {"podGroupName": "g"}
    assert answer.obj["metadata"]["newer"] is True


@pytest.mark.parametrize(
    ("obj", "fault"),
    [
        ({}, "metadata must be an object"),
        ({"metadata": {}, "spec": []}, "spec must be an object"),
        ({"metadata": {"labels": []}, "spec": {}}, "metadata.labels must be an object"),
        ({"metadata": {"labels": {"a": 1}}, "spec": {}}, "metadata.labels[a] must be a text"),
        ({"metadata": {"annotations": {"a": None}}, "spec": {}}, "metadata.annotations[a] must be a text"),
        ({"metadata": {"name": 1}, "spec": {}}, "metadata.name must be a text"),
        ({"metadata": {}, "spec": {"containers": {}}}, "spec.containers must be a list"),
        ({"metadata": {}, "spec": {"containers": [None]}}, "spec.containers[0] must be an object"),
        ({"metadata": {}, "spec": {"initContainers": [{"env": [{}]}]}}, "spec.initContainers[0].env[0].name must be"),
        ({"metadata": {}, "spec": {"initContainers": [{"env": ["x"]}]}}, "spec.initContainers[0].env[0] must be an ob"),
        (
            {"metadata": {}, "spec": {"containers": [{"env": [{"name": "a", "value": 1}]}]}},
            "spec.containers[0].env[0].",
        ),
        ({"metadata": {}, "spec": {"containers": [{"resources": []}]}}, "spec.containers[0].resources must be an obj"),
        ({"metadata": {}, "spec": {"containers": [{"resources": {"limits": 1}}]}}, "spec.containers[0].resources.lim"),
        ({"metadata": {}, "spec": {"schedulingGates": ["a"]}}, "spec.schedulingGates[0] must be an object"),
        ({"metadata": {}, "spec": {"schedulingGates": [{"name": 1}]}}, "spec.schedulingGates[0].name must be a text"),
        ({"metadata": {}, "spec": {"affinity": []}}, "spec.affinity must be an object"),
        ({"metadata": {}, "spec": {"affinity": {"podAffinity": 1}}}, "spec.affinity.podAffinity must be an object"),
        (
            {"metadata": {}, "spec": {"affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": 1}]}}}},
            f"spec.affinity.podAntiAffinity.{REQUIRED}[0].topologyKey must be a text",
        ),
    ],
)
def test_what_is_no_pod_is_refused_by_its_path(obj: Obj, fault: str) -> None:
    answer = ask(names.MUTATE_POD_PATH, obj)
    assert (answer.allowed, answer.code) == (False, 400)
    assert answer.message.startswith(f"this is no pod: {fault}")


@pytest.mark.parametrize("spec", [{}, {"containers": None, "initContainers": None}, {"containers": []}])
def test_a_pod_without_containers_gets_its_place_all_the_same(spec: Obj) -> None:
    obj = {**leader("test-1"), "spec": spec}
    made = admit(obj)
    assert labels_of(made)[L + "group-index"] == "1"
    assert made["spec"] == spec
