"""The generated CRD: current on disk, structural, and what users see of it (specification: 10 §1–3)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lwskit.api import crds, names
from lwskit.runtime import typed

ROOT = Path(__file__).parents[3]
CRD = crds.leaderworkerset_crd()
VERSION = CRD["spec"]["versions"][0]
SCHEMA = VERSION["schema"]["openAPIV3Schema"]
SPEC = SCHEMA["properties"]["spec"]["properties"]
TEMPLATE = SPEC["leaderWorkerTemplate"]["properties"]
POD = TEMPLATE["workerTemplate"]["properties"]["spec"]["properties"]


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema in a schema, with its path."""
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from nodes(part, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from nodes(schema[key], f"{path}[]")


def test_the_checked_in_file_is_current() -> None:
    assert crds.main(["--check", str(ROOT / "config/crd")]) == 0


def test_check_finds_a_file_that_is_not_current(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert crds.main(["--check", str(tmp_path)]) == 1
    assert "is not current: run python -m lwskit.api.crds --write" in capsys.readouterr().err
    assert crds.main(["--write", str(tmp_path)]) == 0
    assert crds.main(["--check", str(tmp_path)]) == 0
    written = {file.name: yaml.safe_load(file.read_text()) for file in tmp_path.iterdir()}
    assert written == {
        "leaderworkerset.x-k8s.io_leaderworkersets.yaml": CRD,
        "disaggregatedset.x-k8s.io_disaggregatedsets.yaml": crds.disaggregatedset_crd(),
        "disaggregatedset.x-k8s.io_disaggregatedsetrolescalers.yaml": crds.role_scaler_crd(),
    }


def test_the_caller_may_change_what_it_gets() -> None:
    crds.leaderworkerset_crd()["spec"].clear()
    assert crds.crds()[0] == CRD


def test_names_columns_and_subresources() -> None:
    assert CRD["metadata"]["name"] == "leaderworkersets.leaderworkerset.x-k8s.io"
    assert CRD["spec"]["names"]["shortNames"] == ["lws"]
    assert [(c["name"], c["jsonPath"]) for c in VERSION["additionalPrinterColumns"]] == [
        ("Ready", ".status.readyReplicas"),
        ("Desired", ".spec.replicas"),
        ("Up-to-date", ".status.updatedReplicas"),
        ("Age", ".metadata.creationTimestamp"),
    ]
    assert VERSION["subresources"] == {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.hpaPodSelector",
        },
    }


def test_top_level_fields_are_those_of_the_api() -> None:
    assert set(SPEC) == {
        "replicas",
        "leaderWorkerTemplate",
        "rolloutStrategy",
        "startupPolicy",
        "networkConfig",
        "scheduling",
        "groupIdentity",
        "groupReplacementPolicy",
        "podTerminationPolicy",
    }
    assert set(SCHEMA["properties"]["status"]["properties"]) == {
        "conditions",
        "readyReplicas",
        "updatedReplicas",
        "replicas",
        "hpaPodSelector",
        "observedGeneration",
    }


def test_defaults() -> None:
    found = {
        path: schema["default"]
        for path, schema in nodes(SCHEMA)
        if "default" in schema and "Template" not in path.removeprefix(".spec.leaderWorkerTemplate")
    }
    assert found == {
        ".spec.replicas": 1,
        ".spec.leaderWorkerTemplate.size": 1,
        ".spec.leaderWorkerTemplate.restartPolicy": "RecreateGroupOnPodRestart",
        ".spec.leaderWorkerTemplate.restartBackoff.baseSeconds": 10,
        ".spec.leaderWorkerTemplate.restartBackoff.capSeconds": 300,
        ".spec.leaderWorkerTemplate.subGroupPolicy.subGroupPolicyType": "LeaderWorker",
        ".spec.rolloutStrategy.type": "RollingUpdate",
        ".spec.rolloutStrategy.rollingUpdateConfiguration.partition": 0,
        ".spec.rolloutStrategy.rollingUpdateConfiguration.maxUnavailable": 1,
        ".spec.rolloutStrategy.rollingUpdateConfiguration.maxSurge": 0,
        ".spec.startupPolicy": "LeaderCreated",
        ".spec.groupIdentity": "Ordinal",
        ".spec.groupReplacementPolicy": "PostTermination",
        ".spec.podTerminationPolicy": "Default",
    }


def test_required_bounds_and_enumerations() -> None:
    assert SCHEMA.get("required") is None
    assert SCHEMA["properties"]["spec"]["required"] == ["leaderWorkerTemplate"]
    assert SPEC["leaderWorkerTemplate"]["required"] == ["workerTemplate"]
    assert SPEC["rolloutStrategy"]["required"] == ["type"]
    assert SPEC["networkConfig"]["required"] == ["subdomainPolicy"]
    assert (SPEC["replicas"]["minimum"], SPEC["replicas"]["maximum"]) == (0, 1000000)
    assert "minimum" not in TEMPLATE["size"]
    assert TEMPLATE["maxGroupRestarts"]["minimum"] == 0
    for schema, values in (
        (TEMPLATE["restartPolicy"], names.RESTART_POLICIES),
        (SPEC["startupPolicy"], names.STARTUP_POLICIES),
        (SPEC["rolloutStrategy"]["properties"]["type"], names.ROLLOUT_STRATEGIES),
        (TEMPLATE["subGroupPolicy"]["properties"]["subGroupPolicyType"], names.SUBGROUP_POLICY_TYPES),
        (SPEC["networkConfig"]["properties"]["subdomainPolicy"], names.SUBDOMAIN_POLICIES),
        (SPEC["groupIdentity"], names.GROUP_IDENTITIES),
        (SPEC["groupReplacementPolicy"], names.GROUP_REPLACEMENT_POLICIES),
        (SPEC["podTerminationPolicy"], names.POD_TERMINATION_POLICIES),
    ):
        assert tuple(schema["enum"]) == values


KUBERNETES_OWN = ("leaderTemplate", "workerTemplate", "volumeClaimTemplates")
"""Fields whose inner schemas are Kubernetes' own."""


def own(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema that is ours, with its path."""
    yield path, schema
    if path.endswith(KUBERNETES_OWN):
        return
    for name, part in schema.get("properties", {}).items():
        yield from own(part, f"{path}.{name}")
    if "items" in schema:
        yield from own(schema["items"], f"{path}[]")


def test_every_field_of_ours_is_described() -> None:
    # The API server itself describes the metadata of objects.
    found = {path: schema.get("description", "") for path, schema in own(SCHEMA) if path != ".metadata"}
    assert len(found) > 90
    for path, text in found.items():
        assert text.endswith("."), path
        assert "\n" not in text, path
        assert len(text) > 10, path


def shape(schema: dict[str, Any]) -> Any:
    """A schema as the names of its fields, of lists as one of their items."""
    if schema["type"] == "array":
        return [shape(schema["items"])]
    return {name: shape(part) for name, part in schema.get("properties", {}).items()} or schema["type"]


def test_scheduling_has_three_levels() -> None:
    constraints = {"topology": [{"key": "string"}]}
    mode = {"single": "object", "all": "object"}
    composite = {
        "schedulingPolicy": {"basic": "object", "gang": {"minGroupCount": "integer"}},
        "schedulingConstraints": constraints,
        "disruptionMode": mode,
    }
    role = {
        "schedulingPolicy": {"basic": "object", "gang": {"minCount": "integer"}},
        "schedulingConstraints": constraints,
        "disruptionMode": mode,
        "resourceClaims": [{"name": "string", "resourceClaimName": "string", "resourceClaimTemplateName": "string"}],
    }
    assert shape(SPEC["scheduling"]) == {**composite, "replica": {**composite, "leader": role, "worker": role}}
    roles = SPEC["scheduling"]["properties"]["replica"]["properties"]
    for name in ("leader", "worker"):
        claims = roles[name]["properties"]["resourceClaims"]
        assert (claims["maxItems"], claims["x-kubernetes-list-type"]) == (4, "map")
        assert claims["x-kubernetes-list-map-keys"] == claims["items"]["required"] == ["name"]
    assert all("required" not in schema for path, schema in own(SPEC["scheduling"]) if not path.endswith("[]"))


def test_numbers_have_their_width() -> None:
    widths = {path: part["format"] for path, part in own(SCHEMA) if part.get("type") == "integer"}
    wide = {path for path, width in widths.items() if width == "int64"}
    assert wide == {".status.observedGeneration", ".status.conditions[].observedGeneration"}
    assert {width for path, width in widths.items() if path not in wide} == {"int32"}


def test_budgets_are_numbers_or_percentages() -> None:
    pace = SPEC["rolloutStrategy"]["properties"]["rollingUpdateConfiguration"]["properties"]
    for field in ("maxUnavailable", "maxSurge"):
        assert pace[field]["anyOf"] == [{"type": "integer"}, {"type": "string"}]
        assert pace[field]["x-kubernetes-int-or-string"] is True


def test_conditions_are_a_map_by_their_type() -> None:
    conditions = SCHEMA["properties"]["status"]["properties"]["conditions"]
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]
    assert sorted(conditions["items"]["required"]) == ["lastTransitionTime", "message", "reason", "status", "type"]
    assert conditions["items"]["properties"]["lastTransitionTime"]["format"] == "date-time"
    assert "required" not in SCHEMA["properties"]["status"]


def test_the_names_of_the_kind() -> None:
    assert CRD["spec"]["names"] == {
        "kind": "LeaderWorkerSet",
        "listKind": "LeaderWorkerSetList",
        "plural": "leaderworkersets",
        "shortNames": ["lws"],
        "singular": "leaderworkerset",
    }
    assert (CRD["spec"]["group"], CRD["spec"]["scope"]) == ("leaderworkerset.x-k8s.io", "Namespaced")
    assert [(v["name"], v["served"], v["storage"]) for v in CRD["spec"]["versions"]] == [("v1", True, True)]
    assert [c["type"] for c in VERSION["additionalPrinterColumns"]] == ["integer", "integer", "integer", "date"]


def test_no_rule_is_in_the_schema() -> None:
    # What must not change is the validating webhook's business.
    assert not [path for path, schema in own(SCHEMA) if "x-kubernetes-validations" in schema]


@pytest.mark.parametrize("crd", crds.crds(), ids=lambda crd: crd["spec"]["names"]["kind"])
def test_the_schema_is_structural(crd: dict[str, Any]) -> None:
    for path, schema in nodes(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]):
        assert "$ref" not in schema, path
        assert "title" not in schema, path
        assert isinstance(schema.get("type"), str) or schema.get("x-kubernetes-int-or-string"), path
        if schema.get("type") == "array":
            assert "items" in schema, path
        if "properties" in schema:
            assert "additionalProperties" not in schema, path
            assert set(schema.get("required", [])) <= set(schema["properties"]), path
        for option in schema.get("anyOf", []):
            assert set(option) == {"type"}, path
            assert schema["x-kubernetes-int-or-string"] is True, path


def test_keys_of_map_lists_are_required_or_have_defaults() -> None:
    lists = [(path, schema) for path, schema in nodes(SCHEMA) if schema.get("x-kubernetes-list-type") == "map"]
    assert len(lists) > 40
    for path, schema in lists:
        items = schema["items"]
        for key in schema["x-kubernetes-list-map-keys"]:
            assert key in items.get("required", []) or "default" in items["properties"][key], (path, key)


def test_templates_have_every_field_of_a_pod() -> None:
    table = typed.load_resource("lwskit.api", "pod-types.json")
    assert set(POD) == set(table.fields("core.v1.PodSpec"))
    container = POD["containers"]["items"]["properties"]
    assert set(container) == set(table.fields("core.v1.Container"))
    assert container["ports"]["items"]["properties"]["protocol"]["default"] == "TCP"
    assert POD["imagePullSecrets"]["items"]["properties"]["name"]["default"] == ""
    assert container["resources"]["properties"]["limits"]["additionalProperties"]["x-kubernetes-int-or-string"] is True


@pytest.mark.parametrize("metadata", [TEMPLATE["workerTemplate"], TEMPLATE["volumeClaimTemplates"]["items"]])
def test_metadata_of_templates_is_restricted(metadata: dict[str, Any]) -> None:
    fields = {"annotations", "labels", "finalizers", "name", "namespace"}
    assert set(metadata["properties"]["metadata"]["properties"]) == fields
