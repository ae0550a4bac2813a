"""Roles and sets that do not serve, and why."""

from __future__ import annotations

from lwskit.api import disaggregated_names as names
from lwskit.api import names as base
from lwskit.disaggregated.kinds import ROLE_SCALER
from lwskit.doctor import findings
from lwskit.runtime.kinds import STATEFUL_SET
from lwskit.runtime.objects import Obj
from tests.unit.doctor.patients import chat, child, children_of, found, only, report, revision_of, role
from tests.unit.doctor.test_children import external, scaler
from tests.unit.simulate.scenes import objects_of, small


def test_a_role_without_a_ready_group() -> None:
    ds = chat(available=False)
    (prefill, _) = children_of(ds)
    finding = only(ds, prefill, child(ds, "decode", 2, ready=0))
    assert (finding.code, finding.kind, finding.name) == (findings.ROLE_NOT_READY, "DisaggregatedSet", "chat")
    name = f"chat-0-{revision_of(ds)}-decode"
    assert finding.message.startswith(
        f"has no ready group of role decode, which should have 2: LeaderWorkerSet {name}: ns/{name} has no StatefulSet"
    )


def test_each_slice_needs_its_roles() -> None:
    ds = chat(slices=2, available=False)
    (first, *others) = children_of(ds)
    first["status"]["readyReplicas"] = 0
    finding = only(ds, first, *others)
    assert "has no ready group of role prefill in slice 0, which should have 1" in finding.message
    assert finding.about == "0/prefill"


def test_an_old_revision_serves_for_its_role() -> None:
    ds = chat(available=False)
    (prefill, _) = children_of(ds)
    assert found(ds, prefill, child(ds, "decode", 0), child(ds, "decode", 2, rev="0ldrev00")) == []


def test_a_role_without_a_child() -> None:
    ds = chat(available=False)
    (prefill, _) = children_of(ds)
    finding = only(ds, prefill)
    assert "role decode, which should have 2: there is no LeaderWorkerSet for it" in finding.message
    assert (finding.hint, finding.passes) == ("`lwskit explain ds/chat -n ns` says more", True)


def failed(ds: Obj, role: str, why: str) -> Obj:
    """The event that a child could not be made."""
    name = f"chat-0-{revision_of(ds)}-{role}"
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "ns"},
        "type": "Warning",
        "reason": names.EVENT_FAILED_CREATE,
        "regarding": {"kind": names.KIND, "name": "chat", "namespace": "ns"},
        "related": {"kind": base.KIND, "name": name, "namespace": "ns"},
        "note": f"Failed to create LeaderWorkerSet {name}: {why}",
    }


def test_a_child_that_could_not_be_made() -> None:
    ds = chat(available=False)
    (prefill, decode) = children_of(ds)
    event = failed(ds, "decode", "refused.")
    finding = only(ds, prefill, event)
    assert (finding.code, finding.passes, finding.about) == (findings.ROLE_NOT_READY, False, "0/decode")
    assert finding.message == (
        f"has no ready group of role decode, which should have 2: {event['note'].removesuffix('.')}"
    )
    # An earlier revision serves, and the rollout waits for ever.
    serving = only(ds, prefill, child(ds, "decode", 2, rev="0ldrev00"), event)
    assert (serving.code, serving.kind, serving.passes) == (findings.BLOCKED, "DisaggregatedSet", False)
    assert serving.message == f"goes no further with role decode: {event['note'].removesuffix('.')}"
    # It is made meanwhile, or the event is about another one.
    assert found(ds, prefill, decode, event) == []
    other = only(ds, prefill, failed(ds, "encode", "refused."))
    assert "there is no LeaderWorkerSet for it" in other.message


def test_roles_at_zero_serve_nobody() -> None:
    ds = chat(role("prefill", 0), role("decode", 0))
    assert found(ds, *children_of(ds)) == []


def test_what_a_scaler_asks_for() -> None:
    ds = chat(role("prefill"), external("decode"), available=False)
    (prefill, _) = children_of(ds)
    idle = child(ds, "decode", 0)
    assert found(ds, prefill, idle, scaler(ds, "decode", 0)) == []
    assert found(ds, prefill, idle, scaler(ds, "decode", 2)) == [(findings.ROLE_NOT_READY, "chat")]
    assert found(ds, prefill, idle, unread=[ROLE_SCALER]) == []


