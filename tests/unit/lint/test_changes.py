"""What a change does, against the sets as they are."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from lwskit.api import names
from lwskit.groups import revisions
from lwskit.lint.check import Source, stored
from tests.unit.lint.support import codes, findings, lws, only, report, server

P = names.PREFIX
TEMPLATE = "spec.leaderWorkerTemplate"
IMAGE = f"{TEMPLATE}.workerTemplate.spec.containers[0].image"


def claim(storage: str = "1Gi", **more: Any) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}, **more}
    return {"metadata": {"name": "data"}, "spec": spec}


def test_the_same_set_changes_nothing() -> None:
    assert codes(lws(), lws()) == []


def test_other_sets_are_not_compared() -> None:
    assert codes(lws(), lws(container={"image": "other"}, meta={"namespace": "elsewhere"})) == []
    assert codes(lws(), lws("other", container={"image": "other"})) == []


def test_an_image_rolls_all_groups() -> None:
    found = only("LWS501", lws(container={"image": "img:v2"}), lws())
    assert found.fault.path == IMAGE
    assert found.fault.message == f"2 of 2 groups will be made anew: changed {IMAGE}"
    assert found.place.line == 1 + lws(container={"image": "img:v2"}).splitlines().index("          image: img:v2")


def test_the_partition_holds_groups_back() -> None:
    new = lws(container={"image": "img:v2"}, replicas=5, rolling={"partition": 3})
    found = only("LWS501", new, lws(replicas=5, rolling={"partition": 3}))
    assert found.fault.message.startswith("2 of 5 groups will be made anew; the partition holds 3 back: changed ")


@pytest.mark.parametrize(
    ("bad", "path"),
    [
        ({"template": {"size": 4}}, f"{TEMPLATE}.size"),
        ({"template": {"restartPolicy": "None"}}, f"{TEMPLATE}.restartPolicy"),
        ({"networkConfig": {"subdomainPolicy": "UniquePerReplica"}}, "spec.networkConfig.subdomainPolicy"),
        ({"worker_meta": {"labels": {"a": "b"}}}, f"{TEMPLATE}.workerTemplate.metadata.labels"),
        ({"leader": {}}, f"{TEMPLATE}.leaderTemplate"),
        ({"container": {"env": [{"name": "A"}]}}, f"{TEMPLATE}.workerTemplate.spec.containers[0].env"),
        (
            {"template": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}}},
            f"{TEMPLATE}.persistentVolumeClaimRetentionPolicy",
        ),
        (
            {"meta": {"annotations": {f"{P}exclusive-topology": "rack"}}},
            f"metadata.annotations[{P}exclusive-topology]",
        ),
    ],
)
def test_what_rolls(bad: dict[str, Any], path: str) -> None:
    assert only("LWS501", lws(**bad), lws()).fault.path == path


@pytest.mark.parametrize(
    "good",
    [
        {"replicas": 5},
        {"template": {"maxGroupRestarts": 3}},
        {"template": {"restartBackoff": {}}},
        {"rolling": {"partition": 1}},
        {"networkConfig": {"subdomainPolicy": "Shared"}},
        {"groupIdentity": "Ordinal"},
        {"container": {"resources": {}}},
        {"meta": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}},
        {"meta": {"annotations": {f"{P}exclusive-topology": ""}}},
    ],
)
def test_what_does_not_roll(good: dict[str, Any]) -> None:
    found = codes(lws(**good), lws())
    assert not {"LWS501", "LWS502", "LWS503"} & set(found)


@pytest.mark.parametrize("spelled", ["1000m", "1.0", 1])
def test_quantities_that_are_the_same_do_not_roll(spelled: Any) -> None:
    old = lws(container={"resources": {"limits": {"cpu": "1"}}})
    assert codes(lws(container={"resources": {"limits": {"cpu": spelled}}}), old) == []


def test_it_rolls_exactly_when_the_revision_differs() -> None:
    sets = [
        lws(),
        lws(container={"image": "b"}),
        lws(template={"size": 4}),
        lws(replicas=3),
        lws(template={"maxGroupRestarts": 2}),
        lws(worker={"tolerations": [{"key": "a", "operator": "Exists"}]}),
    ]
    for old in sets:
        for new in sets:
            before, after = (
                next(iter(stored([Source("f", text)], server(), "default").values())) for text in (old, new)
            )
            differs = revisions.record(before) != revisions.record(after)
            assert ("LWS501" in codes(new, old)) is differs


def test_many_causes_are_counted() -> None:
    old = lws(
        container=dict.fromkeys(("workingDir", "terminationMessagePath", "imagePullPolicy"), "x"), template={"size": 4}
    )
    new = lws(
        container={"workingDir": "z", "terminationMessagePath": "z", "imagePullPolicy": "z", "image": "z"},
        template={"size": 5, "restartPolicy": "None"},
    )
    assert only("LWS501", new, old).fault.message.endswith(" and 1 more")


def test_what_waits_for_the_next_restart() -> None:
    found = only("LWS502", lws(startupPolicy="LeaderReady"), lws())
    assert found.fault.path == "spec.startupPolicy"
    found = only("LWS502", lws(meta={"labels": {"team": "a"}}), lws())
    assert found.fault.path == "metadata.labels[team]"
    assert "(team) reach the leaders' StatefulSet at once" in found.fault.message
    found = only("LWS502", lws(), lws(meta={"annotations": {"note": "a"}}))
    assert (found.fault.path, found.place.line) == ("metadata.annotations[note]", 3)


def test_claims_that_statefulsets_refuse() -> None:
    old, new = (lws(template={"volumeClaimTemplates": [claim(s)]}) for s in ("1Gi", "2Gi"))
    assert codes(new, old) == ["LWS503"]
    assert codes(lws(), old) == ["LWS503"]
    assert "every later one, scaling included, is stuck" in only("LWS503", new, old).fault.message


def test_beside_changed_claims_nothing_is_said_to_happen() -> None:
    old = lws(replicas=5, template={"volumeClaimTemplates": [claim("1Gi")]})
    changed = {"replicas": 3, "container": {"image": "img:v2"}, "meta": {"labels": {"team": "a"}}}
    same_claims = lws(**changed, template={"volumeClaimTemplates": [claim("1Gi")]})
    other_claims = lws(**changed, template={"volumeClaimTemplates": [claim("2Gi")]})
    assert sorted(codes(same_claims, old)) == ["LWS501", "LWS502", "LWS504"]
    assert codes(other_claims, old) == ["LWS503"]


def test_claims_of_which_only_dropped_fields_change_are_left_as_they_are() -> None:
    old, new = (lws(template={"volumeClaimTemplates": [claim(volumeName=name)]}) for name in ("a", "b"))
    assert "LWS503" not in codes(new, old)


def test_groups_that_are_removed() -> None:
    found = only("LWS504", lws(replicas=2), lws(replicas=5))
    assert found.fault.message == "3 groups are removed: replicas goes from 5 to 2"
    assert "LWS504" not in codes(lws(replicas=5), lws(replicas=2))


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            {"template": {"size": 4, "subGroupPolicy": {"subGroupSize": 2}}},
            {"template": {"size": 4, "subGroupPolicy": {"subGroupSize": 4}}},
            "Invalid value: 4: field is immutable",
        ),
        ({"groupIdentity": "Hash"}, {}, 'Invalid value: "Ordinal": groupIdentity is immutable'),
        ({}, {"podTerminationPolicy": "Parallel"}, 'Invalid value: "Parallel": podTerminationPolicy is immutable'),
        (
            {},
            {"template": {"size": 4, "subGroupPolicy": {"subGroupSize": 2}}},
            "Invalid value: 2: cannot enable subGroupSize after the lws is already created",
        ),
    ],
)
def test_what_may_not_change_is_refused(old: dict[str, Any], new: dict[str, Any], sentence: str) -> None:
    assert codes(lws(**new)) == []
    (found,) = findings(lws(**new), lws(**old))
    assert (found.fault.code.code, found.fault.message) == ("LWS003", sentence)


def test_a_size_that_no_longer_fits_is_named() -> None:
    """F58: the refusal names subGroupSize, which was not touched; the hint says that it is the size."""
    old, new = (lws(template={"size": size, "subGroupPolicy": {"subGroupSize": 4}}) for size in (5, 7))
    found = only("LWS003", new, old)
    assert found.fault.path == f"{TEMPLATE}.subGroupPolicy.subGroupSize"
    assert found.fault.hint == (
        "it is the changed size that does not fit (spec.leaderWorkerTemplate.size, 5 before and 7 now); "
        "subGroupSize is how many pods a sub-group has: with 4, sizes such as 4, 5, 8, 9 fit"
    )
    without = only("LWS003", new)
    assert without.fault.hint == "subGroupSize is how many pods a sub-group has: with 4, sizes such as 4, 5, 8, 9 fit"


def test_what_a_server_exported_is_an_old_state() -> None:
    (live,) = stored([Source("f", lws(replicas=1))], server(), "default").values()
    live["metadata"] |= {
        "uid": "u",
        "resourceVersion": "7",
        "generation": 2,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [{"manager": "kubectl", "operation": "Apply"}],
    }
    live["status"] = {"replicas": 1}
    listed = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [live]})
    assert codes(lws(), listed) == []
    assert codes(listed) == ["LWS202"]
    assert report(lws(container={"image": "b"}), listed).findings[0].fault.code.code == "LWS501"


def test_what_the_schema_refuses_was_never_there() -> None:
    assert codes(lws(), lws(template={"size": "x"})) == []


def without_replicas(text: str) -> str:
    document = yaml.safe_load(text)
    del document["spec"]["replicas"]
    return yaml.safe_dump(document, sort_keys=False)


def test_replicas_that_are_left_out_stay_as_they_are() -> None:
    assert codes(without_replicas(lws()), lws(replicas=5)) == []
    found = only("LWS501", without_replicas(lws(container={"image": "b"})), lws(replicas=5))
    assert found.fault.message.startswith("5 of 5 groups ")
    assert codes(without_replicas(lws())) == ["LWS202"]


@pytest.mark.parametrize(
    ("more", "expected"),
    [({"replicas": 0}, []), ({"replicas": 5, "rolling": {"partition": 7}}, ["LWS204"])],
)
def test_a_change_that_reaches_no_group_makes_none_anew(more: dict[str, Any], expected: list[str]) -> None:
    assert codes(lws(template={"size": 4}, **more), lws(**more)) == expected


@pytest.mark.parametrize("more", [{"template": {"size": 1}}, {"replicas": 0}])
@pytest.mark.parametrize("changed", [{"startupPolicy": "LeaderReady"}, {"meta": {"labels": {"team": "a"}}}])
def test_nothing_waits_without_workers(more: dict[str, Any], changed: dict[str, Any]) -> None:
    assert "LWS502" not in codes(lws(**more, **changed), lws(**more))
