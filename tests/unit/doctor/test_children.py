"""Children that no spec asks for, and scalers that no role asks for."""

from __future__ import annotations

import pytest

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated.kinds import DISAGGREGATED_SET
from lwskit.doctor import findings
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.objects import Obj
from tests.unit.doctor.patients import chat, child, children_of, found, only, owned_by_set, report, revision_of, role

OLD = "0ldrev00"


def test_a_set_that_is_well() -> None:
    ds = chat(slices=2)
    whole = report(ds, *children_of(ds))
    assert (whole.findings, whole.disaggregated, whole.sets) == ((), 1, 4)


def test_a_removed_slice() -> None:
    ds = chat(slices=1)
    finding = only(ds, *children_of(ds), child(ds, "prefill", slice=1))
    assert (finding.code, finding.passes) == (findings.REMOVED_SLICE, True)
    name = f"chat-1-{revision_of(ds)}-prefill"
    assert finding.sentence == (
        f"LeaderWorkerSet ns/{name} is of slice 1, and DisaggregatedSet chat has 1 slice; the manager deletes it, "
        f"unless it does not run: `kubectl -n ns delete leaderworkersets.leaderworkerset.x-k8s.io {name}`"
    )


def test_a_child_that_is_being_deleted_is_nobody_s_trouble() -> None:
    ds = chat()
    late = child(ds, "prefill", slice=1, deletionTimestamp="2026-10-20T09:59:00Z")
    assert found(ds, *children_of(ds), late) == []


def test_an_old_revision_at_rest_and_one_that_rolls() -> None:
    ds = chat()
    old = child(ds, "decode", 1, rev=OLD)
    assert found(ds, *children_of(ds), old) == [(findings.OLD_REVISION, old["metadata"]["name"])]
    rolling = chat(available=False)
    assert found(rolling, *children_of(rolling), old) == []
    edited = chat()
    edited["metadata"]["generation"] = 4
    assert found(edited, *children_of(edited), old) == [(findings.NOT_OBSERVED, "chat")]


def test_an_old_revision_of_a_role_that_is_gone() -> None:
    ds = chat()
    finding = only(ds, *children_of(ds), child(ds, "encode", 1, rev=OLD))
    assert finding.code == findings.REMOVED_ROLE
    assert "is of role encode, which DisaggregatedSet chat has not, of revision 0ldrev00" in finding.sentence


def test_a_role_that_the_present_revision_never_had() -> None:
    ds = chat(available=False)
    assert only(ds, *children_of(ds), child(ds, "encode", 1)).code == findings.REMOVED_ROLE


@pytest.mark.parametrize(
    ("label", "value", "said"),
    [
        (names.NAME_LABEL, "other", "is 'other'"),
        (names.SLICE_LABEL, "x", "is 'x', no number"),
        (names.SLICE_LABEL, None, "is None, no number"),
        (names.ROLE_LABEL, None, "has no label disaggregatedset.x-k8s.io/role"),
    ],
)
def test_labels_that_do_not_fit(label: str, value: str | None, said: str) -> None:
    ds = chat()
    odd = child(ds, "encode", 0)
    if value is None:
        del odd["metadata"]["labels"][label]
    else:
        odd["metadata"]["labels"][label] = value
    finding = only(ds, *children_of(ds), odd)
    assert finding.code == findings.CHILD_MISLABELLED
    assert said in finding.message


def test_a_second_child_with_the_labels_of_another() -> None:
    ds = chat()
    twin = child(ds, "decode", 0)
    twin["metadata"] |= {"name": "twin", "uid": "twin-uid"}
    finding = only(ds, *children_of(ds), twin)
    assert (finding.code, finding.name) == (findings.CHILD_MISNAMED, "twin")
    assert f"chat-0-{revision_of(ds)}-decode" in finding.message


