"""A divided role beside others of its slice: what holds it up holds nobody else up (specification: 50 §6, §13)."""

from __future__ import annotations

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated import steady
from lwskit.disaggregated.model import SlicePlan
from lwskit.runtime.objects import Obj
from lwskit.runtime.plan import Patch
from tests.unit.disaggregated.divided import divided, divided_role, divided_scene, pods_of
from tests.unit.disaggregated.scenes import REVISION, child_object, ds_object, role

A5B2 = {"a": 5, "b": 2}


def _decide(child: Obj, pods: list[Obj]) -> SlicePlan:
    ds = ds_object(divided_role(a=3, b=2), role("decode", 4))
    return steady.decide(divided_scene(ds, [child, child_object("decode", 1)], pods))


def _sizes(found: SlicePlan) -> dict[str, int]:
    return {
        action.key.name.rpartition("-")[2]: action.body["spec"]["replicas"]
        for action in found.plan.actions
        if isinstance(action, Patch) and "spec" in action.body
    }


def test_a_change_that_waits_for_a_group() -> None:
    found = _decide(divided(A5B2, plan={"a": 3, "b": 2}), pods_of("aaaaabb", unready={0}))
    assert _sizes(found) == {"decode": 4}
    assert "child-0 is not ready" in found.plan.note
    assert found.plan.result.after == names.WAIT_SECONDS
    assert not found.error


def test_counts_that_cannot_be_read() -> None:
    child = divided(A5B2)
    child["metadata"]["annotations"][names.SUBROLE_REPLICAS_ANNOTATION] = "{"
    found = _decide(child, [])
    assert _sizes(found) == {"decode": 4}
    assert f"of LeaderWorkerSet chat-0-{REVISION}-prefill is '{{': no JSON" in found.error


def test_labels_are_written_with_the_rest_of_the_pass() -> None:
    child = divided({"a": 3, "b": 2})
    found = _decide(child, pods_of(["a", "a", "", "b", "b"]))
    assert found.plan.actions[-1].why.startswith("group child-2 is one of sub-role a"), "what could fail comes last"
    assert _sizes(found) == {"decode": 4}
    assert found.plan.result.after == 0
