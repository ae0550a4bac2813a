"""Plans of sets in Hash mode: what an edit is, which groups it costs, and no steps that are not known."""

from __future__ import annotations

import copy
from typing import Any

from lwskit.api import names
from lwskit.groups.scene import Scene
from lwskit.runtime.objects import Obj
from lwskit.simulate.edit import Verdict
from lwskit.simulate.output import as_data, text
from lwskit.simulate.plan import plan
from lwskit.simulate.report import Outcome, Report
from tests.unit.groups.hash_objects import HASHED, NOW, WORKERS, deployment, hash_lws, leader
from tests.unit.groups.test_victims import on, replica_set

NOT_FORECAST = (
    "  note: the steps are the Deployment's own, and this version of lwskit does not forecast them in Hash mode "
    "[not-forecast]"
)


def scene(replicas: int = 3) -> Scene:
    """A set whose last group is not ready."""
    lws = hash_lws(replicas=replicas)
    pods = tuple(on("n", leader(i, ready=i + 1 < replicas)) for i in range(replicas))
    sets = (replica_set("rs", replicas),)
    return Scene(name="x", namespace="ns", lws=lws, workload=deployment(lws), between=sets, pods=pods)


def planned(where: Scene, new: Obj) -> Report:
    return plan(where, new, "highest-first", HASHED, WORKERS, NOW)


def edited(where: Scene, **fields: Any) -> Obj:
    new = copy.deepcopy(where.lws)
    assert new is not None
    new["spec"] |= fields
    return new


def test_fewer_groups() -> None:
    where = scene()
    found = planned(where, edited(where, replicas=2))
    assert (found.verdict, found.outcome, found.steps) == (Verdict.SCALES, Outcome.DONE, ())
    assert list(text(found)) == [
        "ns/x: scales from 3 to 2 groups",
        "  changed: spec.replicas",
        "  note: scaling 3 → 2 would remove x-rs-2: not ready [scale-down]",
    ]


def test_a_rollout_is_not_forecast() -> None:
    where = scene()
    new = edited(where, replicas=2)
    new["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]["image"] = "b"
    found = planned(where, new)
    assert (found.verdict, found.rolled) == (Verdict.ROLLS, 2)
    assert list(text(found))[-1] == NOT_FORECAST
    assert not any("scale-down" in line for line in text(found))
    data = as_data(found)
    assert data["forecast"] is False
    assert data["steps"] == []
    assert not {"peak", "lowestReady", "readyBefore", "floor"} & data.keys()


def test_what_is_in_the_leaders_template_alone_rolls_all_groups_too() -> None:
    where = scene()
    new = edited(where)
    new["metadata"]["annotations"] = {names.EXCLUSIVE_TOPOLOGY_ANNOTATION: "rack"}
    assert planned(where, new).verdict is Verdict.ROLLS


def test_what_touches_no_pod() -> None:
    where = scene()
    assert list(text(planned(where, edited(where)))) == ["ns/x: nothing changes"]
    new = edited(where, groupReplacementPolicy="Immediate")
    assert planned(where, new).verdict is Verdict.NEXT_ROLLOUT


def test_a_new_set_and_more_groups() -> None:
    found = planned(Scene(name="x", namespace="ns", lws=None), hash_lws(replicas=2))
    assert list(text(found)) == ["ns/x: creates the set with 2 groups", NOT_FORECAST]
    where = scene()
    assert next(text(planned(where, edited(where, replicas=5)))) == "ns/x: scales from 3 to 5 groups"


def test_a_deployment_of_somebody_else() -> None:
    where = scene()
    assert where.workload is not None
    where.workload["metadata"]["ownerReferences"][0]["uid"] = "another"
    (notice,) = planned(where, edited(where, replicas=1)).notices
    assert notice.message == "Deployment x belongs to LeaderWorkerSet x, not to this set"
