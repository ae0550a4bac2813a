"""What lives of LeaderWorkerSets are told in: something is done, and after a while the next thing.

Nobody waits for what should come of it: a minute is enough for everything that does, disturbed or not, and what has
come is compared at the end. Only what is done about a rollout under way waits until that has begun.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.errors import NotFound
from lwskit.runtime.kinds import POD, STATEFUL_SET, Kind
from lwskit.runtime.objects import Obj
from lwskit.testing.cluster import TestCluster
from lwskit.testing.endstate import Compared
from tests.exploration.settings import drawn
from tests.scenarios.support import set_object

WHILE = 90.0
CRASH = "embedded.k8s.test/crash"
FAIL = "embedded.k8s.test/fail"

Drive = Callable[["Driver"], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Life:
    """One life: its name, and whether every run of it makes each pod as often as the undisturbed one.

    Where something is done in the middle of a rollout, how far that had come may differ.
    """

    drive: Drive
    same_pods: bool = True
    drawn: bool = False
    """Whether its groups are named by keys, which are drawn."""
    quiet: float = 60.0
    """Seconds without a change after which it has ended.

    Where watches break again and again one may be closed for a minute; a step may wait for one after the other.
    """

    def compared(self, compared: Compared) -> Compared:
        """What of two of its runs is compared, of what is compared in general."""
        if not self.same_pods:
            compared = replace(compared, made=())
        return drawn(compared) if self.drawn else compared

    @property
    def name(self) -> str:
        """As the function is called."""
        return getattr(self.drive, "__name__", "life")

    def scenario(self) -> Callable[[TestCluster], Awaitable[None]]:
        """What `explore` is given."""

        async def run(cluster: TestCluster) -> None:
            await self.drive(Driver(cluster))

        run.__name__ = self.name
        return run


def template(image: str = "img:v1", **spec: Any) -> Obj:
    """A pod template with one container, for the cluster's own scheduler."""
    return {"spec": {"containers": [{"name": "worker", "image": image}], **spec}}


def pace(**fields: Any) -> Obj:
    """A rollout strategy."""
    return {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxUnavailable": 1, "maxSurge": 0, **fields}}


class Driver:
    """Does things to the set `llm`, and others."""

    def __init__(self, cluster: TestCluster) -> None:
        self.cluster = cluster

    async def a_while(self, seconds: float = WHILE) -> None:
        """Let everything come to rest."""
        await self.cluster.clock.sleep(seconds)

    async def create(self, name: str = "llm", *, image: str = "img:v1", **fields: Any) -> None:
        """A set that becomes ready in a while."""
        fields.setdefault("template", template(image))
        await self.cluster.create(LEADER_WORKER_SET, set_object(name, **fields))
        await self.a_while()

    async def edit(self, spec: Obj | None = None, name: str = "llm", **template_fields: Any) -> None:
        """Change fields of the spec, and of `leaderWorkerTemplate`."""
        body = copy.deepcopy(spec or {})
        if template_fields:
            body["leaderWorkerTemplate"] = template_fields
        await self.cluster.patch(LEADER_WORKER_SET, name, {"spec": body})

    async def image(self, image: str, name: str = "llm") -> None:
        """Another image for all pods."""
        await self.edit(name=name, workerTemplate=template(image))

    async def annotate(self, pod: str, key: str, value: str) -> None:
        """An annotation on a pod, which may be gone."""
        try:
            await self.cluster.patch(POD, pod, {"metadata": {"annotations": {key: value}}})
        except NotFound:
            return

    async def crash(self, pod: str) -> None:
        """A container of it restarts once."""
        await self.annotate(pod, CRASH, "1")

    async def delete(self, pod: str) -> None:
        """Delete a pod, as a user does."""
        await self.cluster.delete(POD, pod)

    async def begun(self, image: str, kind: Kind = STATEFUL_SET, name: str = "llm") -> None:
        """Wait until the leaders' workload has that image: a rollout to it has begun."""

        async def check() -> None:
            pods = (await self.cluster.get(kind, name))["spec"]["template"]
            assert pods["spec"]["containers"][0]["image"] == image

        await self.cluster.eventually(check)
