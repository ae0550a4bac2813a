"""Rollouts on a cluster whose StatefulSet controller is the test: values of 20 §7.7, which hold only for such pods.

Leaders are made by the test, and groups are brought to the current revision by new labels instead of by new pods.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import pytest

from lwskit.api import names
from lwskit.runtime.kinds import POD, STATEFUL_SET
from lwskit.runtime.objects import Obj, controller_reference, is_controlled_by, uid_of
from lwskit.testing.cluster import TestCluster
from tests.scenarios.support import Sets, partition_of, pod_template, revision_key
from tests.tables import SEQUENCES, Sequence, Step

pytestmark = pytest.mark.without("statefulset")

NAME = "x"


class StatefulSets:
    """Plays the StatefulSet controller for the set's leaders and, with statuses alone, for their workers."""

    def __init__(self, sets: Sets) -> None:
        self.sets = sets
        self.cluster = sets.cluster

    async def make(self, *ordinals: int) -> None:
        """Leaders that do not exist yet, from the leader workload's template; they are not ready."""
        workload = await self.sets.leader_workload(NAME)
        there = await self.sets.pods(NAME)
        for i in ordinals:
            if f"{NAME}-{i}" not in there:
                await self.cluster.create(POD, leader_of(workload, i))
                await self._workers(i)

    async def ready(self, *ordinals: int) -> None:
        """Groups that are ready and carry the key of the current revision, made where they do not exist."""
        await self.make(*ordinals)
        for i in ordinals:
            name, labels = f"{NAME}-{i}", await self._current_labels()
            await self.cluster.patch(POD, name, {"metadata": {"labels": labels}})
            await self.cluster.kubelet.ready(name)
            workers = await self._workers(i)
            await self.cluster.patch(STATEFUL_SET, name, {"metadata": {"labels": labels}})
            count = workers["spec"]["replicas"]
            status = {"replicas": count, "readyReplicas": count, "availableReplicas": count}
            body = {"status": {**status, "currentRevision": "r", "updateRevision": "r"}}
            await self.cluster.patch(STATEFUL_SET, name, body, subresource="status")

    async def unready(self, *ordinals: int) -> None:
        """Groups whose leaders are not ready any more."""
        await self.cluster.kubelet.unready(*(f"{NAME}-{i}" for i in ordinals))

    async def remove(self, *ordinals: int) -> None:
        """Groups that are gone, with what the garbage collector removes after their leaders."""
        for i in ordinals:
            await self.cluster.delete(POD, f"{NAME}-{i}")

        async def gone() -> None:
            there = {*await self.cluster.names(POD), *await self.cluster.names(STATEFUL_SET)}
            assert not there & {f"{NAME}-{i}" for i in ordinals}

        await self.cluster.eventually(gone)

    async def _current_labels(self) -> dict[str, str]:
        return {names.REVISION_LABEL: revision_key(await self.sets.leader_workload(NAME))}

    async def _workers(self, i: int) -> Obj:
        """The workload that the manager makes for a leader's workers."""

        async def made() -> Obj:
            leader = await self.cluster.get(POD, f"{NAME}-{i}")
            workers = await self.cluster.get(STATEFUL_SET, f"{NAME}-{i}")
            assert is_controlled_by(workers, POD, uid_of(leader))
            return workers

        return await self.cluster.eventually(made)


def leader_of(workload: Obj, i: int) -> Obj:
    """A leader pod as the StatefulSet controller makes it."""
    template, name = workload["spec"]["template"], f"{NAME}-{i}"
    metadata = {**template["metadata"], "name": name, "ownerReferences": [controller_reference(workload, STATEFUL_SET)]}
    labels = {**template["metadata"]["labels"], "statefulset.kubernetes.io/pod-name": name}
    spec = {**template["spec"], "hostname": name, "subdomain": workload["spec"]["serviceName"]}
    return {"metadata": {**metadata, "labels": labels}, "spec": spec}


async def take(sets: Sets, play: StatefulSets, step: Step) -> None:
    """Carry out one step: what comes before the user's changes, these as one request, and what comes after them."""
    spec: Obj = {}
    last = -1
    for position, (letter, numbers) in enumerate(step.what):
        if letter in "TU":
            spec["leaderWorkerTemplate"] = {"workerTemplate": pod_template("img:B" if letter == "T" else "img:C")}
        elif letter == "N":
            spec["replicas"] = numbers[0]
        elif letter == "p":
            spec["rolloutStrategy"] = {"rollingUpdateConfiguration": {"partition": numbers[0]}}
        else:
            continue
        last = position
    await play_all(play, step.what[: last + 1])
    if spec:
        await sets.patch({"spec": spec}, NAME)
    await play_all(play, step.what[last + 1 :])


async def play_all(play: StatefulSets, what: Iterable[tuple[str, tuple[int, ...]]]) -> None:
    """What happens to groups, in its order; the user's changes are left out."""
    verbs = {"r": play.ready, "u": play.unready, "c": play.make, "d": play.remove}
    for letter, numbers in what:
        if letter in verbs:
            await verbs[letter](*numbers)


async def is_there(sets: Sets, step: Step) -> None:
    """Assert that everything is as the step ends."""
    workload, live = await sets.leader_workload(NAME), await sets.live(NAME)
    counts = f"{live['status'].get('readyReplicas', 0)}/{live['status'].get('updatedReplicas', 0)}"
    assert f"{workload['spec']['replicas']},{partition_of(workload)},{counts}" == step.expected
    if step.available:
        assert (await sets.conditions(NAME))[names.CONDITION_AVAILABLE] == "True"
    if step.revisions:
        assert len(await sets.revisions(NAME)) == step.revisions


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda s: s.name)
async def test_sequence(cluster: TestCluster, sets: Sets, sequence: Sequence):
    """20 §14 lines 13, 27, 30, 31, 32, 34, 35, 36, 37, 43, 48: replicas, partition and counts after each step."""
    strategy = {"type": "RollingUpdate", "rollingUpdateConfiguration": sequence.rolling}
    await sets.create(NAME, replicas=sequence.replicas, size=2, image="img:A", rolloutStrategy=strategy)
    await cluster.eventually(lambda: sets.leader_workload(NAME))
    play = StatefulSets(sets)
    await play.ready(*range(sequence.replicas))

    async def available() -> None:
        assert (await sets.conditions(NAME))[names.CONDITION_AVAILABLE] == "True"

    await cluster.eventually(available)
    for step in sequence.steps:
        await take(sets, play, step)
        await cluster.eventually(partial(is_there, sets, step))
    await sets.settled()
    await is_there(sets, sequence.steps[-1])
