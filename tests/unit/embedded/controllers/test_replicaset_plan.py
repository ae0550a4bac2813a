"""What the ReplicaSet controller decides."""

from __future__ import annotations

from typing import Any

import pytest

from lwskit.embedded.controllers.replicaset_plan import (
    Snapshot,
    batches,
    decide,
    new_pod,
    next_look,
    status_differs,
    status_of,
)

from .objects import NOW, at, template


def replica_set(replicas: int, *, status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    made = template("a")
    made["metadata"] |= {"annotations": {"note": "x"}, "finalizers": ["example.com/f"]}
    return {
        "metadata": {"name": "web", "namespace": "default", "uid": "rs", "generation": 3},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": made} | spec,
        "status": status or {},
    }


def pod(name: str, *, ready: float | None = -100, labels: dict[str, str] | None = None) -> dict[str, Any]:
    condition = {"type": "Ready", "status": "False" if ready is None else "True", "lastTransitionTime": at(ready or 0)}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": labels or {"app": "web"}},
        "spec": {"nodeName": "n"},
        "status": {"phase": "Running", "conditions": [condition]},
    }


def snapshot(given: dict[str, Any], active: list, terminating: list | None = None) -> Snapshot:
    return Snapshot(given, active, terminating or [], [], NOW)


def test_missing_pods_are_created_and_no_more_than_500_at_once():
    assert decide(snapshot(replica_set(3), [pod("a")])).create == 2
    assert decide(snapshot(replica_set(900), [])).create == 500


def test_too_many_go_in_their_order_with_the_reason():
    found = decide(snapshot(replica_set(1), [pod("a"), pod("b", ready=None), pod("c", ready=-1)])).deletions
    assert [a.key.name for a in found] == ["b", "c"]
    assert "not ready" in found[0].why
    assert "ready for 1s, shorter than 1m" in found[1].why
    assert found[0].on_success.note == "Deleted pod: b"


def test_a_set_that_is_being_deleted_is_left_alone():
    given = replica_set(3)
    given["metadata"]["deletionTimestamp"] = at(0)
    assert decide(snapshot(given, [])).create == 0


def test_pods_are_as_the_template_says_with_a_name_that_the_server_completes():
    made = new_pod(replica_set(1))
    meta = made["metadata"]
    assert (meta["generateName"], meta["labels"], meta["annotations"]) == ("web-", {"app": "web"}, {"note": "x"})
    assert meta["finalizers"] == ["example.com/f"]
    assert [(r["kind"], r["uid"], r["controller"]) for r in meta["ownerReferences"]] == [("ReplicaSet", "rs", True)]
    assert made["spec"] == template("a")["spec"]


@pytest.mark.parametrize(("count", "sizes"), [(0, []), (1, [1]), (6, [1, 2, 3]), (7, [1, 2, 4])])
def test_creations_begin_slowly(count, sizes):
    assert batches(count) == sizes


class TestStatus:
    def test_counts(self):
        given = replica_set(4, minReadySeconds=10)
        active = [pod("a"), pod("b", ready=-5), pod("c", ready=None), pod("d", labels={"app": "web", "more": "x"})]
        active[2]["metadata"]["labels"] = {"app": "else"}
        found = snapshot(given, active, [pod("t")])
        status = status_of(found, "")
        assert status == {
            "replicas": 4,
            "fullyLabeledReplicas": 3,
            "readyReplicas": 3,
            "availableReplicas": 2,
            "terminatingReplicas": 1,
            "observedGeneration": 3,
        }
        assert 5 < next_look(found, status) < 5.1

    def test_a_pod_is_available_as_soon_as_the_time_has_passed(self):
        found = snapshot(replica_set(2, minReadySeconds=10), [pod("a", ready=-10), pod("b", ready=-9)])
        assert status_of(found, "")["availableReplicas"] == 1

    def test_the_first_failure_stays_until_there_is_none(self):
        first = status_of(snapshot(replica_set(2), [pod("a")]), "no room")
        (condition,) = first["conditions"]
        assert (condition["type"], condition["reason"], condition["message"]) == (
            "ReplicaFailure",
            "FailedCreate",
            "no room",
        )
        failed = replica_set(2, status=first)
        assert status_of(snapshot(failed, [pod("a")]), "another")["conditions"] == [condition]
        assert "conditions" not in status_of(snapshot(failed, [pod("a")]), "")

    def test_only_what_differs_is_written(self):
        given = replica_set(1)
        status = status_of(snapshot(given, [pod("a")]), "")
        assert status_differs(given, status)
        assert not status_differs(replica_set(1, status=status), status)
