"""Validation of LeaderWorkerSets: the recorded refusals and the rules one by one (specification: 10 §6.2–6.5)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lwskit.api import defaults
from lwskit.api.validation import aggregate, validate_create, validate_update
from tests.cases import patched
from tests.unit.api.objects import CONFIG, TEMPLATE, lws, rolling

CONFORMANCE = Path(__file__).parents[2] / "conformance"
DENIED = 'admission webhook "vleaderworkerset.kb.io" denied the request: '
# Refused by the decoder or the schema before a validating webhook is asked.
SCHEMA_CASES = {
    "leader-bad-type",
    "strategy-type",
    "subgroup-type",
    "worker-template-absent",
    "name-upper",
    "labels-bad",
}


def cases(name: str, step: str) -> list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]]:
    """Name, base, changed object and recorded outcome of each case that validation decides."""
    played = yaml.safe_load((CONFORMANCE / "cases" / f"{name}.yaml").read_text())["steps"][0][step]
    outcomes = next(iter(json.loads((CONFORMANCE / "golden" / f"{name}.json").read_text()).values()))
    base = yaml.safe_load(played["base"])
    base["metadata"]["namespace"] = "default"
    return [
        (case, base, patched(base, operations), outcomes[case])
        for case, operations in played["cases"].items()
        if case not in SCHEMA_CASES
    ]


def check(errors: list[Any], outcome: dict[str, Any]) -> None:
    assert bool(errors) is not outcome["allowed"]
    message = outcome.get("message") or ""
    if message.startswith(DENIED):
        # The specification spells the path of v1.0.0.
        expected = message.removeprefix(DENIED).replace("SubGroupPolicy", "subGroupPolicy")
        assert aggregate(errors) == expected


@pytest.mark.parametrize(("case", "base", "changed", "outcome"), cases("admission-lws", "admit"))
def test_recorded_creates(case: str, base: dict[str, Any], changed: dict[str, Any], outcome: dict[str, Any]) -> None:
    check(validate_create(defaults.default(changed)), outcome)


@pytest.mark.parametrize(("case", "base", "changed", "outcome"), cases("admission-lws-update", "admit_update"))
def test_recorded_updates(case: str, base: dict[str, Any], changed: dict[str, Any], outcome: dict[str, Any]) -> None:
    check(validate_update(defaults.default(changed), defaults.default(base)), outcome)


ACCEPTED = [
    lws({"maxGroupRestarts": 3, "restartPolicy": "RecreateGroupAfterStart", "restartBackoff": {}}),
    lws(podTerminationPolicy="Parallel"),
    lws({}, {"generateName": "llm-"}),
]


@pytest.mark.parametrize("obj", ACCEPTED)
def test_accepted(obj: dict[str, Any]) -> None:
    assert aggregate(validate_create(obj)) == ""


REFUSED = [
    (lws(replicas="two"), 'spec.replicas: Invalid value: "two": must be an integer'),
    (lws({"size": 1.5}), f"{TEMPLATE}.size: Invalid value: 1.5: must be an integer"),
    (lws({"size": 2**40}), f"{TEMPLATE}.size: Invalid value: {2**40}: must be an integer of 32 bits"),
    (
        lws(**rolling(maxSurge=1.5)),
        f"{CONFIG}.maxSurge: Invalid value: 1.5: must be an integer or percentage (e.g '5%%')",
    ),
    (
        lws(**rolling(maxSurge="99999999999999999999%")),
        f'[{CONFIG}.maxSurge: Invalid value: "99999999999999999999%": must not be greater than 100%, '
        f'{CONFIG}.maxSurge: Invalid value: "99999999999999999999%": invalid value]',
    ),
    (
        lws({"restartBackoff": {"baseSeconds": 400}}),
        f"{TEMPLATE}.restartBackoff.baseSeconds: Invalid value: 400: baseSeconds must not exceed capSeconds",
    ),
    (
        lws({"restartBackoff": {"capSeconds": 0}}),
        f"{TEMPLATE}.restartBackoff.capSeconds: Invalid value: 0: must be greater than 0",
    ),
    (
        lws({"restartBackoff": {}, "restartPolicy": "None"}),
        f"{TEMPLATE}.restartBackoff: Invalid value: {{}}: "
        "restartBackoff is only supported when restartPolicy recreates the group",
    ),
    (
        lws(podTerminationPolicy="Never"),
        'spec.podTerminationPolicy: Unsupported value: "Never": supported values: "Default", "Parallel"',
    ),
    (lws({}, {"name": ""}), "metadata.name: Required value: name or generateName is required"),
    (lws({}, {"namespace": ""}), "metadata.namespace: Required value"),
    (lws({}, {"labels": {"a": 1}}), "metadata.labels[a]: Invalid value: 1: must be a string"),
    (
        lws({}, {"annotations": {"a": "x" * 300000}}),
        "metadata.annotations: Too long: may not be more than 262144 bytes",
    ),
    (
        lws({}, {"finalizers": ["orphan", "foregroundDeletion"]}),
        'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: '
        "finalizer orphan and foregroundDeletion cannot be both set",
    ),
]


@pytest.mark.parametrize(("obj", "text"), REFUSED)
def test_refused_with_text(obj: dict[str, Any], text: str) -> None:
    assert aggregate(validate_create(obj)) == text


@pytest.mark.parametrize("key", ["/a", "a/b/c", "-a", "a/", "A B", "a" * 64])
def test_label_keys(key: str) -> None:
    errors = validate_create(lws({}, {"labels": {key: "ok"}}))
    assert errors
    assert {error.path for error in errors} == {"metadata.labels"}


def test_owner_references() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "1", "controller": True}
    assert validate_create(lws({}, {"ownerReferences": [owner]})) == []
    (error,) = validate_create(lws({}, {"ownerReferences": [owner, owner]}))
    assert 'Found "true" in references for Pod/a and Pod/a' in error.detail
    (error,) = validate_create(lws({}, {"ownerReferences": [owner | {"uid": ""}]}))
    assert str(error) == "metadata.ownerReferences[0].uid: Required value: must not be empty"


def test_equal_faults_are_listed_once() -> None:
    obj = lws({"size": "two"}, rolloutStrategy=[])
    assert aggregate(validate_update(obj, obj)) == (
        '[spec.leaderWorkerTemplate.size: Invalid value: "two": must be an integer, '
        "spec.rolloutStrategy: Invalid value: []: must be an object]"
    )


def test_a_subdomain_policy_that_is_taken_away() -> None:
    """Admission fills it in before this is asked."""
    text = "spec.networkConfig.subdomainPolicy: Invalid value: null: cannot set subdomainPolicy as null"
    assert aggregate(validate_update(lws(networkConfig={}), lws())) == text


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 5) | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["spec", "metadata", "name", "replicas", "size", "subGroupPolicy", "leaderWorkerTemplate"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(["metadata", "spec"]), anything), st.dictionaries(st.just("spec"), anything))
def test_no_object_makes_validation_fail(new: dict[str, Any], old: dict[str, Any]) -> None:
    assert all(str(error) for error in validate_update(new, old))


def owned(**more: Any) -> dict[str, Any]:
    kind = {"apiVersion": "disaggregatedset.x-k8s.io/v1", "kind": "DisaggregatedSet"}
    return {**kind, "name": "chat", "uid": "u", "controller": True, **more}


def test_a_role_on_its_way_to_no_groups_has_percentages_that_come_to_nothing() -> None:
    """Its DisaggregatedSet scales it down group by group; its own rolling update is never used (50 §3, §7)."""
    pace = rolling(maxUnavailable="25%", maxSurge=0)
    stuck = [f"{CONFIG}.maxUnavailable"]
    for owner, paths in (
        (owned(), []),
        (owned(controller=False), stuck),
        (owned(kind="Other"), stuck),
        (owned(apiVersion="example.com/v1"), stuck),
    ):
        child = lws(meta={"ownerReferences": [owner]}, replicas=3, **pace)
        assert [error.path for error in validate_create(child)] == paths
        assert [error.path for error in validate_update(child, child)] == paths
    child = lws(meta={"ownerReferences": [owned()]}, replicas=3, **rolling(maxUnavailable="200%", maxSurge=-1))
    assert [error.path for error in validate_create(child)] == [f"{CONFIG}.maxUnavailable", f"{CONFIG}.maxSurge"]
