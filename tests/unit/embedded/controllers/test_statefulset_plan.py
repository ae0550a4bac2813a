from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lwskit.embedded.controllers.statefulset_plan import (
    Item,
    SetPlan,
    Snapshot,
    batches,
    decide,
    max_unavailable,
    status_differs,
)
from lwskit.runtime.errors import InvalidRequest
from lwskit.runtime.plan import Create, Delete, Emit, Patch

from .objects import NOW, pod, revision, stateful_set

OLD, NEW = revision("web-old", "a", 1), revision("web-new", "b", 2)


def plan(stateful_set: dict, pods: list[dict], *, old: bool = False, claims: dict | None = None) -> SetPlan:
    return decide(Snapshot(stateful_set, pods, OLD if old else NEW, NEW, NOW, claims or {}))


def said(plan: SetPlan) -> list[str]:
    """The actions in order, as `create web-0`."""
    found = []
    for phase in plan.phases:
        for item in phase.items:
            for action in item.actions:
                if isinstance(action, Create):
                    found.append(f"create {action.obj['metadata']['name']}")
                elif isinstance(action, Delete | Patch):
                    found.append(f"{type(action).__name__.lower()} {action.key.name}")
                elif isinstance(action, Emit):
                    found.append(f"emit {action.event.reason}")
    return found


def rolling(**fields) -> dict:
    return {"type": "RollingUpdate", "rollingUpdate": {"partition": 0} | fields}


class TestScale:
    def test_parallel_creates_all_at_once(self):
        assert said(plan(stateful_set(3), [])) == ["create web-0", "create web-1", "create web-2"]

    def test_ordered_creates_the_next_only_when_the_one_before_is_ready(self):
        ordered = stateful_set(3, parallel=False)
        assert said(plan(ordered, [])) == ["create web-0"]
        assert said(plan(ordered, [pod(0, ready=False)])) == []
        assert said(plan(ordered, [pod(0)])) == ["create web-1"]

    def test_ordinals_start(self):
        assert said(plan(stateful_set(2, ordinals={"start": 5}), [])) == ["create web-5", "create web-6"]

    def test_ordinals_below_the_start_are_condemned(self):
        assert said(plan(stateful_set(1, ordinals={"start": 1}), [pod(0), pod(1)])) == ["delete web-0"]

    def test_parallel_scales_down_all_at_once_from_the_top(self):
        assert said(plan(stateful_set(1), [pod(i) for i in range(4)])) == [
            "delete web-3",
            "delete web-2",
            "delete web-1",
        ]

    def test_ordered_scales_down_one_at_a_time(self):
        ordered = stateful_set(1, parallel=False)
        assert said(plan(ordered, [pod(0), pod(1), pod(2)])) == ["delete web-2"]
        assert said(plan(ordered, [pod(0), pod(1), pod(2, deleting=True)])) == []

    def test_ordered_scale_down_waits_for_an_unhealthy_pod_below(self):
        ordered = stateful_set(1, parallel=False)
        assert said(plan(ordered, [pod(0), pod(1, ready=False), pod(2)])) == ["delete web-2"]
        assert said(plan(ordered, [pod(0), pod(1, ready=False), pod(2, ready=False)])) == []

    def test_a_terminating_pod_keeps_its_place(self):
        assert said(plan(stateful_set(2), [pod(0, deleting=True), pod(1)])) == []

    @pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
    def test_a_finished_pod_is_deleted_once(self, phase):
        assert said(plan(stateful_set(1), [pod(0, phase=phase)])) == ["delete web-0"]
        assert said(plan(stateful_set(1), [pod(0, phase=phase, deleting=True)])) == []

    def test_a_set_that_is_deleted_does_nothing_but_count(self):
        deleted = stateful_set(3)
        deleted["metadata"]["deletionTimestamp"] = "2026-01-01T12:00:00Z"
        found = plan(deleted, [pod(0)])
        assert said(found) == []
        assert found.status["replicas"] == 1

    def test_a_pod_without_its_labels_gets_them(self):
        naked = pod(0)
        naked["metadata"]["labels"] = {"app": "web", "controller-revision-hash": "web-new"}
        assert said(plan(stateful_set(1), [naked])) == ["patch web-0"]


