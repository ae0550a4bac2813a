"""A plan is what comes to pass where roles are divided among sub-roles: random sets and edits, planned and carried out.

Specification: 50 §13.
"""

from __future__ import annotations

import copy
import random

import pytest

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated.kinds import DISAGGREGATED_SET
from lwskit.runtime.objects import Obj
from lwskit.simulate import order as orders
from lwskit.testing.cluster import TestCluster
from tests.scenarios.disaggregated.planned import Player, carried_out, everything, put, random_image, random_pace
from tests.scenarios.disaggregated.support import role, set_object

SETS = 4
"""Random sets of one run."""
SUBROLES = "abc"


def random_counts(rng: random.Random) -> list[Obj]:
    """One to three sub-roles, at least one of them with groups."""
    chosen = rng.sample(SUBROLES, rng.randint(1, 3))
    counts = [rng.randint(0, 3) for _ in chosen]
    counts[0] = max(1, counts[0])
    return [{"name": one, "replicas": count} for one, count in zip(chosen, counts, strict=True)]


def random_role(rng: random.Random, name: str, *, divided: bool, is_steady: bool) -> Obj:
    identity, surge = rng.choice(["Ordinal", "Hash"]), rng.choice([0, 1, 2, "50%"])
    if identity == "Ordinal" and not is_steady:
        # A LeaderWorkerSet that shrinks while its groups are not ready keeps those of its own surge for a while.
        surge = 0
    spec = {**random_pace(rng, surge), "groupIdentity": identity}
    found = role(name, None if divided else rng.randint(1, 4), size=rng.choice([1, 1, 2]), spec=spec)
    return {**found, "subRoles": random_counts(rng)} if divided else found


def random_set(rng: random.Random, name: str, *, is_steady: bool) -> Obj:
    """A set; `is_steady` if no rollout of it is going on when it is edited."""
    first = random_role(rng, "prefill", divided=rng.random() < 0.85, is_steady=is_steady)
    others: list[Obj] = []
    if rng.random() < 0.7:
        others = [random_role(rng, "decode", divided=rng.random() < 0.3, is_steady=is_steady)]
    policy = {"duringRollout": rng.choice(names.SCALING_POLICIES)}
    return set_object(first, *others, name=name, scalingPolicy=policy)


def random_edit(rng: random.Random, ds: Obj) -> Obj:
    """Another manifest of the same set: other images, other counts of sub-roles, others of them, or none any more."""
    ds = copy.deepcopy(ds)
    roles: list[Obj] = ds["spec"]["roles"]
    if rng.random() < 0.6:
        random_image(rng, roles, 9)
    for one in roles:
        if not one.get("subRoles"):
            if rng.random() < 0.3:
                one["subRoles"] = random_counts(rng)
                one["spec"].pop("replicas", None)
            continue
        match rng.randrange(8):
            case 0 | 1 | 2:
                one["subRoles"] = random_counts(rng)
            case 3 | 4 | 5:
                rng.choice(one["subRoles"])["replicas"] = rng.randint(0, 4)
            case 6:
                one["spec"]["replicas"] = rng.randint(1, 4)
                del one["subRoles"]
            case _:
                pass
    return ds


MORE = pytest.mark.virtual_only("a minute for each sample where time is real")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [0, pytest.param(4, marks=MORE), pytest.param(8, marks=MORE)])
async def test_a_plan_with_sub_roles_is_what_comes_to_pass(cluster: TestCluster, seed: int) -> None:
    rng, player = random.Random(seed), Player(cluster)
    sets = {f"s{i}": random_set(rng, f"s{i}", is_steady=i > 0) for i in range(SETS)}
    for ds in sets.values():
        await cluster.create(DISAGGREGATED_SET, ds)
    await player.play({name: everything() for name in sets})
    # One is in the middle of a rollout when the edit comes.
    sets["s0"] = random_edit(rng, sets["s0"])
    await put(cluster, sets["s0"])
    await player.rest()
    for leaders in (await player.unready()).values():
        await player.ready(rng.choice(leaders))
    await player.rest()

    choices = [orders.LOWEST, orders.LOWEST, orders.HIGHEST, orders.NEVER]
    ways = {name: choices[i % len(choices)] for i, name in enumerate(sets)}
    edited = {name: random_edit(rng, ds) for name, ds in sets.items()}
    _, wrong = await carried_out(player, edited, ways)
    assert not wrong, "\n\n".join(wrong)
