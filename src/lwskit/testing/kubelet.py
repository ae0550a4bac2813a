"""A kubelet in a test's hands: it writes the pod statuses that a node's would, when the test says so.

Works on any cluster where no other kubelet looks after the pods: the embedded one without its kubelet, and a real
control plane without nodes, where an unscheduled pod's deletion is finished by the API server at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from lwskit.runtime.client.client import Client
from lwskit.runtime.client.requests import PatchType
from lwskit.runtime.clock import Clock, rfc3339
from lwskit.runtime.errors import Conflict, NotFound
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import Obj, is_deleting, is_true, uid_of

ROUND = 0.1
"""Seconds between two looks at the pods of a kubelet that plays by itself."""


class Kubelet:
    """Plays the kubelet for the pods of one namespace.

    Statuses are written for what was read: a pod that somebody else has written meanwhile is read again, and one that
    was replaced is left alone. Methods that take pod names raise NotFound for a pod that does not exist, and Conflict
    for one that was replaced meanwhile. A cancelled call may have written some of the statuses.
    """

    def __init__(self, client: Client, clock: Clock, namespace: str) -> None:
        self._client = client
        self._clock = clock
        self._namespace = namespace

    async def ready(self, *names: str) -> None:
        """Make pods Running and Ready, as far as their readiness gates are fulfilled."""
        for name in names:
            await self._report(name, "Running", True)

    async def unready(self, *names: str) -> None:
        """Leave pods Running, no longer Ready."""
        for name in names:
            await self._report(name, "Running", False)

    async def pending(self, *names: str) -> None:
        """Make pods Pending, as while their images are pulled."""
        for name in names:
            await self._report(name, "Pending", False)

    async def fail(self, name: str) -> None:
        """End all containers of a pod with an error; its phase is Failed."""
        await self._report(name, "Failed", False)

    async def restart_container(self, name: str, container: str | None = None, *, ready: bool = True) -> None:
        """Count one more restart of a container or init container (default: the first container) of a running pod."""
        first: str = (await self._pod(name))["spec"]["containers"][0]["name"]
        await self._report(name, "Running", ready, container or first)

    async def make_ready(self, which: str | Sequence[str] = "all", *, quiet: float = 1.0) -> None:
        """Make the named pods ready, or with `all` every pod until none that is not ready has been seen for `quiet` s.

        A pod that has readiness gates which are not fulfilled, is gated, failed or is being deleted is not waited for.
        """
        if which != "all":
            await self.ready(*([which] if isinstance(which, str) else which))
            return
        loop = asyncio.get_running_loop()
        since = loop.time()
        while loop.time() - since < quiet:
            if await self._round():
                since = loop.time()
            await asyncio.sleep(ROUND)

    @asynccontextmanager
    async def playing(self) -> AsyncIterator[None]:
        """Inside the block every pod becomes ready soon after it appears."""
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self._play(), name="test-kubelet")
            try:
                yield
            finally:
                task.cancel()

    async def _play(self) -> None:
        while True:
            await self._round()
            await asyncio.sleep(ROUND)

    async def _round(self) -> bool:
        """Make all pods ready that can be; tells whether there was one."""
        listed = await self._client.list(POD, self._namespace)
        unready = [p for p in listed["items"] if _can_become_ready(p)]
        for pod in unready:
            try:
                await self._write(pod, "Running", True)
            except (NotFound, Conflict):
                continue
        return bool(unready)

    async def _pod(self, name: str) -> Obj:
        return await self._client.get(POD, name, self._namespace)

    async def _report(self, name: str, phase: str, ready: bool, restarted: str = "") -> None:
        """Write the status of a pod as it is now, again if somebody else has just written it."""
        pod = await self._pod(name)
        while True:
            try:
                return await self._write(pod, phase, ready, restarted)
            except Conflict:
                before, pod = pod, await self._pod(name)
                if uid_of(pod) != uid_of(before):
                    raise

    async def _write(self, pod: Obj, phase: str, ready: bool, restarted: str = "") -> None:
        meta = pod["metadata"]
        # What was read says whether readiness gates are fulfilled and how often containers have restarted.
        body = {
            "metadata": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]},
            "status": pod_status(pod, phase, ready, rfc3339(self._clock.now()), restarted),
        }
        await self._client.patch(
            POD, meta["name"], body, self._namespace, patch_type=PatchType.STRATEGIC, subresource="status"
        )


def pod_status(pod: Obj, phase: str, ready: bool, now: str, restarted: str = "") -> Obj:
    """The status a kubelet reports for a pod: phase, conditions, and one entry for each container.

    `now` is the time as objects carry it; `restarted` names the container, init or not, that has restarted once more.
    """
    old = pod.get("status") or {}
    counts = {
        c["name"]: c.get("restartCount", 0)
        for field in ("initContainerStatuses", "containerStatuses")
        for c in old.get(field) or ()
    }
    if restarted:
        counts[restarted] = counts.get(restarted, 0) + 1
    flags = {"ContainersReady": ready, "Ready": ready and _gates_fulfilled(pod)}
    status: Obj = {
        "phase": phase,
        "conditions": [
            {"type": kind, "status": "True" if flag else "False", "lastTransitionTime": now}
            for kind, flag in flags.items()
        ],
        "containerStatuses": [
            {
                "name": c["name"],
                "image": c.get("image", ""),
                "imageID": "",
                "ready": ready,
                "restartCount": counts.get(c["name"], 0),
                "state": _state(phase, now),
            }
            for c in pod["spec"]["containers"]
        ],
    }
    if inits := pod["spec"].get("initContainers"):
        status["initContainerStatuses"] = [
            {
                "name": c["name"],
                "image": c.get("image", ""),
                "imageID": "",
                "ready": True,
                "restartCount": counts.get(c["name"], 0),
                "state": {"terminated": {"exitCode": 0, "reason": "Completed"}},
            }
            for c in inits
        ]
    return status


def _state(phase: str, now: str) -> Obj:
    if phase == "Running":
        return {"running": {"startedAt": now}}
    if phase == "Failed":
        return {"terminated": {"exitCode": 1, "reason": "Error"}}
    return {"waiting": {"reason": "ContainerCreating"}}


def _gates_fulfilled(pod: Obj) -> bool:
    return all(is_true(pod, gate["conditionType"]) for gate in pod["spec"].get("readinessGates") or ())


def _can_become_ready(pod: Obj) -> bool:
    return not (
        is_deleting(pod)
        or is_true(pod, "Ready")
        or pod["spec"].get("schedulingGates")
        or (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded")
        or (is_true(pod, "ContainersReady") and not _gates_fulfilled(pod))
    )