def test_owners_that_are_gone_or_others() -> None:
    ds = chat()
    orphan = child({**ds, "metadata": {**ds["metadata"], "name": "gone"}}, "decode", 0)
    earlier = child({**ds, "metadata": {**ds["metadata"], "uid": "earlier"}}, "decode", 0, rev=OLD)
    finding = only(ds, *children_of(ds), orphan)
    assert (finding.code, finding.passes) == (findings.OWNER_GONE, True)
    assert "belongs to DisaggregatedSet gone, which does not exist any more; the garbage collector" in finding.sentence
    assert only(ds, *children_of(ds), earlier).code == findings.OWNER_REPLACED


def test_owners_that_could_not_be_read_are_not_gone() -> None:
    ds = chat()
    assert found(*children_of(ds), unread=[DISAGGREGATED_SET]) == []


def test_a_child_without_an_owner() -> None:
    ds = chat()
    loose = child(ds, "encode", 0, ownerReferences=[])
    finding = only(ds, *children_of(ds), loose)
    assert (finding.code, finding.passes) == (findings.NO_OWNER, False)
    assert "labelled as a child of DisaggregatedSet chat, which takes no notice of it, and has no owner" in (
        finding.message
    )
    assert "DisaggregatedSet chat, which does not exist" in only(loose).message


def test_a_foreign_one_in_the_place_of_a_child() -> None:
    ds = chat()
    (prefill, decode) = children_of(ds)
    foreign = {**prefill, "metadata": {**prefill["metadata"], "ownerReferences": []}}
    assert found(ds, foreign, decode) == [
        (findings.FOREIGN_CHILD, prefill["metadata"]["name"]),
        (findings.ROLE_NOT_READY, "chat"),
    ]


def test_a_foreign_one_without_labels_is_found_by_its_name() -> None:
    ds = chat()
    (prefill, decode) = children_of(ds)
    name = prefill["metadata"]["name"]
    foreign = {**prefill, "metadata": {**prefill["metadata"], "labels": {}, "ownerReferences": []}}
    assert (findings.FOREIGN_CHILD, name) in found(ds, foreign, decode)
    elsewhere = {**foreign, "metadata": {**foreign["metadata"], "namespace": "elsewhere"}}
    assert findings.FOREIGN_CHILD not in {code for code, _ in found(ds, prefill, decode, elsewhere)}


def external(name: str) -> Obj:
    return role(name, scaling={"mode": "External"})


def scaler(ds: Obj, of_role: str, replicas: int = 1) -> Obj:
    meta = {
        "name": f"chat-{of_role}",
        "namespace": "ns",
        "uid": f"{of_role}-scaler",
        "labels": {names.NAME_LABEL: "chat", names.ROLE_LABEL: of_role},
    }
    bare = {"apiVersion": names.API_VERSION, "kind": names.SCALER_KIND, "metadata": meta}
    return owned_by_set({**bare, "spec": {"replicas": replicas}}, ds)


def test_scalers_that_no_role_asks_for() -> None:
    ds = chat(role("prefill"), external("decode"))
    assert found(ds, *children_of(ds), scaler(ds, "decode")) == []
    finding = only(ds, *children_of(ds), scaler(ds, "decode"), scaler(ds, "prefill"))
    assert (finding.code, finding.name, finding.passes) == (findings.SCALER_NOT_WANTED, "chat-prefill", True)


def test_a_scaler_whose_set_is_gone() -> None:
    assert only(scaler(chat(), "decode")).code == findings.OWNER_GONE


def test_somebody_else_s_scaler() -> None:
    ds = chat(role("prefill"), external("decode"))
    foreign = scaler(ds, "decode")
    foreign["metadata"]["ownerReferences"] = []
    assert found(ds, *children_of(ds), foreign) == [(findings.SCALER_CONFLICT, "chat-decode")]
    assert found(foreign) == [(findings.NO_OWNER, "chat-decode")]


def test_sets_beside_are_not_children() -> None:
    lws = child(chat(), "decode")
    plain = {**lws, "metadata": {"name": "plain", "namespace": "ns", "uid": "p", "generation": 1}}
    assert found(plain, unread=[LEADER_WORKER_SET]) == []
