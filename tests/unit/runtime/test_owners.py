"""Owner references and finalizers (specification: 70 §12)."""

from __future__ import annotations

from typing import Any

import pytest

from lwskit.runtime.finalizers import add_finalizer, has_finalizer, remove_finalizer
from lwskit.runtime.kinds import DEPLOYMENT, NODE, STATEFUL_SET, Kind
from lwskit.runtime.objects import Obj
from lwskit.runtime.owners import (
    AlreadyOwned,
    OwnerError,
    has_controller_reference,
    has_owner_reference,
    remove_controller_reference,
    remove_owner_reference,
    set_controller_reference,
    set_owner_reference,
)

NEWER = Kind("apps", "v2", "StatefulSet", "statefulsets")
OTHER_GROUP = Kind("example.com", "v1", "StatefulSet", "statefulsets")


def thing(name: str, namespace: str = "t", **meta: Any) -> Obj:
    place = {"namespace": namespace} if namespace else {}
    return {"metadata": {"name": name, "uid": f"uid-{name}", **place, **meta}}


def references(obj: Obj) -> list[tuple[str, str, bool | None]]:
    return [(r["name"], r["uid"], r.get("controller")) for r in obj["metadata"].get("ownerReferences", [])]


def test_a_controller_is_never_taken_over_and_its_uid_is_renewed() -> None:
    """70 §17 Helpers and fakes 1: another controller is an error; the same owner made anew takes its old place."""
    pod = thing("p")
    set_owner_reference(pod, thing("first"), DEPLOYMENT)
    set_controller_reference(pod, thing("web"), STATEFUL_SET)
    set_owner_reference(pod, thing("last"), DEPLOYMENT)
    with pytest.raises(AlreadyOwned) as e:
        set_controller_reference(pod, thing("other"), STATEFUL_SET)
    assert str(e.value) == "Object t/p is already owned by another StatefulSet controller web"
    assert e.value.ref["uid"] == "uid-web"
    set_controller_reference(pod, thing("web", uid="anew"), NEWER, block_owner_deletion=False)
    assert references(pod) == [("first", "uid-first", None), ("web", "anew", True), ("last", "uid-last", None)]
    assert pod["metadata"]["ownerReferences"][1] == {
        "apiVersion": "apps/v2",
        "kind": "StatefulSet",
        "name": "web",
        "uid": "anew",
        "controller": True,
        "blockOwnerDeletion": False,
    }
    with pytest.raises(AlreadyOwned):
        set_controller_reference(pod, thing("web"), OTHER_GROUP)


def test_an_owner_elsewhere_is_refused() -> None:
    """70 §17 Helpers and fakes 2: an owner in another namespace is refused, with both names."""
    pod = thing("p")
    for setter in (set_controller_reference, set_owner_reference):
        with pytest.raises(OwnerError) as e:
            setter(pod, thing("web", "elsewhere"), STATEFUL_SET)
        assert str(e.value) == (
            "cross-namespace owner references are disallowed, owner's namespace elsewhere, obj's namespace t"
        )
    assert "ownerReferences" not in pod["metadata"]


def test_a_cluster_scoped_object_has_no_owner_in_a_namespace_but_the_other_way_round() -> None:
    with pytest.raises(OwnerError) as e:
        set_owner_reference(thing("n", ""), thing("web"), STATEFUL_SET)
    assert str(e.value) == "cluster-scoped resource must not have a namespace-scoped owner, owner's namespace t"
    pod = thing("p")
    set_owner_reference(pod, thing("n", ""), NODE, block_owner_deletion=True)
    assert pod["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] is True
    assert has_owner_reference(pod, thing("n", ""), NODE)
    assert not has_controller_reference(pod)


def test_an_owner_that_does_not_exist_yet_is_refused() -> None:
    with pytest.raises(OwnerError, match="StatefulSet web has no UID; create it before"):
        set_controller_reference(thing("p"), {"metadata": {"name": "web", "namespace": "t"}}, STATEFUL_SET)


def test_references_are_removed_and_what_is_not_there_is_an_error() -> None:
    pod = {"kind": "Pod", **thing("p")}
    set_controller_reference(pod, thing("web"), STATEFUL_SET)
    set_owner_reference(pod, thing("d"), DEPLOYMENT)
    with pytest.raises(OwnerError, match="the controller of Pod t/p is StatefulSet web, not Deployment d"):
        remove_controller_reference(pod, thing("d"), DEPLOYMENT)
    remove_controller_reference(pod, thing("web", uid="whatever"), NEWER)
    with pytest.raises(OwnerError, match="Pod t/p has no controller"):
        remove_controller_reference(pod, thing("web"), STATEFUL_SET)
    with pytest.raises(OwnerError, match="Pod t/p has no owner reference to StatefulSet web"):
        remove_owner_reference(pod, thing("web"), STATEFUL_SET)
    remove_owner_reference(pod, thing("d"), DEPLOYMENT)
    assert "ownerReferences" not in pod["metadata"]


def test_what_is_shared_with_a_cache_is_left_alone() -> None:
    shared = thing("p")
    set_controller_reference(shared, thing("web"), STATEFUL_SET)
    mine = {**shared, "metadata": {**shared["metadata"]}}
    set_owner_reference(mine, thing("d"), DEPLOYMENT)
    add_finalizer(mine, "a/b")
    assert references(shared) == [("web", "uid-web", True)]
    assert not has_finalizer(shared, "a/b")


def test_finalizers_are_added_once_and_removed_wherever_they_stand() -> None:
    pod = thing("p", finalizers=["x/y", "a/b", "x/y"])
    assert not add_finalizer(pod, "a/b")
    assert add_finalizer(pod, "c/d")
    assert remove_finalizer(pod, "x/y")
    assert pod["metadata"]["finalizers"] == ["a/b", "c/d"]
    assert not remove_finalizer(pod, "x/y")
    assert remove_finalizer(pod, "a/b")
    assert remove_finalizer(pod, "c/d")
    assert "finalizers" not in pod["metadata"]
    assert not has_finalizer({"metadata": {"finalizers": None}}, "a/b")
