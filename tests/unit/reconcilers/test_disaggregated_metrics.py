"""Metrics of DisaggregatedSets: groups by role and state, revisions, time from change to ready."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from prometheus_client import CollectorRegistry

from lwskit.reconcilers.disaggregated_metrics import DisaggregatedMetrics
from lwskit.reconcilers.stats import ChangeTimes
from lwskit.runtime.objects import Obj
from tests.unit.disaggregated.scenes import child_object, ds_object, role

SET = {"namespace": "prod", "name": "chat"}
ROWS = [
    {"name": "prefill", "desiredReplicas": 3, "replicas": 4, "readyReplicas": 2, "updatedReplicas": 1},
    {"name": "prefill/long", "desiredReplicas": 1},
    {"name": "decode"},
]


class Seen:
    """A registry that reads sets and children from lists."""

    def __init__(self, *children: Obj, rows: list[Obj] | None = None) -> None:
        status = {"status": {"roleStatuses": rows}} if rows else {}
        self.sets: list[Obj] = [{**ds_object(role("prefill", 3), role("decode")), **status}]
        self.times = ChangeTimes()
        self.registry = CollectorRegistry()
        by_index = SimpleNamespace(by_index=lambda index, name, namespace: children)
        watches: Any = SimpleNamespace(sets=SimpleNamespace(store=self.sets), children=SimpleNamespace(store=by_index))
        self.registry.register(DisaggregatedMetrics(watches, self.times))

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"lwskit_disaggregated_{name}", {**SET, **labels})

    def groups(self, role: str) -> dict[str, float | None]:
        return {s: self.value("groups", role=role, state=s) for s in ("wanted", "created", "ready", "updated")}


def test_groups_by_role_and_state_are_those_of_the_status() -> None:
    seen = Seen(rows=ROWS)
    assert seen.groups("prefill") == {"wanted": 3, "created": 4, "ready": 2, "updated": 1}
    assert seen.groups("prefill/long") == {"wanted": 1, "created": 0, "ready": 0, "updated": 0}
    assert seen.groups("decode") == {"wanted": 0, "created": 0, "ready": 0, "updated": 0}
    assert Seen().groups("decode") == {"wanted": None, "created": None, "ready": None, "updated": None}


def test_revisions_are_those_that_ask_for_groups() -> None:
    uid = ds_object()["metadata"]["uid"]

    def child(revision: str, replicas: int, owner: str = uid, **fields: Any) -> Obj:
        return child_object("decode", replicas, revision=revision, owner=owner, **fields)

    assert Seen().value("revisions") == 0
    assert Seen(child("a", 2), child("a", 1, slice=1)).value("revisions") == 1
    going = child("d", 1, deletionTimestamp="2026-11-30T11:00:00Z", finalizers=["foregroundDeletion"])
    assert Seen(child("a", 2), child("b", 1), child("c", 0), child("e", 3, owner="x"), going).value("revisions") == 2


def test_a_set_that_is_gone_has_no_series() -> None:
    seen = Seen(rows=ROWS)
    (ds,) = seen.sets
    seen.times.seen(("prod", "chat"), ds, 1.0)
    assert seen.value("revisions") == 0
    seen.sets.clear()
    told = {metric.name for metric in seen.registry.collect() if metric.samples}
    assert told == {"lwskit_disaggregated_change_to_ready_seconds"}
    assert not seen.times._changes
