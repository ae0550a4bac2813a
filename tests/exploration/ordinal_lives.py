"""Lives of sets in Ordinal mode to be explored."""

from __future__ import annotations

from typing import Any

from lwskit.api import names
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.errors import NotFound
from lwskit.runtime.kinds import NODE, POD, SERVICE, STATEFUL_SET
from tests.exploration.driver import FAIL, Driver, Life, pace, template
from tests.scenarios.support import set_object

ONE: dict[str, Any] = {"replicas": 1, "size": 2}
TWO: dict[str, Any] = {"replicas": 2, "size": 2}


LONG = 300.0


async def creation(d: Driver) -> None:
    await d.create(replicas=2, size=3)


async def creation_with_a_service_for_each_group(d: Driver) -> None:
    await d.create(**TWO, networkConfig={"subdomainPolicy": "UniquePerReplica"})


async def workers_after_their_leader(d: Driver) -> None:
    await d.create(**TWO, startupPolicy="LeaderReady")


async def groups_of_one(d: Driver) -> None:
    await d.create(replicas=2, size=1)
    await d.crash("llm-1")
    await d.a_while()


async def two_templates(d: Driver) -> None:
    await d.create(**TWO, leader=template("img:leader"))
    await d.edit(leaderTemplate=template("img:other"))
    await d.a_while()


async def scaling(d: Driver) -> None:
    await d.create(**TWO)
    await d.edit({"replicas": 3})
    await d.a_while()
    await d.edit({"replicas": 1})
    await d.a_while()
    await d.edit({"replicas": 0})
    await d.a_while()
    await d.edit({"replicas": 2})
    await d.a_while()


async def rollout(d: Driver) -> None:
    await d.create(replicas=3, size=2)
    await d.image("img:v2")
    await d.a_while()


async def rollout_by_two(d: Driver) -> None:
    await d.create(replicas=3, size=2, rolloutStrategy=pace(maxUnavailable=2))
    await d.image("img:v2")
    await d.a_while()


async def rollout_with_surge(d: Driver) -> None:
    await d.create(replicas=2, size=2, rolloutStrategy=pace(maxUnavailable=0, maxSurge=1))
    await d.image("img:v2")
    await d.a_while()


async def rollout_with_surge_and_services(d: Driver) -> None:
    unique = {"subdomainPolicy": "UniquePerReplica"}
    await d.create(replicas=2, size=2, rolloutStrategy=pace(maxSurge=2), networkConfig=unique)
    await d.image("img:v2")
    await d.a_while()


async def rollout_up_to_a_partition(d: Driver) -> None:
    await d.create(replicas=3, size=2, rolloutStrategy=pace(partition=2))
    await d.image("img:v2")
    await d.a_while()
    await d.edit({"rolloutStrategy": pace(partition=0)})
    await d.a_while()


async def rollout_that_is_taken_back(d: Driver) -> None:
    await d.create(replicas=3, size=2)
    await d.edit(workerTemplate=template("img:v2", nodeSelector={"no": "where"}))
    await d.begun("img:v2")
    await d.a_while()
    await d.edit(workerTemplate=template("img:v1", nodeSelector=None))
    await d.a_while()


async def rollout_that_is_overtaken(d: Driver) -> None:
    await d.create(replicas=3, size=2)
    await d.image("img:v2")
    await d.a_while(1.0)
    await d.image("img:v3")
    await d.edit({"replicas": 2})
    await d.a_while()


async def rollout_that_cannot_start(d: Driver) -> None:
    await d.create(**TWO)
    await d.edit(workerTemplate=template("img:v2", nodeSelector={"no": "where"}))
    await d.a_while()
    await d.image("img:v3")
    await d.a_while()


async def another_size(d: Driver) -> None:
    await d.create(**TWO)
    await d.edit(size=3)
    await d.a_while()


async def another_subdomain_policy(d: Driver) -> None:
    await d.create(**TWO)
    await d.edit({"networkConfig": {"subdomainPolicy": "UniquePerReplica"}})
    await d.a_while()


async def many_revisions(d: Driver) -> None:
    await d.create(**ONE)
    for number in range(2, 5):
        await d.image(f"img:v{number}")
        # Each rollout ends before the next, also where a watch that is cut at every write comes back ever later.
        await d.a_while(LONG)
    await d.image("img:v2")
    await d.a_while()


async def a_worker_is_deleted(d: Driver) -> None:
    await d.create(replicas=2, size=3)
    await d.delete("llm-1-2")
    await d.a_while()


async def a_worker_restarts(d: Driver) -> None:
    await d.create(replicas=2, size=3)
    await d.crash("llm-0-1")
    await d.a_while()