class TestNewPod:
    def test_identity(self):
        (phase, *_) = plan(stateful_set(1), []).phases
        create = phase.items[0].actions[0]
        assert isinstance(create, Create)
        made = create.obj
        assert made["metadata"]["labels"] == {
            "app": "web",
            "statefulset.kubernetes.io/pod-name": "web-0",
            "apps.kubernetes.io/pod-index": "0",
            "controller-revision-hash": "web-new",
        }
        assert made["metadata"]["generateName"] == "web-"
        assert made["metadata"]["ownerReferences"][0]["uid"] == "set-uid"
        assert (made["spec"]["hostname"], made["spec"]["subdomain"]) == ("web-0", "svc")
        assert made["spec"]["containers"][0]["image"] == "b"
        assert create.on_success
        assert create.on_success.note == "Create Pod web-0 in StatefulSet web successful"

    def test_below_the_partition_it_is_of_the_current_revision(self):
        partitioned = stateful_set(2, updateStrategy=rolling(partition=1))
        (phase, *_) = plan(partitioned, [], old=True).phases
        images = [
            a.obj["spec"]["containers"][0]["image"] for i in phase.items for a in i.actions if isinstance(a, Create)
        ]
        assert images == ["a", "b"]

    def test_the_partition_counts_from_the_start_ordinal(self):
        partitioned = stateful_set(2, updateStrategy=rolling(partition=1), ordinals={"start": 3})
        (phase, *_) = plan(partitioned, [], old=True).phases
        names = [
            a.obj["metadata"]["labels"]["controller-revision-hash"]
            for i in phase.items
            for a in i.actions
            if isinstance(a, Create)
        ]
        assert names == ["web-old", "web-new"]


class TestUpdate:
    def test_one_at_a_time_from_the_top(self):
        pods = [pod(i, "web-old") for i in range(3)]
        assert said(plan(stateful_set(3), pods, old=True)) == ["delete web-2"]

    def test_waits_while_one_is_down(self):
        pods = [pod(0, "web-old"), pod(1, "web-old"), pod(2, ready=False)]
        assert said(plan(stateful_set(3), pods, old=True)) == []

    def test_partition(self):
        pods = [pod(0, "web-old"), pod(1, "web-old"), pod(2)]
        partitioned = stateful_set(3, updateStrategy=rolling(partition=2))
        assert said(plan(partitioned, pods, old=True)) == []

    def test_max_unavailable(self):
        pods = [pod(i, "web-old") for i in range(4)]
        wide = stateful_set(4, updateStrategy=rolling(maxUnavailable=2))
        assert said(plan(wide, pods, old=True)) == ["delete web-3", "delete web-2"]
        assert said(plan(wide, [*pods[:3], pod(3, ready=False)], old=True)) == ["delete web-2"]

    def test_parallel_replaces_old_pods_that_are_down_beyond_the_budget(self):
        pods = [pod(0, "web-old", ready=False), pod(1, "web-old", ready=False), pod(2, "web-old")]
        assert said(plan(stateful_set(3), pods, old=True)) == ["delete web-1", "delete web-0"]

    def test_ordered_keeps_waiting_for_a_broken_old_pod(self):
        pods = [pod(0, "web-old"), pod(1, "web-old", ready=False)]
        assert said(plan(stateful_set(2, parallel=False), pods, old=True)) == []

    def test_on_delete_touches_nothing(self):
        pods = [pod(i, "web-old") for i in range(2)]
        assert said(plan(stateful_set(2, updateStrategy={"type": "OnDelete"}), pods, old=True)) == []

    @pytest.mark.parametrize(
        ("value", "replicas", "expected"), [(3, 10, 3), ("25%", 10, 2), ("1%", 10, 1), ("100%", 3, 3), ("50%", 0, 1)]
    )
    def test_max_unavailable_is_rounded_down_to_at_least_one(self, value, replicas, expected):
        assert max_unavailable(value, replicas) == expected

    def test_max_unavailable_that_cannot_be_read(self):
        with pytest.raises(InvalidRequest, match="neither a number nor a percentage"):
            max_unavailable("many", 3)


