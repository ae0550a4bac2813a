"""What the Deployment controller decides (specification: 30 §13), round by round."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lwskit.embedded.controllers import deployment_revisions as revisions
from lwskit.embedded.controllers import deployment_status as conditions
from lwskit.embedded.controllers.deployment_plan import RoundPlan, Snapshot, decide
from lwskit.runtime import deployment_sizes as scale
from lwskit.runtime import deployment_templates as templates
from lwskit.runtime.plan import Delete, Patch

from .objects import NOW, at, template

DESIRED, MOST = scale.DESIRED, scale.MOST


def deployment(replicas: int = 4, image: str = "new", *, surge: Any = 1, down: Any = 1, **spec: Any) -> dict[str, Any]:
    status = spec.pop("status", {})
    annotations = spec.pop("annotations", {})
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": down}}
    return {
        "metadata": {
            "name": "web",
            "namespace": "default",
            "uid": "d",
            "generation": 2,
            "resourceVersion": "9",
            "annotations": annotations,
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template(image),
            "strategy": rolling,
            "progressDeadlineSeconds": 600,
        }
        | spec,
        "status": status,
    }


def replica_set(
    image: str,
    size: int,
    available: int | None = None,
    *,
    age: int = 100,
    revision: int = 1,
    desired: int = 4,
    most: int = 5,
    pods: int | None = None,
) -> dict[str, Any]:
    made = template(image)
    made["metadata"]["labels"] = {**made["metadata"]["labels"], templates.HASH_LABEL: image}
    status = {"replicas": size if pods is None else pods, "observedGeneration": 1, "terminatingReplicas": 0}
    status |= {"availableReplicas": size if available is None else available}
    annotations = {revisions.REVISION: str(revision), DESIRED: str(desired), MOST: str(most)}
    return {
        "metadata": {
            "name": f"web-{image}",
            "namespace": "default",
            "uid": image,
            "resourceVersion": "5",
            "generation": 1,
            "creationTimestamp": at(-age),
            "annotations": annotations,
        },
        "spec": {"replicas": size, "template": made, "selector": {"matchLabels": {"app": "web"}}},
        "status": status,
    }


def plan(given: dict[str, Any], *sets: dict[str, Any], pods: dict[str, list] | None = None) -> RoundPlan:
    return decide(Snapshot(given, sets, pods or {}, NOW))


def at_last(given: dict[str, Any], *sets: dict[str, Any]) -> RoundPlan:
    """The round after those that only note something, while the ReplicaSets stay as they are."""
    found = plan(given, *sets)
    while found.again:
        assert found.written is not None
        given = found.written
        found = plan(given, *sets)
    return found


def sizes(found: RoundPlan) -> dict[str, int]:
    """The new sizes, with that of the ReplicaSet to be created under `created`."""
    made = {"created": found.create.obj["spec"]["replicas"]} if found.create else {}
    for action in found.actions:
        if isinstance(action, Patch) and "replicas" in action.body.get("spec", {}):
            made[action.key.name.removeprefix("web-")] = action.body["spec"]["replicas"]
    return made


def reason(found: RoundPlan, type_: str = conditions.PROGRESSING) -> str | None:
    assert found.written is not None
    return (conditions.find(found.written["status"].get("conditions", ()), type_) or {}).get("reason")


class TestLimits:
    @pytest.mark.parametrize(
        ("surge", "down", "replicas", "limits"),
        [
            ("25%", "25%", 4, (1, 1)),
            ("25%", "25%", 10, (3, 2)),
            ("1%", "1%", 2, (1, 0)),
            (0, "1%", 2, (0, 1)),
            (3, 2, 1, (3, 2)),
        ],
    )
    def test_surge_is_rounded_up_and_unavailable_down_and_not_both_are_0(self, surge, down, replicas, limits):
        assert scale.limits(deployment(replicas, surge=surge, down=down)) == limits

    def test_no_more_than_all_may_be_unavailable(self):
        assert scale.max_unavailable(deployment(1, down=5)) == 1
        assert scale.max_unavailable(deployment(0, down=5)) == 0

    def test_recreate_has_neither(self):
        given = deployment(strategy={"type": "Recreate"})
        assert (scale.max_surge(given), scale.max_unavailable(given)) == (0, 0)


class TestRollingUpdate:
    """30 §13, rules 1 to 3."""

    def test_the_first_replica_set_is_of_the_whole_size(self):
        found = plan(deployment(4))
        assert sizes(found) == {"created": 4}
        made = found.create.obj
        assert made["metadata"]["annotations"] == {revisions.REVISION: "1", DESIRED: "4", MOST: "5"}
        hash_ = made["metadata"]["labels"][templates.HASH_LABEL]
        assert made["metadata"]["name"] == f"web-{hash_}"
        assert made["spec"]["selector"]["matchLabels"] == {"app": "web", templates.HASH_LABEL: hash_}
        assert found.create.on_success.note == f"Scaled up replica set web-{hash_} from 0 to 4"
        assert reason(found) == "NewReplicaSetCreated"

    def test_a_new_template_gets_the_surge_and_old_pods_that_may_be_unavailable_go_at_once(self):
        found = plan(deployment(4), replica_set("old", 4))
        assert sizes(found) == {"created": 1, "old": 3}
        assert found.written["metadata"]["annotations"][revisions.REVISION] == "2"

    def test_growing_comes_before_shrinking(self):
        found = plan(deployment(4), replica_set("old", 3), replica_set("new", 1, 0, age=5, revision=2))
        assert sizes(found) == {"new": 2}

    def test_an_unavailable_new_pod_holds_the_old_ones(self):
        found = plan(deployment(4), replica_set("old", 3), replica_set("new", 2, 0, age=5, revision=2))
        assert sizes(found) == {}

    def test_available_new_pods_take_old_ones_away(self):
        found = plan(deployment(4), replica_set("old", 3), replica_set("new", 2, 2, age=5, revision=2))
        assert sizes(found) == {"old": 1}

    def test_unhealthy_old_pods_go_first_and_of_the_oldest_set(self):
        oldest, older = replica_set("a", 2, 2, age=300), replica_set("b", 2, 0, age=200, revision=2)
        found = plan(deployment(4, surge=0, down=2), older, oldest, replica_set("new", 0, age=5, revision=3))
        # At least two are to be available, and the two that are not do not count as these.
        assert sizes(found) == {"b": 0}

    def test_a_surplus_of_the_new_set_goes(self):
        found = plan(deployment(2), replica_set("new", 3, desired=2))
        assert sizes(found) == {"new": 2}

    @given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 4), st.integers(0, 4), st.data())
    def test_there_are_never_more_or_fewer_than_allowed(self, replicas, old, surge, down, data):
        """Rules 1 and 2: no more than replicas and surge, and no available pod below the least is taken."""
        down = down or (0 if surge else 1)
        old_available = data.draw(st.integers(0, old))
        new = data.draw(st.integers(0, replicas))
        new_available = data.draw(st.integers(0, new))
        given = deployment(replicas, surge=surge, down=down)
        sets = (
            replica_set("old", old, old_available, desired=replicas),
            replica_set("new", new, new_available, age=5, revision=2, desired=replicas),
        )
        found = sizes(plan(given, *sets))
        after_new, after_old = found.get("new", new), found.get("old", old)
        assert after_new <= replicas
        if after_new > new:
            assert after_new + old <= replicas + surge
            assert after_old == old
        # Old pods that are not available go before those that are.
        left = new_available + min(old_available, after_old)
        least = replicas - min(down, replicas)
        assert after_old == old or left >= min(least, old_available + new_available)


class TestScaling:
    def test_one_active_set_gets_the_whole_size(self):
        assert sizes(plan(deployment(7), replica_set("new", 4, revision=2), replica_set("old", 0, age=300))) == {
            "new": 7
        }

    def test_in_the_middle_of_a_rollout_it_is_shared_out(self):
        """Of 10 and 3 more: 8 old and 5 new ones; for 15 and 3 (30% rounded up to 5) more, 20 in all."""
        sets = (
            replica_set("old", 8, desired=10, most=13),
            replica_set("new", 5, 0, age=5, revision=2, desired=10, most=13),
        )
        found = plan(deployment(15, surge=3, down=2), *sets)
        assert sizes(found) == {"old": 11, "new": 7}
        assert all(a.body["metadata"]["annotations"][DESIRED] == "15" for a in found.actions)

    def test_to_nothing(self):
        sets = (replica_set("old", 3), replica_set("new", 2, 0, age=5, revision=2))
        assert sizes(plan(deployment(0), *sets)) == {"old": 0, "new": 0}

    def test_old_sets_go_when_the_new_one_is_saturated(self):
        found = plan(deployment(4, paused=True), replica_set("old", 1), replica_set("new", 4, age=5, revision=2))
        assert sizes(found) == {"old": 0}

    @given(st.lists(st.integers(1, 9), min_size=2, max_size=4), st.integers(1, 30), st.integers(0, 3))
    def test_nothing_is_lost_in_sharing(self, before, replicas, surge):
        sets = [replica_set(f"s{i}", n, 0, age=100 - i, desired=5, most=sum(before)) for i, n in enumerate(before)]
        shared = scale.proportional(deployment(replicas, surge=surge), sets)
        assert all(size >= 0 for _, size in shared)
        # The first has what is left over by rounding, and cannot be less than nothing.
        assert sum(size for _, size in shared) == replicas + surge or shared[0][1] == 0


class TestPause:
    def test_a_paused_deployment_makes_no_replica_set(self):
        found = plan(deployment(4, paused=True), replica_set("old", 4))
        assert sizes(found) == {}
        assert reason(found) == "DeploymentPaused"

    def test_it_scales_though(self):
        assert sizes(plan(deployment(6, paused=True), replica_set("old", 4))) == {"old": 6}

    def test_resumed(self):
        paused = conditions.condition("Progressing", "Unknown", conditions.PAUSED, "", NOW)
        status = {"conditions": [paused], "replicas": 4, "updatedReplicas": 4, "availableReplicas": 1}
        found = plan(deployment(4, status=status), replica_set("new", 4, 1))
        assert reason(found) == "DeploymentResumed"


class TestRecreate:
    given = deployment(4, strategy={"type": "Recreate"})

    def test_old_pods_go_first(self):
        assert sizes(plan(self.given, replica_set("old", 4))) == {"old": 0}

    def test_it_waits_for_their_end(self):
        pod = {"metadata": {"name": "p", "deletionTimestamp": at(0)}, "status": {"phase": "Running"}}
        assert sizes(plan(self.given, replica_set("old", 0), pods={"old": [pod]})) == {}
        assert sizes(plan(self.given, replica_set("old", 0, pods=1))) == {}

    def test_then_all_new_ones_come(self):
        pod = {"metadata": {"name": "p"}, "status": {"phase": "Failed"}}
        assert sizes(plan(self.given, replica_set("old", 0), pods={"old": [pod]})) == {"created": 4}


class TestRevisions:
    def test_back_to_an_old_template_is_a_new_revision(self):
        found = plan(deployment(4, "old"), replica_set("old", 0, age=300), replica_set("new", 4, revision=2))
        (patch,) = found.actions
        annotations = patch.body["metadata"]["annotations"]
        assert (annotations[revisions.REVISION], annotations[revisions.HISTORY]) == ("3", "1")
        assert found.again

    def test_annotations_are_copied_but_for_those_that_are_its_own(self):
        mine = {"cause": "x", revisions.REVISION: "7", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
        found = plan(deployment(4, annotations=mine)).create.obj["metadata"]["annotations"]
        assert found == {"cause": "x", revisions.REVISION: "1", DESIRED: "4", MOST: "5"}

    def test_the_oldest_of_equal_sets_is_the_new_one(self):
        first, second = replica_set("new", 1, age=50), replica_set("new", 1, age=20)
        assert templates.newest_of_template(deployment(), [second, first]) is first

    def test_the_history_keeps_to_its_limit(self):
        """Without those that still have pods, or whose last change was not seen yet."""
        status = {"updatedReplicas": 4, "replicas": 4, "availableReplicas": 4, "observedGeneration": 2}
        old = [replica_set(name, 0, age=300 - i, revision=i) for i, name in enumerate("abcd")]
        old[1]["status"]["replicas"] = 1
        given = deployment(4, revisionHistoryLimit=1, status=status)
        found = plan(given, *old, replica_set("new", 4, age=5, revision=9))
        deleted = [a.key.name for a in found.actions if isinstance(a, Delete)]
        assert deleted == ["web-a", "web-c"]

    def test_a_paused_deployment_may_lose_the_set_that_it_gives_its_size(self):
        given = deployment(2, paused=True, revisionHistoryLimit=0)
        found = plan(given, replica_set("old", 0, desired=0))
        assert sizes(found) == {"old": 2}
        assert [a.key.name for a in found.actions if isinstance(a, Delete)] == ["web-old"]

    def test_the_history_of_revisions_gets_no_longer_than_its_limit(self):
        annotations = {revisions.REVISION: "900", revisions.HISTORY: ",".join(str(n) for n in range(100, 600))}
        found = revisions.annotations_for_new(deployment(), {"metadata": {"annotations": annotations}}, 1000)
        history = found[revisions.HISTORY]
        assert len(history) <= 2000
        assert history.endswith("599,900")

    def test_names_do_not_depend_on_the_order_of_fields_and_change_with_collisions(self):
        one = template("a")
        other = dict(reversed(list(one.items())))
        assert revisions.template_hash(one, None) != revisions.template_hash(one, 1)
        assert templates.same_template(one, other)

    @pytest.mark.parametrize(("wanted", "image"), [("0", "old"), ("1", "old"), ("2", "new"), ("9", "new")])
    def test_rollback_of_old_clients(self, wanted, image):
        given = deployment(4, annotations={revisions.ROLLBACK: wanted, "cause": "second"})
        sets = replica_set("old", 0, age=300), replica_set("new", 4, revision=2)
        sets[0]["metadata"]["annotations"]["cause"] = "first"
        sets[1]["metadata"]["annotations"]["cause"] = "second"
        found = plan(given, *sets)
        patch = found.actions[-1]
        assert patch.body["metadata"]["annotations"][revisions.ROLLBACK] is None
        if image == "old":
            assert patch.body["spec"]["template"]["spec"]["containers"][0]["image"] == "old"
            assert patch.body["metadata"]["annotations"]["cause"] == "first"
            assert patch.on_success.note == 'Rolled back deployment "web" to revision 1'
        else:
            assert "spec" not in patch.body
            told = {"2": "DeploymentRollbackTemplateUnchanged", "9": "DeploymentRollbackRevisionNotFound"}
            assert found.actions[0].event.reason == told[wanted]


class TestProgress:
    def test_pods_that_were_there_before_the_deployment_are_progress(self):
        """What is noted first, that they were found, comes without their number."""
        first = plan(deployment(4), replica_set("new", 4, 1))
        assert reason(first) == "FoundNewReplicaSet"
        assert "replicas" not in first.written["status"]
        assert reason(at_last(deployment(4), replica_set("new", 4, 1))) == "ReplicaSetUpdated"

    def status(self, **fields: Any) -> dict[str, Any]:
        return {"observedGeneration": 2} | fields

    def test_complete(self):
        found = at_last(deployment(4), replica_set("new", 4))
        assert reason(found) == "NewReplicaSetAvailable"
        assert reason(found, "Available") == "MinimumReplicasAvailable"
        assert found.after == 0

    def test_a_deadline_passes(self):
        old = conditions.condition("Progressing", "True", "ReplicaSetUpdated", "", NOW) | {"lastUpdateTime": at(-601)}
        status = self.status(replicas=4, updatedReplicas=4, conditions=[old])
        found = at_last(deployment(4, status=status), replica_set("new", 4, 0))
        assert reason(found) == "ProgressDeadlineExceeded"
        assert reason(found, "Available") == "MinimumReplicasUnavailable"

    def test_before_that_it_is_looked_at_again(self):
        old = conditions.condition("Progressing", "True", "ReplicaSetUpdated", "", NOW) | {"lastUpdateTime": at(-500)}
        status = self.status(replicas=4, updatedReplicas=4, conditions=[old])
        found = at_last(deployment(4, status=status), replica_set("new", 4, 0))
        assert reason(found) == "ReplicaSetUpdated"
        assert found.after == pytest.approx(101)

    def test_failures_of_the_new_set_are_told(self):
        new = replica_set("new", 4, 0)
        failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "no"}
        new["status"]["conditions"] = [failure | {"lastTransitionTime": at(-5)}]
        assert reason(at_last(deployment(4), new), "ReplicaFailure") == "FailedCreate"

    def test_nothing_is_written_that_is_written_already(self):
        first = at_last(deployment(4), replica_set("new", 4))
        again = decide(Snapshot(first.written, [replica_set("new", 4)], {}, NOW))
        assert again.written is None
        assert not again.actions