async def a_worker_fails(d: Driver) -> None:
    await d.create(**TWO)
    await d.annotate("llm-0-1", FAIL, "Evicted")
    await d.a_while()


async def a_leader_is_deleted(d: Driver) -> None:
    await d.create(**TWO)
    await d.delete("llm-0")
    await d.a_while()


async def a_leader_restarts(d: Driver) -> None:
    await d.create(**TWO)
    await d.crash("llm-1")
    await d.a_while()


async def all_groups_restart_at_once(d: Driver) -> None:
    await d.create(replicas=3, size=2)
    for group in range(3):
        await d.crash(f"llm-{group}-1")
    await d.a_while()


async def restarts_during_a_rollout(d: Driver) -> None:
    await d.create(replicas=3, size=2)
    await d.image("img:v2")
    await d.crash("llm-0-1")
    await d.a_while()


async def restart_policy_none(d: Driver) -> None:
    await d.create(**TWO, group={"restartPolicy": "None"})
    await d.delete("llm-0-1")
    await d.a_while()
    await d.delete("llm-1")
    await d.a_while()


async def restart_policy_after_start(d: Driver) -> None:
    await d.create(**TWO, group={"restartPolicy": "RecreateGroupAfterStart"})
    await d.crash("llm-0-1")
    await d.a_while()
    await d.crash("llm-1")
    await d.a_while()


async def another_restart_policy(d: Driver) -> None:
    await d.create(**TWO, group={"restartPolicy": "None"})
    await d.edit(restartPolicy="RecreateGroupOnPodRestart")
    await d.a_while()
    await d.crash("llm-1-1")
    await d.a_while()


async def restarts_are_counted(d: Driver) -> None:
    await d.create(**TWO, group={"maxGroupRestarts": 3})
    await d.crash("llm-0-1")
    await d.a_while()
    await d.crash("llm-0")
    await d.a_while()


async def deletions_are_counted(d: Driver) -> None:
    await d.create(**TWO, group={"maxGroupRestarts": 3})
    await d.delete("llm-0-1")
    await d.a_while()


async def a_budget_is_used_up(d: Driver) -> None:
    await d.create(replicas=2, size=3, group={"maxGroupRestarts": 1})
    await d.crash("llm-0-1")
    await d.a_while()
    await d.crash("llm-0-2")
    await d.a_while()


async def a_group_recovers(d: Driver) -> None:
    await d.create(**ONE, group={"maxGroupRestarts": 0})
    await d.crash("llm-0-1")
    await d.a_while()
    await d.annotate("llm-0", names.RECOVER_ANNOTATION, "true")
    await d.a_while()


async def a_kept_group_is_scaled_away(d: Driver) -> None:
    await d.create(**TWO, group={"maxGroupRestarts": 0})
    await d.crash("llm-1-1")
    await d.a_while()
    await d.edit({"replicas": 1})
    await d.a_while()


async def a_kept_group_is_rolled_out(d: Driver) -> None:
    await d.create(**TWO, group={"maxGroupRestarts": 0})
    await d.crash("llm-1-1")
    await d.a_while()
    await d.image("img:v2")
    await d.a_while()


async def a_kept_group_goes_with_its_set(d: Driver) -> None:
    await d.create(**ONE, group={"maxGroupRestarts": 0})
    await d.crash("llm-0-1")
    await d.a_while()
    await d.cluster.delete(LEADER_WORKER_SET, "llm")
    await d.a_while()


async def counts_go_with_their_revision(d: Driver) -> None:
    await d.create(**TWO, group={"maxGroupRestarts": 3})
    await d.crash("llm-1-1")
    await d.a_while()
    await d.image("img:v2")
    await d.a_while()


async def back_off(d: Driver) -> None:
    await d.create(**ONE, group={"restartBackoff": {"baseSeconds": 120, "capSeconds": 300}})
    await d.crash("llm-0-1")
    await d.a_while()
    await d.a_while()
    await d.crash("llm-0")
    await d.a_while(400.0)


async def back_off_is_taken_away(d: Driver) -> None:
    await d.create(**ONE, group={"restartBackoff": {"baseSeconds": 300, "capSeconds": 300}})
    await d.crash("llm-0-1")
    await d.a_while()
    await d.edit(restartBackoff=None)
    await d.a_while()


async def exclusive_placement(d: Driver) -> None:
    for node, rack in (("node-0", "a"), ("node-1", "b"), ("node-2", "c")):
        await d.cluster.client.patch(NODE, node, {"metadata": {"labels": {"rack": rack}}})
    alone = {"annotations": {names.EXCLUSIVE_TOPOLOGY_ANNOTATION: "rack"}}
    await d.create(**TWO, metadata=alone)
    await d.crash("llm-0-1")
    await d.a_while()


