"""The models: reading, writing, and keeping what they do not know."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from lwskit.api import names
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
    ],
)
def test_what_the_crd_refuses_is_refused(spec: dict[str, Any], place: str) -> None:
    with pytest.raises(ValidationError, match=place):
        LeaderWorkerSet.model_validate(minimal(**spec))
