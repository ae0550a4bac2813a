"""Defaults of the mutating webhook (specification: 10 §5, checklist 1–17)."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lwskit.api import defaults

TEMPLATE: dict[str, Any] = {"workerTemplate": {"spec": {"containers": [{"name": "w", "image": "app"}]}}}
FILLED = {
    "replicas": 1,
    "leaderWorkerTemplate": TEMPLATE | {"restartPolicy": "RecreateGroupOnPodRestart"},
    "rolloutStrategy": {
        "type": "RollingUpdate",
        "rollingUpdateConfiguration": {"partition": 0, "maxUnavailable": 1, "maxSurge": 0},
    },
    "networkConfig": {"subdomainPolicy": "Shared"},
    "groupIdentity": "Ordinal",
    "groupReplacementPolicy": "PostTermination",
    "podTerminationPolicy": "Default",
}


def spec_of(**fields: Any) -> dict[str, Any]:
    return defaults.default({"spec": {"leaderWorkerTemplate": TEMPLATE} | fields})["spec"]


def test_minimal_object() -> None:
    assert spec_of() == FILLED


@pytest.mark.parametrize(
    "fields",
    [
        {"replicas": 0},
        {"groupIdentity": "Hash"},
        {"groupReplacementPolicy": "Immediate"},
        {"podTerminationPolicy": "Parallel"},
        {"startupPolicy": ""},
        {"networkConfig": {"subdomainPolicy": "UniquePerReplica"}},
        {"rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxSurge": 2}}},
        {"rolloutStrategy": {"type": "Recreate"}},
    ],
)
def test_what_is_set_stays(fields: dict[str, Any]) -> None:
    assert spec_of(**fields) == FILLED | fields


@pytest.mark.parametrize("network", [None, {}, {"subdomainPolicy": None}])
def test_network_config_becomes_shared(network: Any) -> None:
    assert spec_of(networkConfig=network)["networkConfig"] == {"subdomainPolicy": "Shared"}


@pytest.mark.parametrize("strategy", [None, {}, {"type": ""}, {"rollingUpdateConfiguration": None}])
def test_rollout_strategy_is_filled(strategy: Any) -> None:
    assert spec_of(rolloutStrategy=strategy)["rolloutStrategy"] == FILLED["rolloutStrategy"]


@pytest.mark.parametrize(
    ("given_policy", "stored"),
    [("", "RecreateGroupOnPodRestart"), ("Default", "None"), ("None", "None"), ("Other", "Other")],
)
def test_restart_policy(given_policy: str, stored: str) -> None:
    template = TEMPLATE | {"restartPolicy": given_policy}
    spec = defaults.default({"spec": {"leaderWorkerTemplate": template}})["spec"]
    assert spec["leaderWorkerTemplate"]["restartPolicy"] == stored


def test_a_missing_spec_is_made_so_that_the_schema_can_name_what_is_missing() -> None:
    assert "leaderWorkerTemplate" not in defaults.default({"metadata": {"name": "a"}})["spec"]


@pytest.mark.parametrize("spec", ["x", [], 1, True])
def test_a_spec_of_a_wrong_type_stays(spec: Any) -> None:
    assert defaults.default({"spec": spec}) == {"spec": spec}


anything = st.recursive(
    st.none() | st.integers(-1, 3) | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(list(FILLED)), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*FILLED, "other"]), anything))
def test_defaulting_is_idempotent_and_leaves_its_argument_alone(spec: dict[str, Any]) -> None:
    obj = {"spec": spec}
    before = copy.deepcopy(obj)
    once = defaults.default(obj)
    assert obj == before
    assert defaults.default(once) == once