def test_sub_roles_that_ask_for_more_than_there_may_be() -> None:
    ds = chat({**role("prefill"), "subRoles": [{"name": name, "replicas": 2**31 - 1} for name in "ab"]})
    finding = only(ds)
    assert (finding.code, finding.about, finding.passes) == (findings.UNDECIDABLE, "prefill", False)
    assert finding.message == (
        "cannot be acted on: the sub-roles of role prefill ask for 4294967294 groups, and a LeaderWorkerSet may have "
        "1000000 at most, so that the manager changes no group of it"
    )
    assert finding.hint == "ask for fewer in role prefill"


def test_a_scaler_that_cannot_be_made_yet() -> None:
    ds = chat(role("prefill"), external("decode"))
    going = scaler(ds, "decode")
    going["metadata"]["deletionTimestamp"] = "2026-10-20T09:59:59Z"
    finding = only(ds, *children_of(ds), going)
    assert (finding.code, finding.passes) == (findings.UNDECIDABLE, True)
    assert "has no scaler for decode" in finding.message


def test_a_set_that_cannot_be_read() -> None:
    ds = chat()
    del ds["spec"]["roles"][0]["spec"]
    assert only(ds).code == findings.UNDECIDABLE


def unready(replicas: int = 1) -> list[Obj]:
    """A set none of whose groups is ready, with the status that its manager wrote."""
    cluster = small(replicas)
    for i in range(replicas):
        cluster.make_ready(i, ready=False)
    cluster.settle()
    assert cluster.workload is not None
    cluster.workload["metadata"]["generation"] = 1
    cluster.workload = {**cluster.workload, "status": {"replicas": replicas, "observedGeneration": 1}}
    return objects_of(cluster)


def test_a_set_without_a_ready_group() -> None:
    finding = only(*unready())
    assert (finding.code, finding.passes) == (findings.SET_NOT_READY, True)
    assert finding.sentence == (
        "LeaderWorkerSet ns/x has no ready group, and should have 1: The set waits for group 0, which is on its "
        "way. Pod x-0 is on no node yet; the scheduler default-scheduler has said nothing of it. It goes on by itself "
        "once group 0 is ready; `lwskit explain x -n ns` says more"
    )


def test_without_workloads_nothing_is_said_of_the_cause() -> None:
    finding = only(*unready(), unread=[STATEFUL_SET])
    assert finding.message == "has no ready group, and should have 1"


def test_a_set_that_is_blocked_though_groups_are_ready() -> None:
    cluster = small(3)
    cluster.make_ready(0, ready=False)
    cluster.change(image="B")
    cluster.settle()
    assert cluster.workload is not None
    cluster.workload["metadata"]["generation"] = 1
    cluster.workload = {**cluster.workload, "status": {"replicas": 3, "observedGeneration": 1}}
    finding = only(*objects_of(cluster))
    assert (finding.code, finding.passes) == (findings.BLOCKED, False)
    assert finding.message.startswith("is blocked (formula-hold): The rollout is held by group 0")


def test_a_child_is_told_of_once() -> None:
    ds = chat(available=False)
    (prefill, _) = children_of(ds)
    assert found(ds, prefill, child(ds, "decode", 2, ready=0)) == [(findings.ROLE_NOT_READY, "chat")]


def test_only_what_lasts() -> None:
    ds = chat(available=False)
    (prefill, decode) = children_of(ds)
    first = report(ds, prefill)
    later = report(ds, decode, child(ds, "encode", 1, slice=0, ownerReferences=[]))
    kept = first.lasting(later)
    assert [(f.code, f.about) for f in later.findings] == [
        (findings.NO_OWNER, ""),
        (findings.ROLE_NOT_READY, "0/prefill"),
    ]
    assert [f.code for f in kept.findings] == [findings.NO_OWNER]
    assert [f.about for f in later.lasting(later).findings] == ["", "0/prefill"]


def test_a_revision_that_cannot_be_told() -> None:
    ds = chat()
    ds["metadata"]["annotations"] = {names.REVISION_HASH_VERSION_ANNOTATION: "v9"}
    finding = only(ds, *children_of(ds))
    assert finding.code == findings.UNDECIDABLE
    assert finding.message == 'cannot be acted on: unsupported revision hash version "v9"'
