"""An apply is skipped only when it would change neither the object nor what its manager owns."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from lwskit.runtime.apply import apply_needed
from lwskit.runtime.objects import Obj

FIELDS: Obj = {
    "f:metadata": {
        "f:labels": {"f:app": {}},
        "f:ownerReferences": {'k:{"uid":"u1"}': {}},
        "f:finalizers": {'v:"x/y"': {}},
    },
    "f:spec": {
        "f:replicas": {},
        "f:selector": {},
        "f:template": {
            "f:spec": {
                "f:containers": {
                    'k:{"name":"main"}': {
                        ".": {},
                        "f:name": {},
                        "f:args": {},
                        "f:resources": {"f:requests": {"f:cpu": {}}},
                        "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
                        "f:env": {
                            'k:{"name":"A"}': {".": {}, "f:name": {}, "f:value": {}},
                            'k:{"name":"B"}': {".": {}, "f:name": {}, "f:valueFrom": {"f:fieldRef": {}}},
                        },
                    },
                },
                "f:nodeSelector": {},
                "f:volumes": {'k:{"name":"v"}': {".": {}, "f:name": {}, "f:emptyDir": {}}},
            }
        },
        "f:volumeClaimTemplates": {},
    },
}


def intent() -> Obj:
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {
            "name": "s",
            "namespace": "n",
            "labels": {"app": "x"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "o", "uid": "u1", "controller": True}],
            "finalizers": ["x/y"],
        },
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "x"}},
            "template": {
                "spec": {
                    "containers": [
                        {
                            "name": "main",
                            "args": ["a", "b"],
                            "resources": {"requests": {"cpu": "1000m"}},
                            "ports": [{"containerPort": 80}],
                            "env": [
                                {"name": "A", "value": "1000m"},
                                {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                            ],
                        }
                    ],
                    "nodeSelector": {"zone": "z"},
                    "volumes": [{"name": "v", "emptyDir": {}}],
                }
            },
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}],
        },
    }


def live() -> Obj:
    obj = intent()
    obj["metadata"] |= {
        "uid": "1",
        "resourceVersion": "9",
        "generation": 3,
        "managedFields": [
            {"manager": "other", "operation": "Update", "apiVersion": "apps/v1", "fieldsV1": {"f:spec": {"f:x": {}}}},
            {"manager": "m", "operation": "Apply", "apiVersion": "apps/v1", "fieldsV1": copy.deepcopy(FIELDS)},
        ],
    }
    spec = obj["spec"]
    spec |= {"podManagementPolicy": "Parallel", "revisionHistoryLimit": 10}
    main = container(obj)
    main |= {"imagePullPolicy": "Always"}
    main["resources"]["requests"]["cpu"] = "1"
    main["ports"][0]["protocol"] = "TCP"
    main["env"][1]["valueFrom"]["fieldRef"]["apiVersion"] = "v1"
    spec["template"]["spec"]["containers"].append({"name": "sidecar", "image": "by-another-manager"})
    spec["volumeClaimTemplates"][0] |= {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "status": {"phase": "Pending"},
    }
    spec["volumeClaimTemplates"][0]["spec"]["volumeMode"] = "Filesystem"
    obj["status"] = {"replicas": 2}
    return obj


def container(obj: Obj) -> Obj:
    return obj["spec"]["template"]["spec"]["containers"][0]


def test_nothing_is_needed_when_every_field_is_live_and_owned() -> None:
    assert not apply_needed(live(), intent(), "m")


def test_needed_without_an_object_or_an_entry_of_the_manager_in_that_version() -> None:
    assert apply_needed(None, intent(), "m")
    assert apply_needed(live(), intent(), "somebody")
    assert apply_needed(live(), intent() | {"apiVersion": "apps/v2"}, "m")
    stripped = live()
    del stripped["metadata"]["managedFields"]
    assert apply_needed(stripped, intent(), "m")


def edit(path: str, value: Any) -> Obj:
    """The intent with one value set, or removed when the value is ...; numbers in the path are places in lists."""
    obj = intent()
    *steps, last = [int(s) if s.isdecimal() else s for s in path.split(".")]
    at: Any = obj
    for step in steps:
        at = at[step]
    if value is ...:
        del at[last]
    else:
        at[last] = value
    return obj


MAIN = "spec.template.spec.containers.0"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.replicas", 3),
        ("spec.replicas", True),
        ("spec.replicas", ...),
        ("spec.serviceName", "new"),
        ("metadata.labels.app", "y"),
        ("metadata.labels.more", "y"),
        ("metadata.labels.app", ...),
        ("metadata.finalizers", ["x/y", "z/z"]),
        ("metadata.finalizers", ...),
        ("metadata.ownerReferences.0.uid", "u2"),
        ("metadata.ownerReferences.0.name", "renamed"),
        (f"{MAIN}.args", ["a"]),
        (f"{MAIN}.args", ["b", "a"]),
        (f"{MAIN}.resources.requests.cpu", "2"),
        (f"{MAIN}.env.0.value", "1"),
        (f"{MAIN}.env.0", ...),
        (f"{MAIN}.ports.0.containerPort", 81),
        (f"{MAIN}.ports.0.protocol", "UDP"),
        ("spec.template.spec.nodeSelector", {}),
        ("spec.template.spec.nodeSelector.rack", "r"),
        ("spec.selector.matchLabels", {}),
        ("spec.volumeClaimTemplates.0.metadata.name", "other"),
        ("spec.volumeClaimTemplates.0.spec.accessModes", ["ReadWriteMany"]),
        ("spec.template.spec.volumes.0.emptyDir", None),
        ("spec.template.spec.volumes.0", {"name": "v", "hostPath": {"path": "/"}}),
    ],
)
def test_needed_when_a_field_changed_came_or_went(path: str, value: Any) -> None:
    assert apply_needed(live(), edit(path, value), "m")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (f"{MAIN}.resources.requests.cpu", 1),
        (f"{MAIN}.securityContext", {}),
        (f"{MAIN}.lifecycle", None),
        ("metadata.uid", "1"),
        ("metadata.annotations", {}),
    ],
)
def test_not_needed_for_other_spellings_of_the_same(path: str, value: Any) -> None:
    assert not apply_needed(live(), edit(path, value), "m")


def test_needed_when_another_order_of_a_keyed_list_is_wanted() -> None:
    obj = intent()
    container(obj)["env"].reverse()
    assert apply_needed(live(), obj, "m")


def test_needed_when_someone_changed_the_live_object() -> None:
    obj = live()
    obj["spec"]["replicas"] = 5
    assert apply_needed(obj, intent(), "m")
    obj = live()
    obj["metadata"]["labels"] = {}
    assert apply_needed(obj, intent(), "m")
    obj = live()
    container(obj)["env"].pop()
    assert apply_needed(obj, intent(), "m")
    obj = live()
    obj["spec"]["template"]["spec"]["nodeSelector"]["more"] = "y"
    assert apply_needed(obj, intent(), "m")


def test_false_and_zero_in_the_intent_are_what_a_server_leaves_out() -> None:
    obj = live()
    obj["metadata"]["managedFields"][1]["fieldsV1"]["f:spec"]["f:template"]["f:spec"]["f:hostNetwork"] = {}
    assert not apply_needed(obj, edit("spec.template.spec.hostNetwork", False), "m")
    assert apply_needed(obj, edit("spec.template.spec.hostNetwork", True), "m")
