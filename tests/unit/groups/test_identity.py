"""Who a pod is and what it is told: labels, sub-groups, exclusive terms, environment (specification: 10 §8, §9)."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lwskit.api import names
from lwskit.groups import environment, identity
from lwskit.groups.model import DecisionError
from lwskit.runtime.objects import labels_of


def draw(count: int) -> str:
    return "bcdfghjklmnpqrstvwxz2456789"[:count]


GOLDEN = Path(__file__).parents[2] / "conformance" / "golden"
L = names.PREFIX


def pod(
    name: str, labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None, **spec: object
) -> dict:
    notes = {L + k: v for k, v in {"size": "4", **(annotations or {})}.items()}
    marks = {L + k: v for k, v in {"name": "my-lws", **(labels or {})}.items()}
    body = {"containers": [{"name": "c"}], **spec}
    return {"metadata": {"name": name, "labels": marks, "annotations": notes}, "spec": body}


@pytest.mark.parametrize(
    ("first", "second", "key"),
    [
        ("default", "test-sample", "95e88034e460983f51a9952fe128729fbc0663b5"),
        ("default", "podName", "390b34ab671d29e9997d7d4252b8bbf8da02f5b7"),
        ("leaderworkerset", "test-sample", "39f5d7e9122b9d94d3932e3720b43fd3b56347e8"),
    ],
)
def test_group_key_vectors(first: str, second: str, key: str) -> None:
    assert identity.group_key(first, second) == key


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("llm-0", ("llm", 0)),
        ("llm-0-12", ("llm-0", 12)),
        ("llm", ("", -1)),
        ("llm-", ("", -1)),
        ("-3", ("", 3)),
        ("llm-2147483648", ("llm", -1)),
        ("llm-2147483647", ("llm", 2147483647)),
    ],
)
def test_ordinals_of_names(name: str, expected: tuple[str, int]) -> None:
    assert identity.parse_ordinal(name) == expected


@pytest.mark.parametrize(
    ("size", "subgroup", "indices"),
    [
        (4, 2, [0, 1, 1]),
        (5, 2, [0, 0, 1, 1]),
        (8, 4, [0, 0, 0, 1, 1, 1, 1]),
        (9, 4, [0, 0, 0, 0, 1, 1, 1, 1]),
        (3, 1, [1, 2]),
        (2, 2, [0]),
    ],
)
def test_subgroups(size: int, subgroup: int, indices: list[int]) -> None:
    assert [identity.subgroup_index(size, subgroup, w) for w in range(1, size)] == indices


SUBGROUPS = {
    "exclusive-topology": "rack",
    "subgroup-policy-type": "LeaderWorker",
    "subgroup-size": "2",
    "subgroup-exclusive-topology": "host",
}


def terms(made: dict, kind: str) -> list[tuple[str, list[dict]]]:
    found = made["spec"]["affinity"][kind]["requiredDuringSchedulingIgnoredDuringExecution"]
    return [(t["topologyKey"], t["labelSelector"].get("matchExpressions", [])) for t in found]


def test_a_leader_with_subgroups_and_both_levels_of_placement() -> None:
    before = pod("my-lws-0", {"worker-index": "0"}, SUBGROUPS)
    untouched = copy.deepcopy(before)
    made = identity.identified(before, "demo", draw)
    assert before == untouched
    group, sub = "c1817bce7c1bcc62d96a1bda827c4ed8a5d0f85f", "5deee8c4a097c2901d4bc8feeb358a6e7ef32eac"
    assert labels_of(made) == {
        L + "name": "my-lws",
        L + "worker-index": "0",
        L + "group-index": "0",
        L + "group-key": group,
        L + "subgroup-index": "0",
        L + "subgroup-key": sub,
    }
    assert terms(made, "podAffinity") == [
        ("rack", [{"key": L + "group-key", "operator": "In", "values": [group]}]),
        ("host", [{"key": L + "subgroup-key", "operator": "In", "values": [sub]}]),
    ]
    assert terms(made, "podAntiAffinity") == [
        (
            "rack",
            [
                {"key": L + "group-key", "operator": "Exists"},
                {"key": L + "group-key", "operator": "NotIn", "values": [group]},
            ],
        ),
        (
            "host",
            [
                {"key": L + "subgroup-key", "operator": "Exists"},
                {"key": L + "subgroup-key", "operator": "NotIn", "values": [sub]},
            ],
        ),
    ]


def test_a_worker_with_subgroups() -> None:
    labels = {"group-index": "0", "group-key": "c1817bce7c1bcc62d96a1bda827c4ed8a5d0f85f", "worker-index": "9"}
    made = identity.identified(pod("my-lws-0-3", labels, SUBGROUPS | {"leader-name": "my-lws-0"}), "demo", draw)
    assert labels_of(made)[L + "worker-index"] == "3"
    assert labels_of(made)[L + "subgroup-index"] == "1"
    assert labels_of(made)[L + "subgroup-key"] == "342acf7ff6f85b42bb1b926ba95b46e5f1d93839"
    assert [topology for topology, _ in terms(made, "podAffinity")] == ["host"]


def test_an_excluded_leader_has_no_subgroup() -> None:
    notes = SUBGROUPS | {"subgroup-policy-type": "LeaderExcluded"}
    made = identity.identified(pod("my-lws-0", {"worker-index": "0"}, notes), "demo", draw)
    assert L + "subgroup-index" not in labels_of(made)
    assert [topology for topology, _ in terms(made, "podAffinity")] == ["rack"]


def test_the_users_terms_on_the_same_topology_stand() -> None:
    term = {"labelSelector": {}, "topologyKey": "rack"}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    leader = {"worker-index": "0"}
    both = pod(
        "x-0", leader, {"exclusive-topology": "rack"}, affinity={"podAffinity": required, "podAntiAffinity": required}
    )
    assert identity.identified(both, "demo", draw)["spec"] == both["spec"]
    one = pod("x-0", leader, {"exclusive-topology": "rack"}, affinity={"podAffinity": required})
    made = identity.identified(one, "demo", draw)
    assert [len(terms(made, kind)) for kind in ("podAffinity", "podAntiAffinity")] == [2, 1]


def test_a_leader_with_a_subdomain_of_its_own() -> None:
    notes = {"subdomainPolicy": "UniquePerReplica"}
    made = identity.identified(pod("x-1", {"worker-index": "0"}, notes, subdomain="x"), "demo", draw)
    assert made["spec"]["subdomain"] == "x-1"


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        (pod("x", {"worker-index": "0"}), "parsing pod ordinal for pod x"),
        (pod("x"), "parsing pod ordinal for pod x"),
        (pod("x-0", annotations={"size": "many"}), "invalid syntax"),
        (pod("x-0-1", annotations={"subgroup-size": "0"}), "must be at least 1"),
    ],
)
def test_pods_that_are_denied(bad: dict, text: str) -> None:
    with pytest.raises(DecisionError, match=text):
        identity.identified(bad, "demo", draw)


def test_a_pod_without_size_is_denied_and_a_stranger_is_left_alone() -> None:
    nameless = {"metadata": {"name": "p"}, "spec": {"containers": []}}
    assert identity.identified(nameless, "demo", draw) is nameless
    assert environment.with_environment(nameless, "demo") is nameless
    bare = {"metadata": {"name": "p-0", "labels": {names.NAME_LABEL: "x"}}, "spec": {}}
    with pytest.raises(DecisionError, match="size annotation is unexpectedly missing for pod p-0"):
        identity.identified(bare, "demo", draw)


# Environment --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case", ["seed-sample", "size-one", "leader-deleted", "unique-subdomain", "subgroups", "exclusive"]
)
def test_recorded_pods_have_these_labels_and_variables(case: str) -> None:
    snapshots = json.loads((GOLDEN / f"{case}.json").read_text())["snapshots"]
    for recorded in next(iter(snapshots.values()))["pod"]:
        given_pod = copy.deepcopy(recorded)
        for label in (names.GROUP_INDEX_LABEL, names.GROUP_KEY_LABEL):
            if identity.is_leader(recorded):
                del given_pod["metadata"]["labels"][label]
        for field in ("containers", "initContainers"):
            for container in given_pod["spec"].get(field, ()):
                env = [e for e in container.get("env", ()) if not e["name"].startswith("LWS_")]
                container["env"] = env
        made = environment.with_environment(identity.identified(given_pod, "NS", draw), "NS")
        if identity.is_leader(recorded):  # the recorder's namespace has another name than NS
            made["metadata"]["labels"][names.GROUP_KEY_LABEL] = labels_of(recorded)[names.GROUP_KEY_LABEL]
        assert labels_of(made) == labels_of(recorded)
        assert made["spec"]["containers"] == recorded["spec"]["containers"]
        assert made["spec"]["subdomain"] == recorded["spec"]["subdomain"]


def test_variables_come_first_and_win() -> None:
    user = [{"name": "A", "value": "$(LWS_LEADER_ADDRESS)"}, {"name": "LWS_GROUP_SIZE", "value": "9"}, {"name": "A"}]
    labels = {"group-index": "0", "worker-index": "0"}
    containers = [{"name": "c", "env": user}, {"name": "d"}]
    given_pod = pod("my-lws-0", labels, subdomain="my-lws", containers=containers, initContainers=[{"name": "i"}])
    made = environment.with_environment(given_pod, "demo")
    ours = [
        {"name": "LWS_LEADER_ADDRESS", "value": "my-lws-0.my-lws.demo"},
        {"name": "LWS_GROUP_SIZE", "value": "4"},
        {"name": "LWS_WORKER_INDEX", "value": "0"},
    ]
    assert [c["env"] for c in made["spec"]["containers"]] == [[*ours, user[0]], ours]
    assert made["spec"]["initContainers"][0]["env"] == ours
    assert given_pod["spec"]["containers"][1] == {"name": "d"}


def test_the_address_that_the_pod_was_told_counts() -> None:
    worker = pod("x-0-1", {"worker-index": "1"}, {"leader-address": "host.sub.demo"})
    assert environment.leader_address(worker, "demo") == "host.sub.demo"
    leader = pod("x-0", {"worker-index": "0"}, hostname="other", subdomain="s")
    assert environment.leader_address(leader, "demo") == "other.s.demo"


@pytest.mark.parametrize(
    ("labels", "annotations", "text"),
    [
        ({"worker-index": "1"}, {}, "no group index label found for pod p"),
        ({"group-index": "0"}, {}, "no worker index label found for pod demo/p"),
    ],
)
def test_what_is_missing_is_named(labels: dict[str, str], annotations: dict[str, str], text: str) -> None:
    with pytest.raises(DecisionError, match=text):
        environment.with_environment(pod("p", labels, annotations), "demo")


@given(st.lists(st.sampled_from(["A", "B", "LWS_GROUP_SIZE"])))
def test_of_equal_names_the_first_stays(found: list[str]) -> None:
    ours = [{"name": "LWS_GROUP_SIZE", "value": "1"}]
    merged = environment.merged(ours, [{"name": n, "value": str(i)} for i, n in enumerate(found)])
    shown = [e["name"] for e in merged]
    assert shown[0] == "LWS_GROUP_SIZE"
    assert len(shown) == len(set(shown))
    assert set(shown) == {"LWS_GROUP_SIZE", *found}
    for entry in merged[1:]:
        assert int(entry["value"]) == found.index(entry["name"])
