"""Whatever a set is made of, lint has a report, and refuses exactly what the API server's rules refuse."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from lwskit.api import names
from lwskit.lint.findings import Severity
from tests.dsobjects import ds, external, sub, subroles
from tests.unit.lint.support import lws, report, server

FULL: dict[str, Any] = yaml.safe_load(
    lws(
        meta={
            "namespace": "team",
            "labels": {"a": "b"},
            "annotations": {
                names.EXCLUSIVE_TOPOLOGY_ANNOTATION: "rack",
                names.SUBGROUP_EXCLUSIVE_TOPOLOGY_ANNOTATION: "host",
            },
        },
        worker={
            "nodeSelector": {"rack": "r"},
            "hostname": "h",
            "setHostnameAsFQDN": True,
            "affinity": {
                "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "rack"}]},
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "rack"}]},
            },
        },
        worker_meta={"labels": {names.SUBGROUP_INDEX_LABEL: "0"}, "annotations": {names.SIZE_ANNOTATION: "1"}},
        leader={},
        leader_meta={"name": "x"},
        container={
            "env": [{"name": names.ENV_TPU_NAME, "value": "x"}],
            "resources": {"limits": {names.TPU_RESOURCE: 4}},
        },
        template={
            "size": 4,
            "restartPolicy": "None",
            "subGroupPolicy": {"subGroupSize": 2, "subGroupPolicyType": "LeaderWorker"},
            "volumeClaimTemplates": [
                {
                    "metadata": {"name": "d", "labels": {"a": "b"}},
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
                }
            ],
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"},
        },
        rolling={"partition": 1, "maxUnavailable": "50%", "maxSurge": 1},
        startupPolicy="LeaderReady",
        networkConfig={"subdomainPolicy": "UniquePerReplica"},
    )
)


def paths(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all parts of a value."""
    if at:
        yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from paths(item, (*at, key))


ALL = [path for path in paths(FULL) if path[0] in ("metadata", "spec")]
ODD: list[Any] = [
    None, "", "x", "-1", "101%", "1%", "None", 0, 1, -1, 2**31, 2**40, 2**70, 1.5, 2.0, True, [], {}, [None], [{}],
    {"": ""}, ["x"], {"x": None}, [[]], "é\n", "a" * 70,
]  # fmt: skip
GONE = object()


def changed(changes: list[tuple[tuple[Any, ...], Any]], full: dict[str, Any] = FULL) -> dict[str, Any]:
    out = copy.deepcopy(full)
    for (*parents, last), value in changes:
        target: Any = out
        try:
            for parent in parents:
                target = target[parent]
            if value is GONE:
                del target[last]
            elif isinstance(target, list) is isinstance(last, int):
                target[last] = copy.deepcopy(value)
        except (KeyError, IndexError, TypeError):
            continue
    return out


changes = st.lists(st.tuples(st.sampled_from(ALL), st.sampled_from([*ODD, GONE])), min_size=1, max_size=3).map(changed)


@settings(max_examples=60, deadline=None)
@given(changes, st.none() | changes)
def test_every_set_has_a_report(new: dict[str, Any], old: dict[str, Any] | None) -> None:
    text = yaml.safe_dump(new, allow_unicode=True)
    found = report(text, yaml.safe_dump(old) if old else "")
    for finding in found.findings:
        assert finding.place.line >= 1
        assert finding.fault.message
    if old is None:
        refused = any(f.severity is Severity.ERROR for f in found.findings)
        assert refused is bool(server().create(new, "default").refusals)


DISAGGREGATED: dict[str, Any] = ds(
    external(
        "prefill", FULL["spec"]["leaderWorkerTemplate"], metadata={"labels": {"a": "b"}, "annotations": {"c": ""}}
    ),
    subroles(sub("a", 2), sub("b", mode="External"), name="decode", groupIdentity="Hash"),
    slices=1,
    placementPolicy={"type": "ExclusiveSlice", "topology": "rack"},
    scalingPolicy={"duringRollout": "AdvanceRollout"},
)
PARTS = [path for path in paths(DISAGGREGATED) if path[0] in ("metadata", "spec")]
edits = st.lists(st.tuples(st.sampled_from(PARTS), st.sampled_from([*ODD, GONE])), min_size=1, max_size=3)
disaggregated_changes = edits.map(lambda found: changed(found, DISAGGREGATED))


@settings(max_examples=60, deadline=None)
@given(disaggregated_changes, st.none() | disaggregated_changes)
def test_every_disaggregated_set_has_a_report(new: dict[str, Any], old: dict[str, Any] | None) -> None:
    found = report(yaml.safe_dump(new, allow_unicode=True), yaml.safe_dump(old) if old else "")
    for finding in found.findings:
        assert finding.place.line >= 1
        assert finding.fault.message
    if old is None:
        refused = any(f.severity is Severity.ERROR for f in found.findings)
        assert refused is bool(server().create(new, "default").refusals)
