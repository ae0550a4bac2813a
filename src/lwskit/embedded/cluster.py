"""A whole cluster in this process: the API server and, unless left out, the controllers that make it live."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Collection, Sequence
from types import TracebackType
from typing import Protocol

import structlog

from lwskit.embedded.apiserver import ApiServer
from lwskit.embedded.controllers import (
    claims,
    deployment,
    garbage,
    kubelet,
    namespace,
    replicaset,
    scheduler,
    statefulset,
)
from lwskit.embedded.controllers.events import CoreRecorder
from lwskit.embedded.controllers.kubelet import Kubelet
from lwskit.embedded.controllers.kubelet_behaviour import Behaviour
from lwskit.embedded.controllers.nodes import NodeSpec
from lwskit.embedded.store import Store
from lwskit.embedded.transport import InProcessTransport
from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.events import Recorder
from lwskit.runtime.kinds import CUSTOM_RESOURCE_DEFINITION
from lwskit.runtime.objects import Obj

CONTROLLERS = ("scheduler", "kubelet", "statefulset", "deployment", "replicaset", "claims", "garbage", "namespace")
"""What a cluster runs besides the API server, and what it can be made without."""
MANAGER = "kube-controller-manager"
"""The field manager of the controllers, as on other clusters."""

_log = structlog.get_logger(__name__)


class _Runnable(Protocol):
    async def run(self) -> None: ...


class Cluster:
    """An embedded cluster, running between `start` and `stop` or as an async context manager.

    `nodes` are a number, names or NodeSpecs; `without` names what of CONTROLLERS is not run; `crds` are created at the
    start; `speed` divides the kubelet's delays, `behaviour` is what its pods do. Everything follows `clock` and `rng`,
    so on a virtual loop a run repeats itself. `client` is an administrator's, `server` the API server; both can be used
    before the start, which only the controllers need.
    """

    def __init__(
        self,
        clock: Clock,
        rng: random.Random,
        *,
        nodes: int | Sequence[NodeSpec | str] = 1,
        without: Collection[str] = frozenset(),
        crds: Sequence[Obj] = (),
        speed: float = 1.0,
        behaviour: Behaviour | None = None,
    ) -> None:
        unknown = sorted(set(without) - set(CONTROLLERS))
        if unknown:
            raise ConfigurationError(
                f"a cluster cannot be made without {', '.join(unknown)}; it can without {', '.join(CONTROLLERS)}"
            )
        self._clock = clock
        self._rng = rng
        self._without = frozenset(without)
        self._crds = tuple(crds)
        self.server = ApiServer(Store(), clock, rng)
        self.client = self.client_for()
        self.kubelet: Kubelet | None = None
        """The kubelet, for tests that let it crash containers; None on a cluster without."""
        if "kubelet" not in self._without:
            self.kubelet = Kubelet(
                self.client_for(kubelet.FIELD_MANAGER),
                nodes,
                clock=clock,
                rng=rng,
                behaviour=behaviour,
                speed=speed,
            )
        self._task: asyncio.Task[None] | None = None

    def client_for(self, field_manager: str | None = None) -> Client:
        """Another client of this cluster, in process, with a default field manager."""
        return Client(InProcessTransport(self.server), field_manager=field_manager, clock=self._clock)

    async def start(self) -> None:
        """Create the CRDs and start the controllers; returns when nodes are ready and everything watches.

        Raises ConfigurationError when it runs already, and the error of a controller that cannot start. When
        cancelled, what was started is stopped.
        """
        if self._task is not None:
            raise ConfigurationError("this cluster runs already; make another one")
        for crd in self._crds:
            await self.client.create(CUSTOM_RESOURCE_DEFINITION, crd)
        ready = asyncio.Event()
        self._task = asyncio.create_task(self._run(ready), name="embedded cluster")
        self._task.add_done_callback(_report)
        waiter = asyncio.create_task(ready.wait(), name="embedded cluster start")
        try:
            await asyncio.wait({self._task, waiter}, return_when=asyncio.FIRST_COMPLETED)
            if self._task.done():
                self._task.result()
        except asyncio.CancelledError:
            await self.stop()
            raise
        finally:
            waiter.cancel()

    async def stop(self) -> None:
        """Stop the controllers and close the connections to webhooks; the objects stay readable.

        Raises the error of a controller that ended before.
        """
        task, self._task = self._task, None
        if task is None:
            return
        failed = task.done()
        task.cancel()
        await asyncio.wait({task})
        await self.server.backend.admission.close()
        if failed and not task.cancelled():
            task.result()

    async def _run(self, ready: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            for started in self._start(group):
                await started.wait()
            ready.set()
            # The controllers run until they are cancelled or one of them fails.

    def _start(self, group: asyncio.TaskGroup) -> list[asyncio.Event]:
        """Start what this cluster has; returns the events that tell when each part is ready."""
        waits: list[asyncio.Event] = []
        clock, rng = self._clock, self._rng

        def run(work: _Runnable, name: str) -> None:
            group.create_task(work.run(), name=name)

        if self.kubelet is not None:
            run(self.kubelet, "kubelet")
            waits.append(self.kubelet.ready)
        manager = self.client_for(MANAGER)
        cache = Cache(manager, clock, rng)
        # What makes pods is told of a change first, as where every request of the other takes its time.
        workloads = {"statefulset": statefulset, "replicaset": replicaset, "deployment": deployment}
        for name, controller in workloads.items():
            if name not in self._without:
                recorder = CoreRecorder(manager, clock, controller.COMPONENT)
                run(recorder, f"events of {name}")
                run(controller.build(manager, cache, clock, rng, recorder), name)
        if "claims" not in self._without:
            run(claims.build(manager, cache, clock, rng), "claims")
        if "namespace" not in self._without:
            run(namespace.build(manager, cache, clock, rng), "namespace")
        run(cache, "cache of the controllers")
        if "garbage" not in self._without:
            recorder = CoreRecorder(manager, clock, garbage.COMPONENT)
            collector = garbage.build(manager, clock, rng, recorder)
            run(recorder, "events of garbage")
            run(collector, "garbage")
            waits.append(collector.ready)
        if "scheduler" not in self._without:
            client = self.client_for("kube-scheduler")
            pods = Cache(client, clock, rng)
            events = Recorder(client, clock, scheduler.NAME, f"{scheduler.NAME}-embedded", rng)
            run(events, "events of scheduler")
            run(scheduler.build(client, pods, clock, rng, events), "scheduler")
            run(pods, "cache of the scheduler")
        waits += [informer.synced for informer in cache.informers()]
        return waits

    async def __aenter__(self) -> Cluster:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()


def _report(task: asyncio.Task[None]) -> None:
    """Say at once that a controller has ended: whoever runs the cluster learns of it only at the stop."""
    if not task.cancelled() and task.exception() is not None:
        _log.error("the embedded cluster has failed", exc_info=task.exception())