class TestStatus:
    def test_counts(self):
        pods = [pod(0, "web-old"), pod(1, ready=False), pod(2, deleting=True)]
        status = plan(stateful_set(3, updateStrategy={"type": "OnDelete"}), pods, old=True).status
        assert status == {
            "observedGeneration": 2,
            "replicas": 3,
            "readyReplicas": 2,
            "availableReplicas": 2,
            "currentReplicas": 1,
            "updatedReplicas": 1,
            "currentRevision": "web-old",
            "updateRevision": "web-new",
            "collisionCount": 0,
        }

    def test_empty_counts_are_left_out(self):
        status = plan(stateful_set(3), []).status
        assert status["replicas"] == status["availableReplicas"] == 0
        assert not {"readyReplicas", "currentReplicas", "updatedReplicas"} & status.keys()

    def test_the_update_is_complete_when_all_are_updated_and_ready(self):
        status = plan(stateful_set(2), [pod(0), pod(1)], old=True).status
        assert (status["currentRevision"], status["currentReplicas"]) == ("web-new", 2)

    def test_pods_about_to_be_replaced_are_not_counted_as_current(self):
        status = plan(stateful_set(2), [pod(0, "web-old"), pod(1, "web-old")], old=True).status
        assert status["currentReplicas"] == 1

    def test_min_ready_seconds(self):
        waiting = stateful_set(2, minReadySeconds=10)
        found = plan(waiting, [pod(0), pod(1, since=-4)])
        assert found.status["availableReplicas"] == 1
        assert found.after == pytest.approx(6.001)
        assert plan(waiting, [pod(0), pod(1)]).after == 0

    def test_differs(self):
        status = plan(stateful_set(1), [pod(0)]).status
        assert status_differs(stateful_set(1), status)
        assert not status_differs(stateful_set(1, status=status), status)
        assert status_differs(stateful_set(1, status=status | {"observedGeneration": 1}), status)
        assert not status_differs(stateful_set(1, status=status | {"observedGeneration": 9}), status)


class TestStatusOfARoundThatStops:
    def test_only_deletions_that_were_carried_out_are_counted_down(self):
        olds = [pod(i, "web-old") for i in range(3)]
        found = plan(stateful_set(3, updateStrategy=rolling(maxUnavailable=2)), olds, old=True)
        assert said(found) == ["delete web-2", "delete web-1"]
        assert [found.status_after(n)["currentReplicas"] for n in (0, 1, 2)] == [3, 2, 1]
        assert found.status == found.status_after(2)

    def test_of_two_pods_at_one_ordinal_one_is_counted(self):
        twin = pod(1)
        twin["metadata"] |= {"name": "web-01", "uid": "twin"}
        assert plan(stateful_set(2), [pod(0), pod(1), twin]).status["replicas"] == 2


