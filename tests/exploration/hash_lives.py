"""Lives of sets in Hash mode to be explored. Which group something happens to is drawn, as their names are."""

from __future__ import annotations

from typing import Any

from lwskit.api import names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import DEPLOYMENT, NODE, POD, SERVICE, STATEFUL_SET
from lwskit.runtime.objects import Obj, annotations_of
from tests.exploration.driver import FAIL, Driver, Life, pace, template

WAIT = "example.com/wait"
HASH: dict[str, Any] = {"groupIdentity": names.IDENTITY_HASH, "replicas": 2, "size": 2}


async def members(d: Driver, index: str) -> list[Obj]:
    """The pods of all groups with that worker index, by name."""
    pods = await d.cluster.list(POD, f"{names.NAME_LABEL}=llm,{names.WORKER_INDEX_LABEL}={index}")
    return sorted(pods, key=lambda pod: pod["metadata"]["name"])


async def one(d: Driver, index: str) -> str:
    """The name of one of them."""
    return (await members(d, index))[0]["metadata"]["name"]


async def newest(d: Driver, index: str) -> str:
    """The name of the one that was made last."""
    return max(await members(d, index), key=lambda pod: pod["metadata"]["creationTimestamp"])["metadata"]["name"]


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


async def hash_rollout_that_is_overtaken(d: Driver) -> None:
    await d.create(**{**HASH, "replicas": 3})
    await d.image("img:v2")
    await d.a_while(1.0)
    await d.image("img:v3")
    await d.edit({"replicas": 2})
    await d.a_while()


async def hash_rollout_that_cannot_start(d: Driver) -> None:
    """Meanwhile an old group is lost: what comes in its place is not let in, before the next template either."""
    await d.create(**{**HASH, "replicas": 3})
    before = {pod["metadata"]["name"] for pod in await members(d, "0")}
    await d.edit(workerTemplate=template("img:v2", nodeSelector={"no": "where"}))
    await d.a_while()
    await d.delete(min(before & {pod["metadata"]["name"] for pod in await members(d, "0")}))
    await d.a_while()
    await d.image("img:v3")
    await d.a_while()


async def hash_another_size(d: Driver) -> None:
    await d.create(**HASH)
    await d.edit(size=3)
    await d.a_while()


async def hash_another_subdomain_policy(d: Driver) -> None:
    await d.create(**HASH)
    await d.edit({"networkConfig": {"subdomainPolicy": "UniquePerReplica"}})
    await d.a_while()


async def hash_a_group_that_stays(d: Driver) -> None:
    """The next leader waits for it, until the policy is another one."""
    await d.create(**HASH)
    group = (await members(d, "0"))[0]["metadata"]
    for pod in await members(d, "1"):
        if pod["metadata"]["labels"][names.GROUP_KEY_LABEL] == group["labels"][names.GROUP_KEY_LABEL]:
            await d.cluster.patch(POD, pod["metadata"]["name"], {"metadata": {"finalizers": [WAIT]}})
    await d.delete(group["name"])
    await d.a_while()
    await d.edit({"groupReplacementPolicy": "Immediate"})
    await d.a_while()
    for pod in await members(d, "1"):
        if pod["metadata"].get("finalizers"):
            await d.cluster.patch(POD, pod["metadata"]["name"], {"metadata": {"finalizers": None}})
    await d.a_while()


async def hash_all_groups_restart_at_once(d: Driver) -> None:
    await d.create(**{**HASH, "replicas": 3})
    for pod in await members(d, "1"):
        await d.crash(pod["metadata"]["name"])
    await d.a_while()


async def hash_restart_policy_after_start(d: Driver) -> None:
    await d.create(**HASH, group={"restartPolicy": "RecreateGroupAfterStart"})
    await d.crash(await one(d, "1"))
    await d.a_while()


async def hash_back_off(d: Driver) -> None:
    await d.create(**{**HASH, "replicas": 1}, group={"restartBackoff": {"baseSeconds": 120, "capSeconds": 300}})
    await d.crash(await one(d, "1"))
    await d.a_while()
    await d.a_while()
    await d.crash(await one(d, "0"))
    await d.a_while(400.0)


async def hash_exclusive_placement(d: Driver) -> None:
    for node, rack in (("node-0", "a"), ("node-1", "b"), ("node-2", "c")):
        await d.cluster.client.patch(NODE, node, {"metadata": {"labels": {"rack": rack}}})
    await d.create(**HASH, metadata={"annotations": {names.EXCLUSIVE_TOPOLOGY_ANNOTATION: "rack"}})
    await d.crash(await one(d, "1"))
    await d.a_while()


async def hash_what_is_changed_is_put_back(d: Driver) -> None:
    await d.create(**HASH)
    await d.cluster.patch(DEPLOYMENT, "llm", {"metadata": {"labels": {names.ROLE_LABEL: "mine"}}})
    await d.a_while()
    await d.cluster.patch(DEPLOYMENT, "llm", {"spec": {"replicas": 1}})
    await d.a_while()
    await d.cluster.delete(SERVICE, "llm")
    await d.a_while()


async def hash_workers_are_deleted(d: Driver) -> None:
    # One group: of several it would be chance which one is hit, and runs would differ by that.
    await d.create(**{**HASH, "replicas": 1})
    await d.cluster.delete(STATEFUL_SET, (await members(d, "0"))[0]["spec"]["hostname"])
    await d.a_while()


async def hash_deletion_that_orphans(d: Driver) -> None:
    await d.create(**HASH)
    await d.cluster.delete(LEADER_WORKER_SET, "llm", "Orphan")
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
    await d.create(**{**HASH, "replicas": 1}, group={"restartPolicy": "None"})
    await d.delete(await one(d, "1"))
    await d.a_while()


async def hash_restarts_are_counted(d: Driver) -> None:
    await d.create(**HASH, group={"maxGroupRestarts": 3})
    await d.crash(await one(d, "1"))
    await d.a_while()
    await d.crash(await newest(d, "0"))
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


MIDWAY = (
    hash_a_set_of_the_same_name,
    hash_rollout_that_is_overtaken,
    hash_what_is_changed_is_put_back,
    hash_workers_are_deleted,
)
"""Lives in which something is done while something else goes on, or in which it depends on the moment what goes."""

HASH_LIVES = tuple(
    Life(drive, same_pods=drive not in MIDWAY, drawn=True)
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
        hash_rollout_that_is_overtaken,
        hash_rollout_that_cannot_start,
        hash_another_size,
        hash_another_subdomain_policy,
        hash_a_group_that_stays,
        hash_all_groups_restart_at_once,
        hash_restart_policy_after_start,
        hash_back_off,
        hash_exclusive_placement,
        hash_what_is_changed_is_put_back,
        hash_workers_are_deleted,
        hash_deletion_that_orphans,
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
