"""Revisions of DisaggregatedSets (50 §4; checklist 15 to 19)."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from lwskit.api import crds
from lwskit.api import disaggregated_names as names
from lwskit.disaggregated import revision
from lwskit.disaggregated.model import Child
from lwskit.embedded.schema import apply_defaults
from lwskit.runtime.objects import Obj
from tests.planner_cases import Hash, hashes

SCHEMA = crds.disaggregatedset_crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
OWNED = [Child.of({"metadata": {"name": "of before", "labels": {names.REVISION_LABEL: "0ld0ld00"}}, "spec": {}})]
"""The children of a set that was not made by this program."""
MARK = {names.REVISION_HASH_VERSION_ANNOTATION: names.HASH_VERSION}


def role(name: str, replicas: int = 1, **spec: Any) -> Obj:
    container = {
        "name": "nginx",
        "image": "nginx:1.27",
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
    }
    template = {"size": 1, "workerTemplate": {"spec": {"containers": [container]}}}
    return {"name": name, "spec": {"replicas": replicas, "leaderWorkerTemplate": template, **spec}}


def make(*roles: Obj, **spec: Any) -> Obj:
    """A set as the API server keeps it, with its defaults."""
    ds = {"metadata": {"name": "nginx-disagg", "annotations": MARK}, "spec": {"roles": list(roles), **spec}}
    ds = copy.deepcopy(ds)
    apply_defaults(ds, SCHEMA)
    return ds


def sample() -> Obj:
    return make(role("prefill", 1), role("decode", 2))


def legacy_sample() -> Obj:
    container = {"name": "main", "image": "image:v1"}
    template = {"size": 2, "workerTemplate": {"spec": {"containers": [container]}}}
    roles = [{"name": name, "spec": {"leaderWorkerTemplate": template}} for name in ("prefill", "decode")]
    return {"metadata": {"name": "legacy"}, "spec": {"roles": roles}}


@pytest.mark.parametrize("vector", hashes(), ids=lambda vector: vector.algorithm)
def test_bytes_and_their_revision(vector: Hash) -> None:
    text, found = {
        "v1": (revision.legacy_hashed(legacy_sample()), revision.legacy_revision_of(legacy_sample())),
        "v2": (revision.hashed(sample()), revision.revision_of(sample())),
    }[vector.algorithm]
    assert text == vector.text
    assert found == vector.revision == hashlib.sha256(vector.text.encode()).hexdigest()[:8]


def test_the_sample_has_the_known_revision() -> None:
    """50 §23 line 15: of prefill 1 and decode 2, with the defaults of the API."""
    assert revision.resolve(sample(), []) == revision.Resolved("69150551")


def test_the_known_input_has_the_known_legacy_revision() -> None:
    """50 §23 line 16: for a set without a marker that has children."""
    assert revision.resolve(legacy_sample(), OWNED) == revision.Resolved("c51abc75")


def changed(change: Callable[[Obj], object]) -> Obj:
    ds = sample()
    change(ds["spec"])
    return ds


LIVE: dict[str, Callable[[Obj], object]] = {
    "order of roles": lambda spec: spec["roles"].reverse(),
    "replicas": lambda spec: spec["roles"][0]["spec"].update(replicas=7),
    "scaling": lambda spec: spec["roles"][0].update(scaling={"mode": "External"}),
    "sub-roles": lambda spec: spec["roles"][0].update(subRoles=[{"name": "a", "replicas": 2}]),
    "rolloutStrategy": lambda spec: spec["roles"][0]["spec"].update(
        rolloutStrategy={"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxSurge": 3}}
    ),
    "groupReplacementPolicy": lambda spec: spec["roles"][0]["spec"].update(groupReplacementPolicy="Immediate"),
    "slices": lambda spec: spec.update(slices=3),
    "placementPolicy": lambda spec: spec.update(placementPolicy={"type": "ExclusiveSlice", "topology": "rack"}),
    "scalingPolicy": lambda spec: spec.update(scalingPolicy={"duringRollout": "AdvanceRollout"}),
    "the default identity left out": lambda spec: spec["roles"][0]["spec"].pop("groupIdentity"),
    "the default termination policy left out": lambda spec: spec["roles"][0]["spec"].pop("podTerminationPolicy"),
    "a quantity spelled otherwise": lambda spec: spec["roles"][0]["spec"]["leaderWorkerTemplate"]["workerTemplate"][
        "spec"
    ]["containers"][0]["resources"]["requests"].update(cpu="0.05"),
    "an empty map": lambda spec: spec["roles"][0].update(metadata={"labels": {}}),
}
"""Changes that start no rollout."""


@pytest.mark.parametrize("change", LIVE.values(), ids=LIVE)
def test_counts_pace_and_order_do_not_change_the_revision(change: Callable[[Obj], object]) -> None:
    """50 §23 line 17: they are live, and start no rollout."""
    after = changed(change)
    assert after != sample()
    assert revision.resolve(after, OWNED) == revision.Resolved("69150551")


def template(spec: Obj) -> Obj:
    return spec["roles"][1]["spec"]["leaderWorkerTemplate"]


ROLLING: dict[str, Callable[[Obj], object]] = {
    "image": lambda spec: template(spec)["workerTemplate"]["spec"]["containers"][0].update(image="nginx:1.28"),
    "leader template": lambda spec: template(spec).update(leaderTemplate=template(spec)["workerTemplate"]),
    "size": lambda spec: template(spec).update(size=2),
    "restartPolicy": lambda spec: template(spec).update(restartPolicy="None"),
    "maxGroupRestarts": lambda spec: template(spec).update(maxGroupRestarts=3),
    "restartBackoff": lambda spec: template(spec).update(restartBackoff={"baseSeconds": 5}),
    "a label of pods": lambda spec: template(spec)["workerTemplate"].update(metadata={"labels": {"a": "b"}}),
    "startupPolicy": lambda spec: spec["roles"][1]["spec"].update(startupPolicy="LeaderReady"),
    "networkConfig": lambda spec: spec["roles"][1]["spec"].update(networkConfig={"subdomainPolicy": "Shared"}),
    "scheduling": lambda spec: spec["roles"][1]["spec"].update(scheduling={"replica": {}}),
    "groupIdentity": lambda spec: spec["roles"][1]["spec"].update(groupIdentity="Hash"),
    "podTerminationPolicy": lambda spec: spec["roles"][1]["spec"].update(podTerminationPolicy="Parallel"),
    "a label of the role": lambda spec: spec["roles"][1].update(metadata={"labels": {"team": "llm"}}),
    "an annotation of the role": lambda spec: spec["roles"][1].update(metadata={"annotations": {"team": "llm"}}),
    "a role more": lambda spec: spec["roles"].append(role("encode")),
    "a role less": lambda spec: spec["roles"].pop(),
    "a role's name": lambda spec: spec["roles"][1].update(name="generate"),
}
"""Changes that start a rollout."""


@pytest.mark.parametrize("change", ROLLING.values(), ids=ROLLING)
def test_what_groups_are_made_from_changes_the_revision(change: Callable[[Obj], object]) -> None:
    """50 §23 line 17: for all roles, since they roll together."""
    found = revision.resolve(changed(change), OWNED)
    assert not found.error
    assert found.revision not in ("", "69150551")


def test_all_these_revisions_differ() -> None:
    found = {name: revision.revision_of(changed(change)) for name, change in ROLLING.items()}
    assert len(set(found.values())) == len(ROLLING)


def test_an_unmarked_set_with_children_keeps_the_algorithm_of_before() -> None:
    """50 §23 line 18: in which the order of roles counts."""
    ds = legacy_sample()
    reordered = legacy_sample()
    reordered["spec"]["roles"].reverse()
    assert revision.resolve(ds, OWNED).revision == "c51abc75"
    assert revision.resolve(reordered, OWNED).revision != "c51abc75"


@pytest.mark.parametrize("annotations", [None, {}, {names.REVISION_HASH_VERSION_ANNOTATION: ""}])
def test_a_new_set_is_marked_first(annotations: Obj | None) -> None:
    """50 §23 line 11: and has no revision before, so that nobody takes it for one of before."""
    ds = sample()
    ds["metadata"]["annotations"] = annotations
    assert revision.resolve(ds, []) == revision.Resolved(must_mark=True)
    assert revision.resolve(ds, OWNED).revision == revision.legacy_revision_of(ds)


def test_a_mark_that_got_lost_is_written_again() -> None:
    """50 §4.1: a child of the revision by the current algorithm shows that the set was marked; nothing rolls."""
    ds = sample()
    ds["metadata"]["annotations"] = {}
    child = {"metadata": {"name": "chat", "labels": {names.REVISION_LABEL: "69150551"}}, "spec": {}}
    found = revision.resolve(ds, [*OWNED, Child.of(child)])
    assert found == revision.Resolved("69150551", must_mark=True)
    assert revision.resolve(sample(), [Child.of(child)]) == revision.Resolved("69150551")


def test_a_version_that_nobody_knows_is_an_error() -> None:
    """50 §23 line 19: with children and without."""
    ds = sample()
    ds["metadata"]["annotations"] = {names.REVISION_HASH_VERSION_ANNOTATION: "v9"}
    for owned in ([], OWNED):
        assert revision.resolve(ds, owned) == revision.Resolved(error='unsupported revision hash version "v9"')


def test_the_legacy_revision_names_only_an_unusual_identity() -> None:
    ds = legacy_sample()
    ds["spec"]["roles"][1]["spec"]["groupIdentity"] = "Ordinal"
    assert revision.legacy_revision_of(ds) == "c51abc75"
    ds["spec"]["roles"][1]["spec"]["groupIdentity"] = "Hash"
    assert '{"name":"decode","groupIdentity":"Hash","template":' in revision.legacy_hashed(ds)


def test_fields_come_in_the_order_of_their_declaration_and_keys_of_maps_sorted() -> None:
    container = {
        "volumeMounts": [{"mountPath": "/m", "name": "v"}],
        "ports": [{"containerPort": 80}],
        "env": [{"value": "<&>", "name": "E"}],
        "args": ["a"],
        "command": ["c"],
        "image": "i",
        "name": "main",
    }
    ds = make(role("decode"))
    ds["spec"]["roles"][0]["metadata"] = {"labels": {"b": "2", "a": "1"}}
    pods = template({"roles": [None, ds["spec"]["roles"][0]]})["workerTemplate"]["spec"]
    pods.update(nodeSelector={"z": "1", "y": "2"}, containers=[container])
    assert (
        '{"containers":[{"name":"main","image":"i","command":["c"],"args":["a"],"ports":[{"containerPort":80}],'
        '"env":[{"name":"E","value":"\\u003c\\u0026\\u003e"}],"resources":{},'
        '"volumeMounts":[{"name":"v","mountPath":"/m"}]}],"nodeSelector":{"y":"2","z":"1"}}'
    ) in revision.hashed(ds)
    assert '"metadata":{"labels":{"a":"1","b":"2"}}' in revision.hashed(ds)


def test_a_template_that_cannot_be_read_is_an_error_that_names_the_field() -> None:
    ds = sample()
    template(ds["spec"])["size"] = "two"
    error = revision.resolve(ds, OWNED).error
    assert error.startswith(
        "the revision cannot be computed: spec.roles[decode].spec.leaderWorkerTemplate.size: must be"
    )


def test_the_set_is_not_changed_and_the_same_roles_are_hashed_once() -> None:
    ds, before = sample(), sample()
    revision._revision_again.cache_clear()
    for _ in range(3):
        revision.revision_of(ds)
        ds["spec"]["slices"] = 9
    ds["spec"]["slices"] = before["spec"]["slices"]
    assert ds == before
    assert revision._revision_again.cache_info().misses == 1
