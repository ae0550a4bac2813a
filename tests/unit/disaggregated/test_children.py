"""How a child is made (specification: 50 §3)."""

from __future__ import annotations

import copy
from dataclasses import replace

from lwskit.disaggregated import children, spec
from lwskit.disaggregated.model import Part
from lwskit.disaggregated.scene import Targets
from lwskit.runtime.plan import OnError
from tests.unit.disaggregated.scenes import ds_object, role, scene

PREFIX = "disaggregatedset.x-k8s.io/"


def own(role: str, slice: int = 0) -> dict[str, str]:
    return {
        "app": f"chat-{slice}-{role}",
        f"{PREFIX}name": "chat",
        f"{PREFIX}role": role,
        f"{PREFIX}slice": str(slice),
        f"{PREFIX}revision": "1a2b3c4d",
    }


def decode() -> dict[str, object]:
    return {
        "name": "decode",
        "metadata": {"labels": {"kueue.x-k8s.io/queue-name": "gpu"}, "annotations": {"team": "llm"}},
        "spec": {
            "replicas": 2,
            "startupPolicy": "LeaderReady",
            "leaderWorkerTemplate": {
                "size": 4,
                "leaderTemplate": {"spec": {"containers": [{"name": "main", "image": "img"}]}},
                "workerTemplate": {
                    "metadata": {"labels": {"tier": "gpu", "app": "mine"}, "annotations": {"x": "y"}},
                    "spec": {"containers": [{"name": "main", "image": "img"}]},
                },
            },
            "rolloutStrategy": {
                "type": "RollingUpdate",
                "rollingUpdateConfiguration": {"maxSurge": 1, "maxUnavailable": 0, "partition": 0},
            },
        },
    }


def test_a_child_in_full():
    """50 §23 line 12: name, replicas, five labels, owner reference and initial-replicas; 50 §3: the example."""
    ds = ds_object(decode())
    before = copy.deepcopy(ds)
    look = scene(ds)
    found = children.render(look, look.spec.roles[0], is_drained=False)
    main = {"containers": [{"name": "main", "image": "img"}]}
    assert found == {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {
            "name": "chat-0-1a2b3c4d-decode",
            "namespace": "prod",
            "labels": {"kueue.x-k8s.io/queue-name": "gpu", **own("decode")},
            "annotations": {"team": "llm", f"{PREFIX}initial-replicas": "2"},
            "ownerReferences": [
                {
                    "apiVersion": "disaggregatedset.x-k8s.io/v1",
                    "kind": "DisaggregatedSet",
                    "name": "chat",
                    "uid": "ds-uid",
                    "controller": True,
                }
            ],
        },
        "spec": {
            "replicas": 2,
            "startupPolicy": "LeaderReady",
            "leaderWorkerTemplate": {
                "size": 4,
                "leaderTemplate": {"metadata": {"labels": own("decode")}, "spec": main},
                "workerTemplate": {
                    "metadata": {"labels": {"tier": "gpu", **own("decode")}, "annotations": {"x": "y"}},
                    "spec": main,
                },
            },
            "rolloutStrategy": {
                "type": "RollingUpdate",
                "rollingUpdateConfiguration": {"maxSurge": 1, "maxUnavailable": 0, "partition": 0},
            },
        },
    }
    assert ds == before


def test_a_drained_child_has_no_groups_yet_and_knows_how_many_it_is_to_have():
    look = scene(ds_object(role("decode", 1)), counts={"decode": 3})
    found = children.render(look, look.spec.roles[0], is_drained=True)
    assert found["spec"]["replicas"] == 0
    assert found["metadata"]["annotations"] == {f"{PREFIX}initial-replicas": "3"}
    assert "leaderTemplate" not in found["spec"]["leaderWorkerTemplate"]


def test_labels_of_the_controller_win():
    """50 §23 line 13: system labels win, on the child and on pods."""
    mine = {"app": "mine", f"{PREFIX}slice": "9", "team": "llm"}
    template = {"metadata": {"labels": dict(mine)}, "spec": {"containers": []}}
    inner = {"leaderWorkerTemplate": {"workerTemplate": template}}
    look = scene(ds_object(role("decode", metadata={"labels": mine}, spec=inner)), slice=1)
    found = children.render(look, look.spec.roles[0], is_drained=False)
    assert found["metadata"]["labels"] == {"team": "llm", **own("decode", 1)}
    pods = found["spec"]["leaderWorkerTemplate"]["workerTemplate"]["metadata"]["labels"]
    assert pods == {"team": "llm", **own("decode", 1)}


def test_what_the_controller_notes_is_not_the_users_to_say():
    annotations = {f"{PREFIX}scale-down-pending": "true", f"{PREFIX}subrole-replicas": "{}", "mine": "kept"}
    look = scene(ds_object(role("decode", metadata={"annotations": annotations})))
    found = children.render(look, look.spec.roles[0], is_drained=False)
    assert found["metadata"]["annotations"] == {"mine": "kept", f"{PREFIX}initial-replicas": "1"}


def test_counts_of_subroles_are_noted():
    ds = ds_object(role("decode", subRoles=[{"name": "b", "replicas": 2}, {"name": "a", "replicas": 5}]))
    targets = Targets({Part("decode", "b"): 2, Part("decode", "a"): 5}, {"decode": 7})
    look = replace(scene(ds), targets=targets)
    found = children.render(look, look.spec.roles[0], is_drained=False)
    assert found["spec"]["replicas"] == 7
    assert found["metadata"]["annotations"] == {
        f"{PREFIX}initial-replicas": "7",
        f"{PREFIX}initial-subrole-replicas": '{"a":5,"b":2}',
        f"{PREFIX}subrole-replicas": '{"a":5,"b":2}',
    }
    drained = children.render(look, look.spec.roles[0], is_drained=True)["metadata"]["annotations"]
    assert drained[f"{PREFIX}subrole-replicas"] == '{"a":0,"b":0}'


def test_names_and_the_action():
    found = spec.read(ds_object(role("prefill"), role("decode"), slices=2))
    assert children.names_of(found, "1a2b3c4d") == [
        "chat-0-1a2b3c4d-prefill",
        "chat-0-1a2b3c4d-decode",
        "chat-1-1a2b3c4d-prefill",
        "chat-1-1a2b3c4d-decode",
    ]
    look = scene(ds_object(role("prefill")))
    action = children.create(look, look.spec.roles[0])
    assert action.errors == {"AlreadyExists": OnError.LOOK}
    assert "role prefill of slice 0" in action.why
    assert action.on_failure is not None
    assert action.on_failure.note == "Failed to create LeaderWorkerSet chat-0-1a2b3c4d-prefill: {error}"
    assert action.on_failure.type == "Warning"
