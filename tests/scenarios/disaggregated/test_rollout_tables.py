"""The planner's tables on a whole cluster: the children go through exactly these steps (specification: 50 §9)."""

from __future__ import annotations

import orjson
import pytest

from lwskit.api import disaggregated_names as names
from lwskit.api import names as base
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.client.transport import HttpRequest, HttpResponse
from lwskit.runtime.objects import Obj
from lwskit.testing.cluster import TestCluster
from lwskit.testing.interceptors import Send, matching
from tests.planner_cases import Rollout, rollouts
from tests.scenarios.disaggregated.rollouts import Stand, Story, finished, newest, stand_of, whole_at_once
from tests.scenarios.disaggregated.support import DisaggregatedSets, replicas_of, role, rolling

ON_BOTH = ("r01", "r02", "r03", "r08", "r11", "r12", "r14", "r16", "r18", "r19", "r23", "r24", "r25", "r26", "r27")
"""Those that a real control plane is asked for, too."""
WHOLE = ("r08", "r18")
"""Those whose steps lead elsewhere if one stops at a child that is to grow."""
CASES = {case.id: case for case in rollouts()}
SHOWN = [
    pytest.param(case, marks=() if case in ON_BOTH else pytest.mark.virtual_only("minutes of steps of the same kinds"))
    for case in CASES
]
FORMS: dict[str, Obj] = {
    "alone": {"size": 1},
    "groups": {"size": 2},
    "hash": {"size": 2, "spec": {"groupIdentity": base.IDENTITY_HASH}},
}


def roles_of(case: Rollout, counts: tuple[int, ...], image: str, form: Obj) -> list[Obj]:
    """The roles of a case that have groups, or all if none has, with its limits."""
    found: list[Obj] = []
    for name, count, surge, unavailable in zip(case.roles, counts, case.max_surge, case.max_unavailable, strict=True):
        if count or not any(counts):
            spec = {**rolling(surge, unavailable), **form.get("spec", {})}
            found.append(role(name, count, image=image, size=form["size"], spec=spec))
    return found


async def play(cluster: TestCluster, sets: DisaggregatedSets, case: Rollout, form: Obj) -> None:
    """Let the rollout of a case take its course, and compare its steps."""
    await sets.running(*roles_of(case, case.old, "img:v1", form))
    (old,) = await sets.revisions()
    before = await stand_of(sets)
    steps = [(*step.old, *step.target) for step in case.steps]

    def is_step(stand: Stand) -> bool:
        new = next((counts for revision, counts in stand.items() if revision != old), {})
        return tuple(side.get(name, 0) for side in (stand.get(old, {}), new) for name in case.roles) in steps

    whole_at_once(sets, form["size"], is_step)
    async with cluster.observe(LEADER_WORKER_SET) as observer, cluster.kubelet.playing():
        await sets.set_roles(*roles_of(case, case.new, "img:v2", form))
        new = await newest(sets, old)
        await finished(sets, new)
    columns = [(revision, name) for revision in (old, new) for name in case.roles]
    Story.of(observer, before).follows(steps, columns)
    await sets.has_event("RollingUpdateCompleted", f"Completed rolling update to revision {new}")

    async def told() -> None:
        # Events are written in no order.
        reasons = await sets.reasons()
        assert reasons.count(names.EVENT_ROLLING_UPDATE_STARTED) == 1
        assert reasons.count(names.EVENT_ROLLING_UPDATE_COMPLETED) == 1
        assert (names.EVENT_BOOTSTRAP_SURGE in reasons) is any(step.bootstrap_surge for step in case.steps)

    await cluster.eventually(told)


@pytest.mark.parametrize("case", SHOWN)
async def test_a_rollout_takes_the_steps_of_its_table(cluster: TestCluster, sets: DisaggregatedSets, case: str) -> None:
    """50 §23 lines 26, 28, 34, 35, 36: in every step what shrinks is written first, and what grows in the same pass."""
    await play(cluster, sets, CASES[case], FORMS["alone"])


@pytest.mark.parametrize("case", WHOLE)
async def test_a_step_is_taken_whole(cluster: TestCluster, sets: DisaggregatedSets, case: str) -> None:
    """50 §7.4 item 7: also where each child that is to grow, which comes last, gets another status meanwhile."""
    met: set[tuple[str, int]] = set()

    async def meet(request: HttpRequest, send: Send) -> HttpResponse:
        name = request.path.rpartition("/")[2]
        live = await cluster.get(LEADER_WORKER_SET, name)
        wanted = orjson.loads(request.body or b"").get("spec", {}).get("replicas", 0)
        if wanted > replicas_of(live) and (name, wanted) not in met:
            met.add((name, wanted))
            status = {"hpaPodSelector": f"met={wanted}"}
            await cluster.patch(LEADER_WORKER_SET, name, {"status": status}, subresource="status")
        return await send(request)

    (connection,) = cluster.interceptors
    connection.around(matching("PATCH", r"/leaderworkersets/[^/]+$"), meet)
    await play(cluster, sets, CASES[case], FORMS["alone"])
    assert len([r for r in connection.requests if r.status == 409 and r.verb == "patch"]) >= len(met) > 0


@pytest.mark.parametrize("form", ["groups", "hash"])
async def test_whatever_the_groups_are(cluster: TestCluster, sets: DisaggregatedSets, form: str) -> None:
    """50 §7.5: groups of several pods count when they are whole, in either mode."""
    await play(cluster, sets, CASES["r12"], FORMS[form])
