"""A plan is what comes to pass: random DisaggregatedSets and edits, planned and then carried out by the manager."""

from __future__ import annotations

import copy
import random

import pytest

from lwskit.api import disaggregated_names as names
from lwskit.cli import disaggregated_planning
from lwskit.disaggregated.kinds import DISAGGREGATED_SET
from lwskit.runtime.objects import Obj
from lwskit.simulate import order as orders
from lwskit.simulate.report import Outcome
from lwskit.testing.cluster import TestCluster
from tests.scenarios.disaggregated.planned import (
    Player,
    carried_out,
    everything,
    manifest,
    put,
    random_image,
    random_pace,
)
from tests.scenarios.disaggregated.support import DisaggregatedSets, role, rolling, set_object, two_roles
from tests.scenarios.support import pod_template

SETS = 6
"""Random sets of one run."""
REAL_SETS = 4
"""The same where time is real."""
ROLES = ("prefill", "decode", "encode")


# Sets and edits -------------------------------------------------------------------------------------------------------


def random_role(rng: random.Random, name: str, *, paused: bool = False) -> Obj:
    surge = rng.choice([0, 0, 1, 2, "50%"])
    spec = {**random_pace(rng, surge), "groupIdentity": rng.choice(["Ordinal", "Ordinal", "Hash"])}
    return role(name, 0 if paused else rng.randint(1, 5), size=rng.choice([1, 1, 1, 2]), spec=spec)


def random_set(rng: random.Random, name: str) -> Obj:
    roles = [random_role(rng, one) for one in ROLES[: rng.choice([1, 2, 2, 2, 3])]]
    policy = {"duringRollout": rng.choice(names.SCALING_POLICIES)}
    return set_object(*roles, name=name, slices=rng.choice([1, 1, 1, 2]), scalingPolicy=policy)


def random_edit(rng: random.Random, ds: Obj) -> Obj:
    """Another manifest of the same set."""
    ds = copy.deepcopy(ds)
    roles: list[Obj] = ds["spec"]["roles"]
    if rng.random() < 0.75:
        random_image(rng, roles, 5)
    if rng.random() < 0.35:
        rng.choice(roles)["spec"]["replicas"] = rng.randint(1, 5)
    if rng.random() < 0.15:
        for one in roles:
            one["spec"] |= rolling(rng.choice([1, 2]), rng.choice([0, 1]))
    if rng.random() < 0.15 and len(roles) < len(ROLES):
        unused = next(name for name in ROLES if name not in {r["name"] for r in roles})
        roles.append(random_role(rng, unused))
    elif rng.random() < 0.15 and len(roles) > 1:
        roles.remove(rng.choice(roles))
    if rng.random() < 0.1:
        ds["spec"]["slices"] = rng.choice([1, 2])
    if rng.random() < 0.05:
        for one in roles:
            one["spec"]["replicas"] = 0
    return ds


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [0, 1])
async def test_a_plan_is_what_comes_to_pass(cluster: TestCluster, seed: int) -> None:
    rng, player = random.Random(seed), Player(cluster)
    count = SETS if cluster.embedded else REAL_SETS
    sets = {f"s{i}": random_set(rng, f"s{i}") for i in range(count)}
    for ds in sets.values():
        await cluster.create(DISAGGREGATED_SET, ds)
    await player.play({name: everything() for name in sets})
    # Some are in the middle of a rollout when the edit comes.
    for name in rng.sample(sorted(sets), count // 2):
        sets[name] = random_edit(rng, sets[name])
        await put(cluster, sets[name])
    for _ in range(2):
        await player.rest()
        for leaders in (await player.unready()).values():
            await player.ready(rng.choice(leaders))
    await player.rest()

    # Several that become ready at once take a moment to do so, and the manager may look in between.
    choices = [orders.LOWEST, orders.LOWEST, orders.HIGHEST, orders.NEVER]
    ways = {name: choices[i % len(choices)] for i, name in enumerate(sets)}
    for name, way in ways.items():
        sets[name] = random_edit(rng, sets[name])
        if way == orders.NEVER:
            (first, *_) = sets[name]["spec"]["roles"]
            first["spec"]["leaderWorkerTemplate"]["workerTemplate"] = pod_template("img:never")
            for one in sets[name]["spec"]["roles"]:
                one["spec"]["replicas"] = max(1, one["spec"]["replicas"])
    plans, wrong = await carried_out(player, sets, ways)
    assert not wrong, "\n\n".join(wrong)
    if cluster.embedded:
        assert {r.outcome for r in plans.values()} == {Outcome.DONE, Outcome.STALLED}
    assert any(len(report.steps) > 6 for report in plans.values())


async def test_the_table_of_the_specification(cluster: TestCluster, sets: DisaggregatedSets) -> None:
    """50 §9 r01: 4:2 with surge 1 and unavailable 0, as `plan` tells it."""
    await sets.running(*two_roles(4, 2, spec=rolling(1, 0)))
    ds = set_object(*two_roles(4, 2, spec=rolling(1, 0), image="img:v2"))
    report = await disaggregated_planning.on_cluster(
        cluster.client, await manifest(cluster, ds), "", cluster.clock.now()
    )
    told = [tuple((count.old, count.new) for count in step.counts.values()) for step in report.steps]
    assert told[:3] == [((4, 0), (2, 0)), ((4, 1), (2, 1)), ((3, 1), (1, 1))]
    assert told[-1] == ((0, 4), (0, 2))
    assert {str(part): low.ready for part, low in report.lowest.items()} == {"prefill": 4, "decode": 2}
    assert report.outcome is Outcome.DONE
