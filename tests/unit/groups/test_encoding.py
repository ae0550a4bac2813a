"""What a revision records: the bytes of the recorded cases and the rules behind them."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lwskit.api import names
from lwskit.groups import encoding
from lwskit.runtime import typed

GOLDEN = Path(__file__).parents[2] / "conformance" / "golden"


def recorded(case: str) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Name, stored spec and recorded spec of each set in a case's last snapshot."""
    snapshot = list(json.loads((GOLDEN / f"{case}.json").read_text())["snapshots"].values())[-1]
    data = {r["metadata"]["labels"][names.NAME_LABEL]: r["data"]["spec"] for r in snapshot["rev"]}
    return [(s["metadata"]["name"], s["spec"], data[s["metadata"]["name"]]) for s in snapshot["lws"]]


@pytest.mark.parametrize(
    ("name", "spec", "data"),
    [entry for case in ("revision-bytes", "seed-sample", "pvc", "subgroups") for entry in recorded(case)],
)
def test_recorded_revisions(name: str, spec: dict[str, Any], data: dict[str, Any]) -> None:
    template = encoding.leader_worker_template(spec)
    network = encoding.network_config(spec)
    assert template | {"$patch": "replace"} == data["leaderWorkerTemplate"], name
    assert network | {"$patch": "replace"} == data["networkConfig"], name


def spec_of(container: dict[str, Any], **template: Any) -> dict[str, Any]:
    worker = {"spec": {"containers": [{"name": "a"} | container]}}
    return {"leaderWorkerTemplate": {"workerTemplate": worker} | template}


def container_of(spec: dict[str, Any]) -> dict[str, Any]:
    return encoding.leader_worker_template(spec)["workerTemplate"]["spec"]["containers"][0]


def test_limit_and_backoff_are_not_recorded() -> None:
    spec = spec_of({}, maxGroupRestarts=3, restartBackoff={"baseSeconds": 1})
    assert encoding.leader_worker_template(spec) == encoding.leader_worker_template(spec_of({}))


@pytest.mark.parametrize("spec", [{}, {"networkConfig": None}, {"networkConfig": {}}])
def test_network_config_that_is_not_set_is_shared(spec: dict[str, Any]) -> None:
    assert encoding.network_config(spec) == {"subdomainPolicy": "Shared"}


def test_old_serialisations_are_read_as_todays() -> None:
    old = {"workerTemplate": {"metadata": {"creationTimestamp": None}, "spec": {"containers": [{"name": "a"}]}}}
    assert encoding.leader_worker_template({"leaderWorkerTemplate": old}) == encoding.leader_worker_template(
        spec_of({})
    )


def test_struct_values_are_always_written() -> None:
    claims = [{"metadata": {"name": "d"}, "spec": {}}]
    template = encoding.leader_worker_template(spec_of({}, volumeClaimTemplates=claims))
    assert template["volumeClaimTemplates"] == [{"metadata": {"name": "d"}, "spec": {"resources": {}}, "status": {}}]
    env = [{"name": "C", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]
    assert container_of(spec_of({"env": env}))["env"] == [
        {"name": "C", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}}}
    ]


@pytest.mark.parametrize(
    ("given_container", "recorded_container"),
    [
        ({"tty": False, "stdin": True}, {"stdin": True}),
        ({"securityContext": {}}, {"securityContext": {}}),
        ({"securityContext": {"runAsNonRoot": False, "runAsUser": 0}},) * 2,
        ({"livenessProbe": {"httpGet": {"port": "http"}}},) * 2,
        (
            {"livenessProbe": {"httpGet": {"port": 80}, "periodSeconds": 0}},
            {"livenessProbe": {"httpGet": {"port": 80}}},
        ),
        ({"restartPolicy": "Always", "newField": 1}, {"restartPolicy": "Always"}),
    ],
)
def test_containers(given_container: dict[str, Any], recorded_container: dict[str, Any]) -> None:
    assert container_of(spec_of(given_container)) == {"name": "a", "resources": {}} | recorded_container


def test_a_missing_worker_template_is_an_empty_one() -> None:
    assert encoding.leader_worker_template({}) == {"workerTemplate": {"metadata": {}, "spec": {"containers": None}}}


def test_a_wrong_type_is_refused_with_its_path() -> None:
    path = r"spec\.leaderWorkerTemplate\.workerTemplate\.spec\.containers\[0\]\.command"
    with pytest.raises(typed.DecodeError, match=path):
        encoding.leader_worker_template(spec_of({"command": "sh"}))


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "args": st.lists(st.text(max_size=3), max_size=2),
            "tty": st.booleans(),
            "resources": st.dictionaries(
                st.sampled_from(["limits", "requests"]),
                st.dictionaries(st.sampled_from(["cpu", "memory"]), st.sampled_from(["1", "1000m", "1024Mi", 2])),
            ),
            "unknown": st.integers(),
        },
    )
)
def test_encoding_is_idempotent_and_leaves_the_argument_alone(container: dict[str, Any]) -> None:
    spec = spec_of(container, size=2)
    before = copy.deepcopy(spec)
    once = encoding.leader_worker_template(spec)
    assert spec == before
    assert encoding.leader_worker_template({"leaderWorkerTemplate": once}) == once
    assert "unknown" not in json.dumps(once)
