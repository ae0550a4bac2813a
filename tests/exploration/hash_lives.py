"""Lives of sets in Hash mode to be explored. Which group something happens to is drawn, as their names are."""

from __future__ import annotations

from typing import Any

from lwskit.api import names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import Obj, annotations_of
from tests.exploration.driver import FAIL, Driver, Life, pace
from tests.exploration.ordinal_lives import LIVES

HASH: dict[str, Any] = {"groupIdentity": names.IDENTITY_HASH, "replicas": 2, "size": 2}


async def members(d: Driver, index: str) -> list[Obj]:
    """The pods of all groups with that worker index, by name."""
    pods = await d.cluster.list(POD, f"{names.NAME_LABEL}=llm,{names.WORKER_INDEX_LABEL}={index}")
    return sorted(pods, key=lambda pod: pod["metadata"]["name"])


async def one(d: Driver, index: str) -> str:
    """The name of one of them."""
    return (await members(d, index))[0]["metadata"]["name"]


async def hash_creation(d: Driver) -> None:
    await d.create(**{**HASH, "size": 3})


async def hash_creation_with_services(d: Driver) -> None:
    await d.create(**HASH, networkConfig={"subdomainPolicy": "UniquePerReplica"})


async def hash_workers_after_their_leader(d: Driver) -> None:
    await d.create(**HASH, startupPolicy="LeaderReady")


async def hash_groups_of_one(d: Driver) -> None:
    await d.create(**{**HASH, "size": 1})
    await d.crash(await one(d, "0"))
    await d.a_while()


async def hash_scaling(d: Driver) -> None:
    await d.create(**HASH)
    for replicas in (3, 1, 0, 2):
        await d.edit({"replicas": replicas})
        await d.a_while()


async def hash_rollout(d: Driver) -> None:
    await d.create(**{**HASH, "replicas": 3})
    await d.image("img:v2")
    await d.a_while()


async def hash_rollout_with_surge(d: Driver) -> None:
    await d.create(**HASH, rolloutStrategy=pace(maxUnavailable=0, maxSurge=1))
    await d.image("img:v2")
    await d.a_while()


async def hash_rollout_that_is_taken_back(d: Driver) -> None:
    await d.create(**HASH)
    await d.image("img:v2")
    await d.a_while()
    await d.image("img:v1")
    await d.a_while()


async def hash_rollout_at_once(d: Driver) -> None:
    await d.create(**HASH, groupReplacementPolicy="Immediate")
    await d.image("img:v2")
    await d.a_while()


async def hash_a_worker_restarts(d: Driver) -> None:
    await d.create(**HASH)
    await d.crash(await one(d, "1"))
    await d.a_while()


async def hash_a_worker_is_deleted(d: Driver) -> None:
    await d.create(**HASH)
    await d.delete(await one(d, "1"))
    await d.a_while()


async def hash_a_leader_is_deleted(d: Driver) -> None:
    await d.create(**HASH)
    await d.delete(await one(d, "0"))
    await d.a_while()


async def hash_a_leader_is_evicted(d: Driver) -> None:
    await d.create(**HASH)
    await d.annotate(await one(d, "0"), FAIL, "Evicted")
    await d.a_while()


async def hash_restart_policy_none(d: Driver) -> None:
    await d.create(**HASH, group={"restartPolicy": "None"})
    await d.delete(await one(d, "1"))
    await d.a_while()


async def hash_restarts_are_counted(d: Driver) -> None:
    await d.create(**HASH, group={"maxGroupRestarts": 3})
    await d.crash(await one(d, "1"))
    await d.a_while()
    await d.crash(await one(d, "0"))
    await d.a_while()


async def hash_a_budget_is_used_up(d: Driver) -> None:
    await d.create(**{**HASH, "replicas": 1}, group={"maxGroupRestarts": 1})
    for _ in range(2):
        await d.crash(await one(d, "1"))
        await d.a_while()


async def hash_a_group_recovers(d: Driver) -> None:
    await d.create(**HASH, group={"maxGroupRestarts": 0})
    await d.crash(await one(d, "1"))
    await d.a_while()
    for pod in await members(d, "0"):
        if names.GROUP_RESTART_BUDGET_EXHAUSTED_ANNOTATION in annotations_of(pod):
            await d.annotate(pod["metadata"]["name"], names.RECOVER_ANNOTATION, "true")
    await d.a_while()


async def hash_a_kept_group_is_scaled_away(d: Driver) -> None:
    await d.create(**HASH, group={"maxGroupRestarts": 0})
    await d.crash(await one(d, "1"))
    await d.a_while()
    await d.edit({"replicas": 1})
    await d.a_while()


async def hash_a_kept_group_is_rolled_out(d: Driver) -> None:
    await d.create(**HASH, group={"maxGroupRestarts": 0})
    await d.crash(await one(d, "1"))
    await d.a_while()
    await d.image("img:v2")
    await d.a_while()


async def hash_deletion(d: Driver) -> None:
    await d.create(**HASH)
    await d.cluster.delete(LEADER_WORKER_SET, "llm")
    await d.a_while()


async def hash_a_set_of_the_same_name(d: Driver) -> None:
    """In the other mode, while the pods of the first are still there."""
    await d.create(**HASH)
    await d.cluster.delete(LEADER_WORKER_SET, "llm")
    await d.create(replicas=2, size=2, groupIdentity=names.IDENTITY_ORDINAL)
    await d.cluster.delete(LEADER_WORKER_SET, "llm")
    await d.create(**HASH)


HASH_LIVES = tuple(
    Life(drive, same_pods=drive is not hash_a_set_of_the_same_name, drawn=True)
    for drive in (
        hash_creation,
        hash_creation_with_services,
        hash_workers_after_their_leader,
        hash_groups_of_one,
        hash_scaling,
        hash_rollout,
        hash_rollout_with_surge,
        hash_rollout_that_is_taken_back,
        hash_rollout_at_once,
        hash_a_worker_restarts,
        hash_a_worker_is_deleted,
        hash_a_leader_is_deleted,
        hash_a_leader_is_evicted,
        hash_restart_policy_none,
        hash_restarts_are_counted,
        hash_a_budget_is_used_up,
        hash_a_group_recovers,
        hash_a_kept_group_is_scaled_away,
        hash_a_kept_group_is_rolled_out,
        hash_deletion,
        hash_a_set_of_the_same_name,
    )
)

ALL_LIVES = (*LIVES, *HASH_LIVES)
"""Those of both modes."""
