"""Revisions: bytes, hashes, names, choice, equality (specification: 20 §3, checklist 1-13)."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from lwskit.api import names
from lwskit.groups import revisions, templates
from lwskit.groups.model import DecisionError
from lwskit.runtime.objects import labels_of
from tests.unit.groups.small_cluster import SmallCluster, key_of_live, make_lws, settled

GOLDEN = Path(__file__).parents[2] / "conformance" / "golden"


def made(lws: dict, *, number: int = 1, key: str = "", data: dict | None = None) -> dict:
    revision = revisions.new_revision(lws, [], data or revisions.record(lws), key)
    return {**revision, "revision": number, "metadata": {**revision["metadata"], "uid": f"r{number}"}}


def recorded_cases() -> list[tuple[str, dict, dict]]:
    found = []
    for case in ("revision-bytes", "seed-sample", "metadata-propagation", "pvc", "size-one", "subgroups"):
        snapshot = list(json.loads((GOLDEN / f"{case}.json").read_text())["snapshots"].values())[-1]
        by_name = {lws["metadata"]["name"]: lws for lws in snapshot["lws"]}
        newest = {labels_of(r)[names.NAME_LABEL]: r for r in sorted(snapshot["rev"], key=lambda r: r["revision"])}
        found += [(case, by_name[name], revision) for name, revision in newest.items()]
    return found


@pytest.mark.parametrize(("case", "lws", "revision"), recorded_cases())
def test_01_recorded_sets_give_the_recorded_revisions(case: str, lws: dict, revision: dict) -> None:
    lws = {**lws, "metadata": {**lws["metadata"], "namespace": "NS", "uid": "u"}}
    before = [made(lws, number=n) for n in range(1, revision["revision"])]
    built = revisions.new_revision(lws, before, revisions.record(lws))
    assert built["metadata"]["name"] == revision["metadata"]["name"]
    assert built["metadata"]["labels"] == revision["metadata"]["labels"]
    assert (built["data"], built["revision"]) == (revision["data"], revision["revision"])
    owner = {k: v for k, v in built["metadata"]["ownerReferences"][0].items() if k != "uid"}
    assert [owner] == revision["metadata"]["ownerReferences"]


def test_02_absent_network_config_is_recorded_as_shared() -> None:
    explicit, absent = make_lws(), make_lws()
    del absent["spec"]["networkConfig"]
    assert revisions.canonical(revisions.record(explicit)) == revisions.canonical(revisions.record(absent))


def test_a_set_from_before_there_were_modes_is_as_one_with_ordinals() -> None:
    """F91: a schema that writes `groupIdentity: Ordinal` where nothing was rolls nothing out."""
    after, before = make_lws(), make_lws()
    del before["spec"]["groupIdentity"]
    assert revisions.canonical(revisions.record(after)) == revisions.canonical(revisions.record(before))
    assert "groupIdentity" not in revisions.canonical(revisions.record(after))
    plans = (templates.leader_plan(lws, "r", partition=0, replicas=2) for lws in (before, after))
    assert next(plans) == next(plans)


def test_03_what_makes_revisions_differ() -> None:
    base = made(make_lws(), key="some")
    assert revisions.says_the_same(base, revisions.record(make_lws()))
    assert not revisions.says_the_same(base, revisions.record(make_lws(image="b")))
    unique = make_lws()
    unique["spec"]["networkConfig"] = {"subdomainPolicy": names.SUBDOMAIN_UNIQUE_PER_REPLICA}
    assert not revisions.says_the_same(base, revisions.record(unique))
    assert not revisions.says_the_same(base, revisions.record(make_lws(size=4)))


@pytest.mark.parametrize(
    ("data", "text"), [(b'{"a":1}', "69966c9df7"), (b'{"a":2}', "6b46b4ddf6"), (b"", "65bb57b6b5")]
)
def test_04_hash_vectors(data: bytes, text: str) -> None:
    assert revisions.safe(revisions.fnv1(data)) == text


def test_04_the_bytes_are_those_of_a_go_encoder() -> None:
    value = {"b": "<a>&\u2028", "a": ["é", "\x01\n\t"]}
    assert revisions.canonical(value) == '{"a":["é","\\u0001\\n\\t"],"b":"\\u003ca\\u003e\\u0026\\u2028"}'


def test_05_long_names_are_cut_in_the_revision() -> None:
    built = made(make_lws("n" * 230))
    assert built["metadata"]["name"].startswith("n" * 220 + "-")
    assert labels_of(built)[names.NAME_LABEL] == "n" * 230


def test_06_leftovers_of_another_set_are_ignored() -> None:
    lws = make_lws()
    old = {**lws, "metadata": {**lws["metadata"], "uid": "former"}}
    foreign, orphan = made(old, number=7), made(lws, number=3)
    del orphan["metadata"]["ownerReferences"]
    mine = revisions.own(lws, [foreign, orphan])
    assert mine == [orphan]
    assert revisions.new_revision(lws, mine, revisions.record(lws))["revision"] == 4


def test_07_of_one_key_the_higher_number_counts() -> None:
    lws = make_lws()
    first, second = made(lws, key="k"), made(lws, number=2, key="k")
    assert revisions.choose([second, first], "k") is second
    assert revisions.choose([first], "other") is None


def test_08_what_is_only_written_differently_starts_no_rollout() -> None:
    cluster = settled(make_lws(replicas=1))
    data = copy.deepcopy(cluster.revisions[0]["data"])
    data["spec"]["leaderWorkerTemplate"]["workerTemplate"]["metadata"]["creationTimestamp"] = None
    assert revisions.canonical(data) != revisions.canonical(cluster.revisions[0]["data"])
    cluster.revisions[0] = {**cluster.revisions[0], "data": data}
    before = cluster.workload
    assert cluster.settle() == []
    assert (len(cluster.revisions), cluster.workload) == (1, before)


@pytest.mark.parametrize("data", [None, {}, {"spec": 3}, {"spec": {"leaderWorkerTemplate": []}}])
def test_08_unreadable_data_counts_as_different(data: object) -> None:
    assert not revisions.says_the_same({"data": data}, revisions.record(make_lws()))


def test_09_a_missing_revision_is_made_with_the_key_of_the_leaders() -> None:
    cluster = settled(make_lws())
    assert cluster.workload is not None
    for carrier in (cluster.workload, cluster.workload["spec"]["template"]):
        carrier["metadata"]["labels"] = {**carrier["metadata"]["labels"], names.REVISION_LABEL: "template-hash"}
    notes = cluster.reconcile()
    assert "Creating missing revision with key template-hash for existing LeaderWorkerSet" in notes
    newest = cluster.revisions[-1]
    assert (labels_of(newest)[names.REVISION_LABEL], newest["revision"]) == ("template-hash", 2)
    assert newest["metadata"]["name"] == f"x-{revisions.hash_of(newest['data'])}-2"
    assert cluster.target == (2, 0)
    assert not [n for n in notes if "updated LWS" in n]


def test_10_an_applied_revision_restores_template_and_network_only() -> None:
    old = made(make_lws())
    live = make_lws(image="b")
    live["spec"]["networkConfig"] = {"subdomainPolicy": names.SUBDOMAIN_UNIQUE_PER_REPLICA}
    live["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["maxSurge"] = 3
    before = copy.deepcopy(live)
    restored = revisions.with_revision(live, old)
    assert live == before
    containers = restored["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"]
    assert containers[0]["image"] == "a"
    assert restored["spec"]["networkConfig"] == {"subdomainPolicy": "Shared"}
    assert restored["spec"]["rolloutStrategy"] == live["spec"]["rolloutStrategy"]
    assert "$patch" not in json.dumps(restored)


def test_11_the_restart_limit_is_never_recorded() -> None:
    plain, limited = make_lws(), make_lws(maxGroupRestarts=3, restartBackoff={"baseSeconds": 1})
    assert revisions.record(plain) == revisions.record(limited)
    assert "maxGroupRestarts" not in revisions.canonical(revisions.record(limited))
    old = made(make_lws())
    old["data"]["spec"]["leaderWorkerTemplate"]["maxGroupRestarts"] = 9
    assert revisions.with_revision(limited, old)["spec"]["leaderWorkerTemplate"]["maxGroupRestarts"] == 3
    assert "maxGroupRestarts" not in revisions.with_revision(plain, old)["spec"]["leaderWorkerTemplate"]


def test_12_a_finished_rollout_leaves_only_the_current_revision() -> None:
    cluster = settled(make_lws())
    cluster.change(image="b")
    cluster.settle()
    assert len(cluster.revisions) == 2
    for i in (1, 0):
        cluster.make_ready(i)
        cluster.settle()
    assert [r["revision"] for r in cluster.revisions] == [2]


def test_12_with_a_partition_both_revisions_remain() -> None:
    lws = make_lws()
    lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"]["partition"] = 1
    cluster = settled(lws)
    cluster.change(image="b")
    cluster.settle()
    cluster.make_ready(1)
    cluster.settle()
    assert len(cluster.revisions) == 2
    assert cluster.conditions["Available"] == "True"


def test_13_three_revisions_until_the_end_of_a_second_change() -> None:
    cluster = settled(make_lws())
    for image, expected in (("b", 2), ("c", 3)):
        cluster.change(image=image)
        cluster.settle()
        assert len(cluster.revisions) == expected
    cluster.make_ready(1)
    cluster.settle()
    cluster.make_ready(0)
    cluster.settle()
    assert [r["revision"] for r in cluster.revisions] == [3]


def test_a_change_back_makes_a_revision_with_the_old_key_and_its_groups_count_as_updated() -> None:
    cluster = settled(make_lws(replicas=3))
    for image in ("b", "a"):
        cluster.change(image=image)
        cluster.reconcile()
    assert {labels_of(r)[names.REVISION_LABEL] for r in cluster.revisions} == {key_of_live(cluster)}
    assert [r["revision"] for r in cluster.revisions] == [1, 3]
    assert cluster.counts == "3/3"


def test_a_first_attempt_that_failed_half_way_leaves_no_second_revision() -> None:
    cluster = SmallCluster(make_lws())
    cluster.reconcile()
    cluster.workload = None
    cluster.lws.pop("status")
    cluster.reconcile()
    assert len(cluster.revisions) == 1


def test_a_template_that_cannot_be_recorded_is_told_in_a_sentence() -> None:
    lws = make_lws()
    lws["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"] = "many"
    with pytest.raises(DecisionError, match="containers"):
        revisions.record(lws)


def test_a_revision_stays_while_a_lost_leader_would_be_made_of_it() -> None:
    cluster = settled(make_lws())
    cluster.change(image="b")
    cluster.settle()
    cluster.make_ready(1)
    cluster.settle()
    cluster.make_ready(0)
    assert cluster.workload is not None
    cluster.workload = {**cluster.workload, "status": {**cluster.workload["status"], "currentRevision": "x-a"}}
    cluster.workload["status"]["updateRevision"] = "x-b"
    cluster.reconcile()
    assert (cluster.conditions[names.CONDITION_AVAILABLE], len(cluster.revisions)) == ("True", 2)
    cluster.workload["status"]["currentRevision"] = "x-b"
    cluster.reconcile()
    assert len(cluster.revisions) == 1