async def claims(d: Driver) -> None:
    volumes = {
        "volumeClaimTemplates": [
            {
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            }
        ],
        "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete", "whenDeleted": "Delete"},
    }
    await d.create(**TWO, group=volumes)
    await d.crash("llm-1-1")
    await d.a_while()
    await d.edit({"replicas": 1})
    await d.a_while()
    await d.cluster.delete(LEADER_WORKER_SET, "llm")
    await d.a_while()


async def deletion_in_the_background(d: Driver) -> None:
    await d.create(**TWO)
    await d.cluster.delete(LEADER_WORKER_SET, "llm", "Background")
    await d.a_while()


async def deletion_in_the_foreground(d: Driver) -> None:
    await d.create(**TWO)
    await d.cluster.delete(LEADER_WORKER_SET, "llm", "Foreground")
    await d.a_while()


async def deletion_that_orphans(d: Driver) -> None:
    await d.create(**TWO)
    await d.cluster.delete(LEADER_WORKER_SET, "llm", "Orphan")
    await d.a_while()


async def deletion_while_it_is_made(d: Driver) -> None:
    await d.cluster.create(LEADER_WORKER_SET, set_object(replicas=2, size=2, template=template()))
    await d.a_while(0.3)
    await d.cluster.delete(LEADER_WORKER_SET, "llm")
    await d.a_while()


async def a_set_of_the_same_name(d: Driver) -> None:
    await d.create(**TWO)
    await d.cluster.delete(LEADER_WORKER_SET, "llm")
    await d.create(image="img:v2", **TWO)


async def two_sets(d: Driver) -> None:
    await d.create("one", **TWO)
    await d.create("two", replicas=1, size=3)
    await d.image("img:v2", "one")
    await d.crash("two-0-1")
    await d.a_while()


async def what_is_changed_is_put_back(d: Driver) -> None:
    await d.create(**TWO)
    await d.cluster.patch(STATEFUL_SET, "llm", {"metadata": {"labels": {names.ROLE_LABEL: "mine"}}})
    await d.a_while()
    await d.cluster.patch(STATEFUL_SET, "llm", {"spec": {"replicas": 1}})
    await d.a_while()
    await d.cluster.delete(SERVICE, "llm")
    await d.a_while()


async def workers_are_deleted(d: Driver) -> None:
    await d.create(**TWO)
    await d.cluster.delete(STATEFUL_SET, "llm-0")
    await d.a_while()


async def a_node_is_lost(d: Driver) -> None:
    # As many pods as nodes: which of several groups lose one with a node depends on who came first.
    await d.create(replicas=1, size=3)
    pods = await d.cluster.list(POD)
    node = next(p["spec"]["nodeName"] for p in pods if p["metadata"]["name"] == "llm-0")
    await d.cluster.client.delete(NODE, node)
    for pod in pods:
        if pod["spec"]["nodeName"] == node:
            try:
                await d.cluster.client.delete(POD, pod["metadata"]["name"], d.cluster.namespace, grace_seconds=0)
            except NotFound:
                continue
    await d.a_while()


MIDWAY = (rollout_that_is_taken_back, rollout_that_is_overtaken, deletion_while_it_is_made, restarts_during_a_rollout)
"""Lives in which something is done while something else goes on."""

LIVES = tuple(
    Life(drive, same_pods=drive not in MIDWAY)
    for drive in (
        creation,
        creation_with_a_service_for_each_group,
        workers_after_their_leader,
        groups_of_one,
        two_templates,
        scaling,
        rollout,
        rollout_by_two,
        rollout_with_surge,
        rollout_with_surge_and_services,
        rollout_up_to_a_partition,
        rollout_that_is_taken_back,
        rollout_that_is_overtaken,
        rollout_that_cannot_start,
        another_size,
        another_subdomain_policy,
        many_revisions,
        a_worker_is_deleted,
        a_worker_restarts,
        a_worker_fails,
        a_leader_is_deleted,
        a_leader_restarts,
        all_groups_restart_at_once,
        restarts_during_a_rollout,
        restart_policy_none,
        restart_policy_after_start,
        another_restart_policy,
        restarts_are_counted,
        deletions_are_counted,
        a_budget_is_used_up,
        a_group_recovers,
        a_kept_group_is_scaled_away,
        a_kept_group_is_rolled_out,
        a_kept_group_goes_with_its_set,
        counts_go_with_their_revision,
        back_off,
        back_off_is_taken_away,
        exclusive_placement,
        claims,
        deletion_in_the_background,
        deletion_in_the_foreground,
        deletion_that_orphans,
        deletion_while_it_is_made,
        a_set_of_the_same_name,
        two_sets,
        what_is_changed_is_put_back,
        workers_are_deleted,
        a_node_is_lost,
    )
)
