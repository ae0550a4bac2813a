"""Objects of sets that nobody owns any more, or that should have been gone for long."""

from __future__ import annotations

import pytest

from lwskit.api import disaggregated_names, names
from lwskit.doctor import findings
from lwskit.runtime.kinds import POD, STATEFUL_SET
from lwskit.runtime.objects import Obj
from tests.unit.doctor.patients import chat, child, children_of, found, only, report, service
from tests.unit.groups.small_cluster import SmallCluster
from tests.unit.simulate.scenes import objects_of, small, typed


def leader(cluster: SmallCluster, ordinal: int = 0) -> Obj:
    return typed(POD, cluster.leaders[ordinal])


def test_a_set_that_is_well() -> None:
    cluster = small(2, size=2)
    assert found(*objects_of(cluster)) == []


def test_the_service_of_a_set_that_is_gone() -> None:
    cluster = small(1)
    shared = service("x", owner=cluster.lws)
    assert found(*objects_of(cluster), shared) == []
    finding = only(shared)
    assert (finding.code, finding.passes) == (findings.OWNER_GONE, True)
    assert finding.sentence == (
        "Service ns/x belongs to LeaderWorkerSet x, which does not exist any more; the garbage collector deletes it, "
        "unless it does not run or a finalizer keeps the object: `kubectl -n ns delete services x`"
    )


def test_the_service_of_a_leader_that_was_replaced() -> None:
    cluster = small(1)
    of_group = service("x-0", owner={**leader(cluster), "metadata": {"name": "x-0", "uid": "earlier"}}, of=POD)
    of_group["metadata"]["labels"] = {names.NAME_LABEL: "x"}
    assert found(*objects_of(cluster), of_group) == [(findings.OWNER_REPLACED, "x-0")]
    assert found(*objects_of(cluster), of_group, unread=[POD]) == []


def test_a_headless_service_without_an_owner() -> None:
    finding = only(service("x"))
    assert (finding.code, finding.passes) == (findings.NO_OWNER, False)
    assert "has the label of set x and no owner: nothing deletes it with its set" in finding.message


@pytest.mark.parametrize("change", ["cluster-ip", "name"])
def test_services_of_people_are_left_alone(change: str) -> None:
    own = service("x")
    if change == "name":
        own["metadata"]["name"] = "monitoring"
    else:
        own["spec"]["clusterIP"] = "10.0.0.1"
    assert found(own) == []


def test_the_private_services_of_before() -> None:
    ds = chat()
    labels = {disaggregated_names.NAME_LABEL: "chat", disaggregated_names.ROLE_LABEL: "decode"}
    decode = next(c for c in children_of(ds) if c["metadata"]["name"].endswith("decode"))
    kept = service("chat-0-abc-decode-prv", owner=decode, labels=labels)
    finding = only(ds, *children_of(ds), kept)
    assert (finding.code, finding.passes) == (findings.PRIVATE_SERVICE, False)
    assert "and its owner is gone" not in finding.message
    assert "Service chat-0-abc-decode or the labels of pods" in finding.hint
    assert "and its owner is gone" in only(kept).message


def test_a_set_whose_name_ends_like_that_has_no_private_service() -> None:
    assert only(service("x-prv")).code == findings.NO_OWNER


def test_workloads_whose_set_is_gone() -> None:
    cluster = small(1, size=2)
    without = [o for o in objects_of(cluster) if o["kind"] != names.KIND]
    assert (findings.OWNER_GONE, "x") in found(*without)
    orphaned = typed(STATEFUL_SET, {**cluster.workload, "metadata": {**cluster.workload["metadata"]}})  # type: ignore[dict-item]
    orphaned["metadata"]["ownerReferences"] = []
    assert only(orphaned).code == findings.NO_OWNER


def test_pods_without_an_owner_are_told_of_together() -> None:
    cluster = small(5)
    loose = [leader(cluster, i) for i in range(5)]
    for pod in loose:
        pod["metadata"] = {**pod["metadata"], "ownerReferences": []}
    finding = only(*loose)
    assert (finding.code, finding.kind, finding.name) == (findings.NO_OWNER, names.KIND, "x")
    assert "has 5 pods (x-0, x-1, x-2 and 2 more) without an owner" in finding.message
    assert finding.hint.endswith("`kubectl -n ns delete pod x-0 x-1 x-2 …`")


def test_pods_that_no_webhook_has_seen() -> None:
    cluster = small(1)
    bare = leader(cluster)
    labels = {key: value for key, value in bare["metadata"]["labels"].items() if key != names.GROUP_INDEX_LABEL}
    bare["metadata"] = {**bare["metadata"], "labels": labels}
    others = [o for o in objects_of(cluster) if o["metadata"]["name"] != "x-0"]
    assert (findings.NO_PLACE, "x") in found(*others, bare)


@pytest.mark.parametrize(
    ("minutes", "finalizers", "code"),
    [(9, [], None), (11, [], findings.DELETION_STUCK), (11, ["foregroundDeletion"], findings.DELETION_STUCK)],
)
def test_deletions_that_do_not_end(minutes: int, finalizers: list[str], code: str | None) -> None:
    ds = chat()
    late = child(ds, "encode", 0, deletionTimestamp=f"2026-10-20T09:{60 - minutes}:00Z", finalizers=finalizers)
    whole = report(ds, *children_of(ds), late).findings
    assert [f.code for f in whole] == ([code] if code else [])
    if code:
        assert f"has been deleted for {minutes} min and is still there" in whole[0].message
        assert ("garbage collector" in whole[0].hint) is bool(finalizers)
        assert ("kept by finalizer foregroundDeletion" in whole[0].message) is bool(finalizers)


def test_services_of_other_kinds_of_things_are_not_looked_at() -> None:
    assert found({**service("db"), "metadata": {**service("db")["metadata"], "labels": {}}}) == []
