"""The CRDs of DisaggregatedSet and its scalers: names, columns, subresources, bounds (specification: 50 §1, §2)."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from lwskit.api import crds
from lwskit.api import disaggregated_names as names
from lwskit.api.disaggregatedset import DisaggregatedSet, DisaggregatedSetRoleScaler
from tests.unit.api.test_crds import own

SET = crds.disaggregatedset_crd()
SCALER = crds.role_scaler_crd()
LWS_SPEC = crds.leaderworkerset_crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]


def version(crd: dict[str, Any]) -> dict[str, Any]:
    (only,) = crd["spec"]["versions"]
    return only


def schema(crd: dict[str, Any]) -> dict[str, Any]:
    return version(crd)["schema"]["openAPIV3Schema"]


SPEC = schema(SET)["properties"]["spec"]
ROLES = SPEC["properties"]["roles"]
ROLE = ROLES["items"]["properties"]
SUBROLES = ROLE["subRoles"]
STATUS = schema(SET)["properties"]["status"]["properties"]


def bounds(part: dict[str, Any], *more: str) -> tuple[Any, ...]:
    return tuple(part.get(key) for key in (*more, "minimum", "maximum"))


def test_the_names_of_the_kinds() -> None:
    assert SET["metadata"]["name"] == names.CRD_NAME == "disaggregatedsets.disaggregatedset.x-k8s.io"
    assert SCALER["metadata"]["name"] == names.SCALER_CRD_NAME
    assert SET["spec"]["names"] == {
        "kind": "DisaggregatedSet",
        "listKind": "DisaggregatedSetList",
        "plural": "disaggregatedsets",
        "singular": "disaggregatedset",
    }
    assert SCALER["spec"]["names"]["shortNames"] == ["dsrs"]
    for crd in (SET, SCALER):
        assert (crd["spec"]["group"], crd["spec"]["scope"]) == ("disaggregatedset.x-k8s.io", "Namespaced")
        assert [version(crd)[key] for key in ("name", "served", "storage")] == ["v1", True, True]


def test_columns_and_subresources() -> None:
    # Without columns a server shows NAME and AGE.
    assert "additionalPrinterColumns" not in version(SET)
    assert version(SET)["subresources"] == {"status": {}}
    assert version(SCALER)["additionalPrinterColumns"] == [
        {"name": "Desired", "type": "integer", "jsonPath": ".spec.replicas"},
        {"name": "Current", "type": "integer", "jsonPath": ".status.replicas"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    assert version(SCALER)["subresources"] == {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    }


def test_a_role_is_a_leaderworkerset_with_a_name() -> None:
    without = {key: value for key, value in LWS_SPEC.items() if key != "description"}
    assert {key: value for key, value in ROLE["spec"].items() if key != "description"} == without
    assert sorted(ROLE) == ["metadata", "name", "scaling", "spec", "subRoles"]
    kept = {"annotations", "labels", "finalizers", "name", "namespace"}
    assert set(ROLE["metadata"]["properties"]) == kept
    assert sorted(ROLES["items"]["required"]) == ["name", "spec"]
    assert "default" not in ROLE["spec"]["properties"]["rolloutStrategy"]


def test_bounds_and_defaults() -> None:
    assert (ROLES["minItems"], ROLES["maxItems"]) == (1, 10)
    assert (SUBROLES["minItems"], SUBROLES["maxItems"]) == (1, 32)
    assert bounds(SPEC["properties"]["slices"], "default") == (1, 1, 100)
    assert bounds(SUBROLES["items"]["properties"]["replicas"], "default") == (None, 0, None)
    assert bounds(schema(SCALER)["properties"]["spec"]["properties"]["replicas"], "default") == (0, 0, None)
    assert schema(SCALER)["properties"]["spec"]["default"] == {}
    for name in (ROLE["name"], SUBROLES["items"]["properties"]["name"]):
        assert (name["minLength"], name["maxLength"], name["pattern"]) == (1, 63, names.ROLE_NAME_PATTERN)
    assert schema(SET)["required"] == ["spec"]
    assert SPEC["required"] == ["roles"]


def test_enumerations() -> None:
    spec = SPEC["properties"]
    for found, values in (
        (ROLE["scaling"]["properties"]["mode"], names.SCALING_MODES),
        (SUBROLES["items"]["properties"]["scaling"]["properties"]["mode"], names.SCALING_MODES),
        (spec["scalingPolicy"]["properties"]["duringRollout"], names.SCALING_POLICIES),
        (spec["placementPolicy"]["properties"]["type"], names.PLACEMENT_TYPES),
    ):
        assert (tuple(found["enum"]), found["default"]) == (values, values[0])
    for field in ("scalingPolicy", "placementPolicy"):
        assert "default" not in spec[field]


def test_lists_are_maps() -> None:
    for found, key in (
        (ROLES, "name"),
        (SUBROLES, "name"),
        (STATUS["roleStatuses"], "name"),
        (STATUS["conditions"], "type"),
        (schema(SCALER)["properties"]["status"]["properties"]["conditions"], "type"),
    ):
        assert (found["x-kubernetes-list-type"], found["x-kubernetes-list-map-keys"]) == ("map", [key])
        assert key in found["items"]["required"]


def test_two_rules_are_in_the_schema() -> None:
    rules = {path: part["x-kubernetes-validations"] for path, part in own(schema(SET)) if _ruled(part)}
    assert {path: rule["message"] for path, (rule,) in rules.items()} == {
        ".spec": "replicas must be zero for all non-External unpartitioned roles "
        "or non-zero for all non-External unpartitioned roles",
        ".spec.roles[].subRoles[]": "replicas must be omitted when scaling.mode is External",
    }


def _ruled(part: dict[str, Any]) -> bool:
    return "x-kubernetes-validations" in part


def test_every_field_is_described() -> None:
    for crd in (SET, SCALER):
        found = {path: part.get("description", "") for path, part in own(schema(crd)) if path != ".metadata"}
        for path, text in found.items():
            if path.endswith(".roles[].metadata") or ".roles[].metadata." in path:
                continue
            assert text.endswith("."), path
            assert "\n" not in text, path


def test_objects_are_written_as_they_were_made() -> None:
    role = {"name": "prefill", "spec": None, "subRoles": [{"name": "a", "replicas": 2}]}
    made = {
        "apiVersion": "disaggregatedset.x-k8s.io/v1",
        "kind": "DisaggregatedSet",
        "metadata": {"name": "d"},
        "spec": {"roles": [role], "newer": 1},
    }
    read = DisaggregatedSet.model_validate({"metadata": made["metadata"], "spec": made["spec"]})
    assert read.to_dict() == made
    assert read.spec is not None
    assert [part.replicas for part in read.spec.roles[0].sub_roles or ()] == [2]


def test_a_scaler_always_says_how_many() -> None:
    # A scale subresource cannot be read of an object that says nothing.
    made = {"apiVersion": "disaggregatedset.x-k8s.io/v1", "kind": "DisaggregatedSetRoleScaler"}
    for given, replicas in (({}, 0), ({"spec": {}}, 0), ({"spec": {"replicas": 3}}, 3)):
        assert DisaggregatedSetRoleScaler.model_validate(given).to_dict() == made | {"spec": {"replicas": replicas}}
    with pytest.raises(ValidationError):
        DisaggregatedSetRoleScaler.model_validate({"spec": {"replicas": -1}})
