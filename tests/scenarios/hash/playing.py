"""Plays the nodes of many sets in Hash mode at once: pods of groups that go are held until they are told to be gone."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from lwskit.api import names
from lwskit.groups.budget import is_exhausted
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.errors import Conflict, NotFound
from lwskit.runtime.kinds import DEPLOYMENT, POD, REPLICA_SET, STATEFUL_SET
from lwskit.runtime.objects import (
    Obj,
    annotations_of,
    controller_of,
    is_deleting,
    is_true,
    labels_of,
    uid_of,
    version_of,
)
from lwskit.simulate import order as orders
from lwskit.simulate.hashed_rollout import HashStep
from lwskit.testing.cluster import TestCluster
from tests.scenarios.behind import nobody_is_behind
from tests.scenarios.beside import beside
from tests.scenarios.hash.gating import WAIT
from tests.scenarios.hash.support import is_gated

QUIET = 1.0
LOOK = 0.2
"""Seconds between two looks for pods that may be gone."""

NEW = "new"
Class = tuple[str, bool, bool, bool]
"""What tells a group from others: its ReplicaSet (NEW for one that the edit makes), at its gate, ready, going."""


def classes(found: Iterable[Class], *, gates: bool) -> Counter[Class]:
    """How many groups of each kind there are; without `gates` it is not told which wait at theirs."""
    return Counter((of, gated and gates, ready, going) for of, gated, ready, going in found)


def foretold(step: HashStep) -> list[Class]:
    """The groups after a step of a plan."""
    return [(NEW if g.template.startswith("simulated") else g.template, g.gated, g.ready, g.going) for g in step.groups]


@dataclass(slots=True)
class Leaders:
    """What is known of the leaders of one set since its edit."""

    known: set[str]
    """UIDs of those that were there, and at no gate."""
    sets: set[str]
    """UIDs of the ReplicaSets that were there."""
    starting: str
    """The ReplicaSet of a rollout that was not finished then."""
    stuck: set[str]
    numbers: dict[str, int] = field(default_factory=dict)
    """By UID, as a plan numbers them."""


class Player:
    """Lets groups be gone and become ready. All waiting is for all sets at once."""

    def __init__(self, cluster: TestCluster) -> None:
        self.cluster = cluster
        self.sets: dict[str, Leaders] = {}
        self._gone: set[str] = set()
        self._over = False

    @asynccontextmanager
    async def playing(self) -> AsyncIterator[None]:
        """Inside the block pods that may be gone are gone; after it all sets."""
        async with beside(self._sweep(), "sweeper"):
            try:
                yield
            finally:
                if not self.cluster.embedded:
                    await self._end()

    async def _end(self) -> None:
        """Leave no pod behind that something holds."""
        self._over = True
        for lws in await self.cluster.list(LEADER_WORKER_SET):
            await self.cluster.delete(LEADER_WORKER_SET, lws["metadata"]["name"])

        async def gone() -> None:
            assert not await self.cluster.list(POD)

        await self.cluster.eventually(gone)

    async def _sweep(self) -> None:
        """Leaders that are deleted at their gate are on no node: nothing holds them."""
        while True:
            for pod in await self.cluster.list(POD):
                there = pod["metadata"].get("finalizers") or ()
                if WAIT in there and is_deleting(pod) and (self._over or is_gated(pod) or _key(pod) in self._gone):
                    rest = [f for f in there if f != WAIT]
                    # Finalizers of others come and go meanwhile; the next look is soon.
                    with contextlib.suppress(NotFound, Conflict):
                        body = {"metadata": {"finalizers": rest or None, "resourceVersion": version_of(pod)}}
                        await self.cluster.patch(POD, pod["metadata"]["name"], body)
            await asyncio.sleep(LOOK)

    async def rest(self) -> None:
        """Until nothing changes any more."""
        if self.cluster.embedded:
            await asyncio.sleep(QUIET)
            return
        while True:
            await self.cluster.eventually(lambda: nobody_is_behind(self.cluster))
            await self.cluster.settled(LEADER_WORKER_SET, DEPLOYMENT, REPLICA_SET, STATEFUL_SET, POD)
            with contextlib.suppress(AssertionError):
                await nobody_is_behind(self.cluster)
                return

    async def leaders(self) -> dict[str, list[Obj]]:
        """The leaders of each set, as they stand at their gate."""
        found: dict[str, list[Obj]] = defaultdict(list)
        pods = await self.cluster.list(POD, f"{names.WORKER_INDEX_LABEL}={names.LEADER_INDEX}")
        for pod in sorted(pods, key=lambda p: (p["metadata"]["creationTimestamp"], p["metadata"]["name"])):
            found[labels_of(pod)[names.NAME_LABEL]].append(pod)
        return found

    async def replica_sets(self) -> dict[str, dict[str, Obj]]:
        """The ReplicaSets of each set by UID."""
        found: dict[str, dict[str, Obj]] = defaultdict(dict)
        for one in await self.cluster.list(REPLICA_SET):
            found[one["metadata"]["name"].rpartition("-")[0]][uid_of(one)] = one
        return found

    async def newest(self) -> dict[str, str]:
        """The UID of the ReplicaSet of each Deployment's present template."""
        revision = "deployment.kubernetes.io/revision"
        wanted = {d["metadata"]["name"]: annotations_of(d).get(revision) for d in await self.cluster.list(DEPLOYMENT)}
        sets = (await self.replica_sets()).items()
        return {
            name: uid
            for name, known in sets
            for uid, one in known.items()
            if annotations_of(one).get(revision) == wanted[name]
        }

    async def remember(self, stuck: Mapping[str, set[str]]) -> None:
        """What is there now was there before the edits."""
        newest, sets, leaders = await self.newest(), await self.replica_sets(), await self.leaders()
        for name in sets:
            living = [p for p in leaders.get(name, []) if not is_deleting(p)]
            rolling = any(_set_of(p) != newest[name] for p in living)
            known = {uid_of(p) for p in leaders.get(name, []) if not is_gated(p)}
            there = Leaders(known, set(sets[name]), newest[name] if rolling else "", stuck.get(name, set()))
            there.numbers = {uid_of(p): i + 1 - len(leaders[name]) for i, p in enumerate(leaders.get(name, []))}
            self.sets[name] = there

    async def look(self) -> dict[str, list[Class]]:
        """How all groups stand; those that are seen for the first time are numbered."""
        newest, all_leaders = await self.newest(), await self.leaders()
        found: dict[str, list[Class]] = {}
        for name, there in self.sets.items():
            leaders = all_leaders.get(name, [])
            new = [p for p in leaders if uid_of(p) not in there.numbers and not is_deleting(p)]
            new.sort(key=lambda p: _set_of(p) == newest[name])
            for number, pod in enumerate(new, max(1, 1 + max(there.numbers.values(), default=0))):
                there.numbers[uid_of(pod)] = number
            found[name] = [
                (
                    _set_of(pod) if _set_of(pod) in there.sets else NEW,
                    is_gated(pod),
                    is_true(pod, "Ready") and not is_deleting(pod),
                    is_deleting(pod),
                )
                for pod in leaders
            ]
        return found

    async def round(self, choose: Mapping[str, orders.Order]) -> set[str]:
        """One event for each set: all that goes is gone, or else the next groups become ready. Those that had one."""
        newest = await self.newest()
        acted: set[str] = set()
        ready: list[Obj] = []
        for name, pods in (await self.leaders()).items():
            going = {_key(p) for p in pods if is_deleting(p) and not is_exhausted(p)}
            if going:
                self._gone |= going
                acted.add(name)
                continue
            pending = {self.sets[name].numbers[uid_of(p)]: p for p in pods if self._may(name, p, newest[name])}
            chosen = choose[name](sorted(pending)) if pending else ()
            ready += [pending[number] for number in chosen]
            if chosen:
                acted.add(name)
        await self.cluster.eventually(self._are_gone)
        await self.ready(ready)
        return acted

    async def _are_gone(self) -> None:
        pods = await self.cluster.list(POD)
        assert not [p["metadata"]["name"] for p in pods if labels_of(p).get(names.GROUP_KEY_LABEL) in self._gone]

    def _may(self, name: str, pod: Obj, newest: str) -> bool:
        there, uid = self.sets[name], uid_of(pod)
        if is_true(pod, "Ready") or is_gated(pod) or is_exhausted(pod) or (uid in there.known and uid in there.stuck):
            return False
        return uid not in there.known or _set_of(pod) in (newest, there.starting)

    async def ready(self, leaders: list[Obj]) -> None:
        """Whole groups: all their workers, and then all leaders at once."""
        for leader in leaders:
            size = int(annotations_of(leader)[names.SIZE_ANNOTATION])
            host = leader["spec"]["hostname"]
            for worker in (f"{host}-{i}" for i in range(1, size)):
                await self.cluster.eventually(lambda name=worker: self.cluster.get(POD, name))
                await self.cluster.kubelet.ready(worker)
        for leader in leaders:
            await self.cluster.eventually(lambda name=leader["metadata"]["name"]: self._is_awaited(name))
        for leader in leaders:
            # Of several groups of one set, one may be given up when another has become ready.
            with contextlib.suppress(NotFound):
                await self.cluster.kubelet.ready(leader["metadata"]["name"])

    async def _is_awaited(self, name: str) -> None:
        pod = await self.cluster.get(POD, name)
        wanted = [g["conditionType"] for g in pod["spec"].get("readinessGates") or ()]
        assert all(is_true(pod, kind) for kind in wanted), name


def _key(pod: Obj) -> str:
    return labels_of(pod).get(names.GROUP_KEY_LABEL, "")


def _set_of(pod: Obj) -> str:
    owner = controller_of(pod)
    return owner["uid"] if owner is not None else ""