class TestClaims:
    SPEC: ClassVar = {
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]
    }

    def test_claims_come_before_the_pod(self):
        found = plan(stateful_set(1, **self.SPEC), [])
        assert said(found) == ["create data-web-0", "create web-0"]
        volumes = found.phases[0].items[0].actions[1].obj["spec"]["volumes"]
        assert volumes == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}}]

    def test_a_claim_that_is_being_deleted_refuses_the_pod(self):
        claims = {"data-web-0": {"metadata": {"name": "data-web-0", "deletionTimestamp": "x"}}}
        found = plan(stateful_set(1, **self.SPEC), [], claims=claims)
        assert said(found) == ["emit FailedCreate"]
        assert found.phases[0].items[0].refused == "pvc data-web-0 is being deleted"

    def test_retention(self):
        spec = self.SPEC | {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Delete"}}
        claim = {"metadata": {"name": "data-web-0", "namespace": "default", "uid": "c", "resourceVersion": "1"}}
        found = plan(stateful_set(0, **spec), [pod(0)], claims={"data-web-0": claim})
        patch = found.phases[1].items[0].actions[0]
        assert isinstance(patch, Patch)
        assert [r["kind"] for r in patch.body["metadata"]["ownerReferences"]] == ["Pod"]
        found = plan(stateful_set(1, **spec), [pod(0)], claims={"data-web-0": claim})
        patch = found.phases[0].items[0].actions[0]
        assert isinstance(patch, Patch)
        assert [r["kind"] for r in patch.body["metadata"]["ownerReferences"]] == ["StatefulSet"]

    RETAINED: ClassVar = SPEC | {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}}

    def test_a_new_claim_has_no_owner_before_there_is_a_pod(self):
        found = plan(stateful_set(1, **self.RETAINED), [])
        (create, *_) = found.phases[0].items[0].actions
        assert isinstance(create, Create)
        assert "ownerReferences" not in create.obj["metadata"]

    def test_a_claim_that_is_there_gets_its_owner_after_the_pod(self):
        claim = {"metadata": {"name": "data-web-0", "namespace": "default", "uid": "c", "resourceVersion": "1"}}
        found = plan(stateful_set(1, **self.RETAINED), [], claims={"data-web-0": claim})
        assert said(found) == ["create web-0", "patch data-web-0"]

    def test_a_pending_pod_gets_claims_with_their_owner(self):
        waiting = pod(0, phase="Pending")
        waiting["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}}]
        found = plan(stateful_set(1, **self.RETAINED), [waiting])
        assert said(found) == ["create data-web-0"]
        (create,) = found.phases[0].items[0].actions
        assert isinstance(create, Create)
        assert [r["kind"] for r in create.obj["metadata"]["ownerReferences"]] == ["StatefulSet"]

    def test_a_pod_of_another_set_is_given_the_claims_that_it_lacks(self):
        adopted = pod(0)
        adopted["spec"]["volumes"] = [{"name": "tmp", "emptyDir": {}}, {"name": "data", "emptyDir": {}}]
        found = plan(stateful_set(1, **self.SPEC), [adopted])
        assert said(found) == ["create data-web-0", "patch web-0"]
        patch = found.phases[0].items[0].actions[1]
        assert isinstance(patch, Patch)
        assert patch.body["spec"]["volumes"] == [
            {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}},
            {"name": "tmp", "emptyDir": {}},
        ]

    def test_it_is_not_changed_while_such_a_claim_is_being_deleted(self):
        claims = {"data-web-0": {"metadata": {"name": "data-web-0", "deletionTimestamp": "x"}}}
        found = plan(stateful_set(1, **self.SPEC), [pod(0)], claims=claims)
        assert said(found) == ["emit FailedUpdate"]
        assert found.phases[0].items[0].refused


@given(st.integers(0, 3000))
def test_batches_double_and_lose_nothing(count):
    items = [Item(refused=str(i)) for i in range(count)]
    found = batches(items)
    assert [i for batch in found for i in batch] == items
    assert all(len(b) <= 500 for b in found)
    assert [len(b) for b in found[:3]] == [1, 2, 4][: len(found)] or count < 7


_pods = st.lists(
    st.builds(
        lambda o, r, ready, deleting: pod(o, r, ready=ready, deleting=deleting),
        st.integers(0, 7),
        st.sampled_from(["web-old", "web-new"]),
        st.booleans(),
        st.booleans(),
    ),
    unique_by=lambda p: p["metadata"]["name"],
)


@given(_pods, st.integers(0, 6), st.integers(0, 6), st.integers(1, 4), st.booleans())
def test_budget_partition_and_names_hold_in_every_state(pods, replicas, partition, budget, parallel):
    found = plan(
        stateful_set(replicas, parallel=parallel, updateStrategy=rolling(partition=partition, maxUnavailable=budget)),
        pods,
        old=True,
    )
    by_name = {p["metadata"]["name"]: p for p in pods}
    actions = said(found)
    assert len(actions) == len(set(actions))
    available = {
        n
        for n, p in by_name.items()
        if "deletionTimestamp" not in p["metadata"] and p["status"]["conditions"][0]["status"] == "True"
    }
    taken = 0
    for text in actions:
        verb, _, name = text.partition(" ")
        ordinal = int(name.rpartition("-")[2])
        if verb == "create":
            assert name not in by_name
            assert ordinal < replicas
        else:
            assert "deletionTimestamp" not in by_name[name]["metadata"]
            if ordinal < replicas:
                assert ordinal >= partition
                taken += name in available
    down = sum(f"web-{i}" not in available for i in range(replicas))
    assert taken <= max(0, budget - down)
