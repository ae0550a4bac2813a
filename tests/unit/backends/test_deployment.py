"""Leaders in a Deployment: what is written, and what is read of live ones (30 §4, §12, §14)."""

from __future__ import annotations

from typing import Any

import pytest

from lwskit.api import names
from lwskit.backends.deployment import DeploymentLeaders
from lwskit.backends.registry import Backends, find
from lwskit.backends.statefulset import StatefulSetLeaders, StatefulSetWorkers
from lwskit.groups import hashed, ordinal
from lwskit.groups.model import GroupId
from lwskit.groups.ports import Capability
from lwskit.groups.templates import hashed_leader_plan, leader_plan
from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.objects import Obj
from tests.unit.groups.hash_objects import HASHED, NOW, deployment, hash_lws, leader, worker
from tests.unit.groups.small_cluster import make_lws


def test_the_deployment_in_full() -> None:
    """30 §18 line 10: every field that is written, as 30 §4 lists them; nothing else."""
    lws = hash_lws(replicas=3, size=2)
    lws["metadata"] |= {"labels": {"team": "a"}, "annotations": {"note": "b"}}
    lws["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"] = {"maxUnavailable": "50%", "maxSurge": 2}
    labels = {names.NAME_LABEL: "x", names.WORKER_INDEX_LABEL: "0"}
    assert HASHED.render(hashed_leader_plan(lws, "rev")) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "x",
            "namespace": "ns",
            "labels": {"team": "a", names.NAME_LABEL: "x", names.REVISION_LABEL: "rev", names.ROLE_LABEL: "leader"},
            "annotations": {"note": "b", names.REPLICAS_ANNOTATION: "3"},
            "ownerReferences": [
                {
                    "apiVersion": names.API_VERSION,
                    "kind": names.KIND,
                    "name": "x",
                    "uid": "set-uid",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": labels},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "50%", "maxSurge": 2}},
            "template": {
                "metadata": {
                    "labels": {**labels, names.REVISION_LABEL: "rev"},
                    "annotations": {names.SIZE_ANNOTATION: "2", names.GROUP_IDENTITY_ANNOTATION: "Hash"},
                },
                "spec": {
                    "containers": [{"name": "c", "image": "a"}],
                    "subdomain": "x",
                    "readinessGates": [{"conditionType": names.GROUP_READY_GATE}],
                },
            },
        },
    }


def template_keys(template: Obj) -> tuple[set[str], set[str], set[str]]:
    """Keys of labels, annotations and the pod's spec."""
    meta = template["metadata"]
    return set(meta["labels"]), set(meta["annotations"]), set(template["spec"])


@pytest.mark.parametrize("size", [1, 2])
def test_the_keys_of_templates_are_frozen(size: int) -> None:
    """A further key would replace every group of every set on an upgrade of the manager: both modes have just these."""
    places = {names.NAME_LABEL, names.WORKER_INDEX_LABEL, names.REVISION_LABEL}
    plain = leader_plan(make_lws(size=size), "rev", partition=0, replicas=1).template
    assert template_keys(plain) == (places, {names.SIZE_ANNOTATION}, {"containers"})
    keyed = hashed_leader_plan(hash_lws(size=size), "rev").template
    gates = {"readinessGates"} if size > 1 else set[str]()
    notes = {names.SIZE_ANNOTATION, names.GROUP_IDENTITY_ANNOTATION}
    assert template_keys(keyed) == (places, notes, {"containers", "subdomain"} | gates)


def test_readiness_gates_of_the_user_stay_and_ours_comes_once() -> None:
    for given, wanted in (
        ([{"conditionType": "a"}], ["a", names.GROUP_READY_GATE]),
        ([{"conditionType": names.GROUP_READY_GATE}], [names.GROUP_READY_GATE]),
    ):
        lws = hash_lws()
        lws["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["readinessGates"] = given
        made = hashed_leader_plan(lws, "rev").template["spec"]["readinessGates"]
        assert [gate["conditionType"] for gate in made] == wanted
        assert len(given) == 1


def test_counts_of_restarts_stay_on_the_set() -> None:
    """In both modes; they would be changes of the Deployment, too, whose generation grows with its annotations."""
    lws = hash_lws()
    notes = {names.GROUP_RESTART_COUNTS_ANNOTATION: "{}", names.GROUP_RESTART_LEADERS_ANNOTATION: "{}", "a": "b"}
    lws["metadata"]["annotations"] = notes
    assert hashed_leader_plan(lws, "rev").annotations == {"a": "b", names.REPLICAS_ANNOTATION: "2"}
    assert leader_plan(lws, "rev", partition=0, replicas=2).annotations == {"a": "b", names.REPLICAS_ANNOTATION: "2"}


def test_what_a_deployment_says_of_itself() -> None:
    live = deployment(hash_lws(), "rev", replicas=3, readyReplicas=2, updatedReplicas=1)
    said = HASHED.observe(live)
    assert (said.replicas, said.status_replicas, said.status_ready, said.status_updated) == (2, 3, 2, 1)
    assert (said.revision, said.recorded, said.generation, said.observed_generation) == ("rev", "2", 2, 2)
    assert not said.deleting
    live["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    del live["status"], live["spec"]["replicas"]
    said = HASHED.observe(live)
    assert (said.deleting, said.replicas, said.status_replicas, said.observed_generation) == (True, 1, 0, 0)
    assert list(HASHED.ordinals(live)) == []


def test_a_leader_is_known_by_its_replica_set() -> None:
    pod = leader(1)
    assert HASHED.group_of(pod) == GroupId("rs", pod["metadata"]["labels"][names.GROUP_KEY_LABEL])
    assert HASHED.group_of(worker(1)) is None
    plain = {**pod, "metadata": {**pod["metadata"], "labels": {}}}
    assert HASHED.group_of(plain) is None
    assert StatefulSetLeaders().group_of(pod) is None


def test_leaders_go_as_their_replica_set_ranks_them() -> None:
    """30 §14: those that are not scheduled, then those that are not ready; who has ended or goes is no candidate."""
    pods = [leader(1), leader(2, ready=False), leader(3, leaving=True), leader(4, phase="Failed")]
    for pod in pods:
        pod["spec"]["nodeName"] = "n"
    waiting = leader(5, gated=True, phase="Pending", ready=False)
    victims = HASHED.rank([*pods, waiting], NOW)
    assert [v.uid for v in victims] == ["leader-5", "leader-2", "leader-1"]
    assert [v.why for v in victims] == ["not scheduled", "not ready", ""]


class Lacking(DeploymentLeaders):
    capabilities = frozenset({Capability.READINESS_PACED})


class Created(DeploymentLeaders):
    write = "create"


@pytest.mark.parametrize(
    ("backend", "text"),
    [(Lacking(), "cannot lead sets in Hash mode, for it lacks ranked-scale-down"), (Created(), "would only create")],
)
def test_a_backend_that_cannot_serve_the_mode_is_refused(backend: Any, text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        hashed.check(backend)


def test_each_mode_has_its_backend() -> None:
    found = find()
    hashed.check(found.hashed)
    ordinal.check(found.leaders)
    with pytest.raises(ConfigurationError, match="Ordinal mode"):
        ordinal.check(found.hashed)
    with pytest.raises(ConfigurationError, match="Hash mode"):
        hashed.check(found.leaders)
    assert found.leaders_of(hash_lws()) is found.hashed
    assert found.leaders_of(make_lws()) is found.leaders is found.leaders_of(None)
    own = Backends(StatefulSetLeaders(), StatefulSetWorkers(), Lacking())
    assert own.leading == (own.leaders, own.hashed)
