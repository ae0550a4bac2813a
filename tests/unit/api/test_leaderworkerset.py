"""The models: reading, writing, and keeping what they do not know."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from lwskit.api import names
from lwskit.api.crds import leaderworkerset_crd
from lwskit.api.leaderworkerset import LeaderWorkerSet, LeaderWorkerTemplate

GOLDEN = Path(__file__).parents[2] / "conformance" / "golden"


def minimal(**spec: Any) -> dict[str, Any]:
    template = {"workerTemplate": {"spec": {"containers": [{"name": "a"}]}}}
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {"name": "llm"},
        "spec": {"leaderWorkerTemplate": template} | spec,
    }


def test_defaults_are_those_of_the_crd() -> None:
    spec = LeaderWorkerSet.model_validate(minimal()).spec
    assert spec is not None
    assert (spec.replicas, spec.startup_policy, spec.group_identity) == (1, "LeaderCreated", "Ordinal")
    assert (spec.leader_worker_template.size, spec.rollout_strategy) == (1, None)


def test_only_what_was_set_is_written() -> None:
    assert LeaderWorkerSet.model_validate(minimal()).to_dict() == minimal()


def test_unknown_fields_are_kept_everywhere() -> None:
    obj = minimal(newField={"a": 1}, networkConfig={"subdomainPolicy": "Shared", "newToo": [1]})
    obj["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["newPodField"] = True
    obj["status"] = {"replicas": 2, "newCount": 3}
    assert LeaderWorkerSet.model_validate(obj).to_dict() == obj


@pytest.mark.parametrize("case", ["seed-sample", "subgroups", "pvc", "rollout-surge"])
def test_recorded_objects_are_read_and_written_unchanged(case: str) -> None:
    snapshots = json.loads((GOLDEN / f"{case}.json").read_text())["snapshots"]
    for snapshot in snapshots.values():
        for recorded in snapshot["lws"]:
            spec = {"spec": recorded["spec"]}
            written = LeaderWorkerSet.model_validate(spec).to_dict()
            assert written == spec | {"apiVersion": names.API_VERSION, "kind": names.KIND}


def test_objects_are_built_with_python_names() -> None:
    template = LeaderWorkerTemplate(size=2, worker_template={"spec": {}}, max_group_restarts=1)
    assert template.to_dict() == {"size": 2, "workerTemplate": {"spec": {}}, "maxGroupRestarts": 1}


@pytest.mark.parametrize(
    ("spec", "place"),
    [
        ({"replicas": -1}, "replicas"),
        ({"replicas": 1000001}, "replicas"),
        ({"startupPolicy": "Later"}, "startupPolicy"),
        ({"leaderWorkerTemplate": {}}, "workerTemplate"),
        ({"replicas": "2"}, "replicas"),
        ({"replicas": True}, "replicas"),
        ({"replicas": 2**31}, "replicas"),
        ({"groupIdentity": "Random"}, "groupIdentity"),
        ({"rolloutStrategy": {"rollingUpdateConfiguration": {"maxSurge": True}}}, "maxSurge"),
        ({"networkConfig": {"subdomainPolicy": "Own"}}, "subdomainPolicy"),
    ],
)
def test_what_the_crd_refuses_is_refused(spec: dict[str, Any], place: str) -> None:
    with pytest.raises(ValidationError, match=place):
        LeaderWorkerSet.model_validate(minimal(**spec))


SCHEMA = leaderworkerset_crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
UNKNOWN = st.dictionaries(st.sampled_from(["newField", "_private", "model_config", "0"]), st.integers() | st.none())
LABELS = st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2)


def values(schema: dict[str, Any], depth: int = 0) -> st.SearchStrategy[Any]:
    """Values that a schema allows, with fields that it does not know; pods and claims are small."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema.get("x-kubernetes-int-or-string"):
        return st.integers(0, 5) | st.sampled_from(["25%", "7", "x"])
    kind = schema["type"]
    if kind == "string":
        return st.just("2026-11-30T00:00:00Z" if schema.get("format") == "date-time" else "Text")
    if kind == "integer":
        return st.integers(schema.get("minimum", -9), schema.get("maximum", 9))
    if kind == "array":
        return st.lists(values(schema["items"], depth + 1), max_size=2)
    fields = schema.get("properties", {})
    if not fields or {"containers", "volumeName"} & fields.keys() or {"spec", "metadata"} == fields.keys():
        return st.fixed_dictionaries({}, optional={"metadata": st.fixed_dictionaries({"labels": LABELS})})
    required = schema.get("required", ()) if depth else ()
    known = st.fixed_dictionaries(
        {name: values(fields[name], depth + 1) for name in fields if name in required},
        optional={name: values(fields[name], depth + 1) for name in fields if name not in required},
    )
    return st.builds(lambda more, some: {**more, **some}, UNKNOWN, known)


SPECS = values(SCHEMA["properties"]["spec"], 1)
STATUSES = values(SCHEMA["properties"]["status"], 1)


@given(st.fixed_dictionaries({"spec": SPECS}, optional={"status": STATUSES, "metadata": st.just({"name": "a"})}))
def test_nothing_is_lost_in_reading_and_writing(obj: dict[str, Any]) -> None:
    written = LeaderWorkerSet.model_validate(obj).to_dict()
    assert written == {"apiVersion": names.API_VERSION, "kind": names.KIND, **obj}
    assert LeaderWorkerSet.model_validate(written).to_dict() == written
