"""Admission of LeaderWorkerSets, from review to patch or refusal (specification: 10 §5, §6)."""

from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest

from lwskit.api import names
from lwskit.runtime.objects import Obj
from lwskit.runtime.webhook import review
from tests.unit.admission.reviews import HANDLERS, ask

TEMPLATE = {"spec": {"containers": [{"name": "w", "image": "app"}]}}


def lws(name: str = "my-lws", spec: Obj | None = None, template: Obj | None = None) -> Obj:
    """A set as a client sends it."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {"name": name, "namespace": "demo"},
        "spec": {
            **(spec or {}),
            "leaderWorkerTemplate": {"workerTemplate": copy.deepcopy(TEMPLATE), **(template or {})},
        },
    }


def test_defaults_of_a_minimal_set() -> None:
    answer = ask(names.MUTATE_LWS_PATH, lws(template={"restartPolicy": "Default"}))
    assert answer.allowed
    assert answer.obj["spec"] == {
        "replicas": 1,
        "leaderWorkerTemplate": {"restartPolicy": "None", "workerTemplate": TEMPLATE},
        "rolloutStrategy": {
            "type": "RollingUpdate",
            "rollingUpdateConfiguration": {"partition": 0, "maxUnavailable": 1, "maxSurge": 0},
        },
        "networkConfig": {"subdomainPolicy": "Shared"},
        "groupIdentity": "Ordinal",
        "groupReplacementPolicy": "PostTermination",
        "podTerminationPolicy": "Default",
    }


def test_what_is_set_stays_and_then_nothing_is_patched() -> None:
    defaulted = ask(names.MUTATE_LWS_PATH, lws()).obj
    again = ask(names.MUTATE_LWS_PATH, defaulted)
    assert (again.allowed, again.patch) == (True, [])
    answer = ask(names.MUTATE_LWS_PATH, lws(spec={"rolloutStrategy": {"rollingUpdateConfiguration": {"maxSurge": 2}}}))
    assert answer.obj["spec"]["rolloutStrategy"] == {
        "type": "RollingUpdate",
        "rollingUpdateConfiguration": {"maxSurge": 2},
    }


def test_17_a_network_taken_away_comes_back_as_shared() -> None:
    old = ask(names.MUTATE_LWS_PATH, lws(spec={"networkConfig": {"subdomainPolicy": "UniquePerReplica"}})).obj
    for value in (None, {}, {"subdomainPolicy": None}):
        new = copy.deepcopy(old)
        new["spec"]["networkConfig"] = value
        answer = ask(names.MUTATE_LWS_PATH, new, old)
        assert answer.obj["spec"]["networkConfig"] == {"subdomainPolicy": "Shared"}
        assert ask(names.VALIDATE_LWS_PATH, answer.obj, old).allowed


def test_fields_that_we_do_not_know_survive() -> None:
    obj = lws(spec={"fromTheFuture": {"a": [1, {"b": None}]}}, template={"newer": "x"})
    obj["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    obj["metadata"]["newer"] = 1
    obj["status"] = {"also": "newer"}
    answer = ask(names.MUTATE_LWS_PATH, obj)
    assert answer.patch
    assert all(op["op"] == "add" for op in answer.patch)
    assert answer.obj["spec"]["fromTheFuture"] == {"a": [1, {"b": None}]}
    assert answer.obj["spec"]["leaderWorkerTemplate"]["newer"] == "x"
    assert answer.obj["metadata"] == obj["metadata"]
    assert answer.obj["status"] == {"also": "newer"}


def verdict(obj: Obj, old: Obj | None = None) -> str:
    """The text of a refusal, empty for a yes, of the set as it is after defaulting."""
    defaulted = ask(names.MUTATE_LWS_PATH, obj, old).obj
    answer = ask(names.VALIDATE_LWS_PATH, defaulted, old)
    assert answer.warnings == []
    assert answer.code == (200 if answer.allowed else 403)
    return "" if answer.allowed else answer.message


CONFIG = "spec.rolloutStrategy.rollingUpdateConfiguration"
BOTH_ZERO = {"rollingUpdateConfiguration": {"maxUnavailable": 0, "maxSurge": 0}}


@pytest.mark.parametrize(
    ("obj", "text"),
    [
        (lws(), ""),
        (lws(spec={"replicas": 0, "rolloutStrategy": BOTH_ZERO}), ""),
        (
            lws(spec={"replicas": 1, "rolloutStrategy": BOTH_ZERO}),
            f"{CONFIG}.maxUnavailable: Invalid value: 0: must not be 0 when `maxSurge` is 0",
        ),
        (
            lws(spec={"replicas": -1}),
            "spec.replicas: Invalid value: -1: replicas must be equal or greater than 0",
        ),
        (
            lws(template={"size": 0}),
            "spec.leaderWorkerTemplate.size: Invalid value: 0: size must be equal or greater than 1",
        ),
        (
            lws(template={"subGroupPolicy": {}}),
            "spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize: Required value: subGroupSize is required",
        ),
    ],
)
def test_sets_are_checked_when_they_are_created(obj: Obj, text: str) -> None:
    assert verdict(obj) == text


def test_42_all_faults_are_in_one_bracketed_message() -> None:
    text = verdict(lws("0x", spec={"replicas": -1}, template={"size": 0}))
    assert text.startswith('[metadata.name: Invalid value: "0x": ')
    assert "spec.replicas: Invalid value: -1: " in text
    assert text.endswith("spec.leaderWorkerTemplate.size: Invalid value: 0: size must be equal or greater than 1]")


def test_changes_are_checked_against_what_was() -> None:
    old = ask(names.MUTATE_LWS_PATH, lws(template={"size": 4, "subGroupPolicy": {"subGroupSize": 2}})).obj
    path = "spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize"
    new = copy.deepcopy(old)
    new["spec"]["leaderWorkerTemplate"]["subGroupPolicy"]["subGroupSize"] = 4
    assert verdict(new, old) == f"{path}: Invalid value: 4: field is immutable"
    new = copy.deepcopy(old)
    del new["spec"]["leaderWorkerTemplate"]["subGroupPolicy"]
    assert verdict(new, old) == f"{path}: Invalid value: 2: cannot remove subGroupSize after enabled"
    new = copy.deepcopy(old)
    new["spec"]["replicas"] = 7
    assert verdict(new, old) == ""


def test_43_deletions_are_not_asked_about_and_allowed() -> None:
    for path in (names.MUTATE_LWS_PATH, names.VALIDATE_LWS_PATH):
        answer = ask(path, None, lws("0x"), operation="DELETE")
        assert (answer.allowed, answer.patch, answer.warnings) == (True, [], [])


@pytest.mark.parametrize("path", [names.MUTATE_LWS_PATH, names.VALIDATE_LWS_PATH, names.MUTATE_POD_PATH])
def test_a_review_without_an_object_is_answered_with_400(path: str) -> None:
    for obj in (None, [], "x", 7):
        answer = ask(path, obj)
        assert (answer.allowed, answer.code) == (False, 400)


@pytest.mark.parametrize("path", sorted(HANDLERS))
@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"", "application/json"),
        (b"{", "application/json"),
        (b"[]", "application/json"),
        (b'{"request": 1}', "application/json"),
        (b'{"apiVersion": "v1", "request": {}}', "application/json"),
        (b"\xff", "application/json"),
        (b"{}", "text/plain"),
    ],
)
def test_what_is_no_review_is_answered(path: str, body: bytes, content_type: str) -> None:
    status, answer = review(HANDLERS[path], body, content_type)
    response: dict[str, Any] = orjson.loads(answer)["response"]
    assert (status, response["allowed"], response["status"]["code"]) == (200, False, 400)
    assert response["status"]["message"]


def test_nothing_is_refused_of_a_set_that_is_being_deleted() -> None:
    """A set may have become invalid since; without this its finalizers could not be taken away."""
    rolling = {"rollingUpdateConfiguration": {"maxUnavailable": 0, "maxSurge": 0}}
    old = lws(spec={"replicas": 1, "rolloutStrategy": {"type": "RollingUpdate", **rolling}})
    old["metadata"]["finalizers"] = ["foregroundDeletion"]
    new = {**old, "metadata": {**old["metadata"], "finalizers": []}}
    assert not ask(names.VALIDATE_LWS_PATH, new, old).allowed
    for obj in (old, new):
        obj["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert ask(names.VALIDATE_LWS_PATH, new, old).allowed
