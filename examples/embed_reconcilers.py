"""LeaderWorkerSets served by a program of one's own: python examples/embed_reconcilers.py

The program is a platform's: it runs the two controllers beside code of its own, which looks at the same informers. The
cluster is the embedded one, so that the example needs nothing else; `lwskit.runtime.client.config.connect` leads to any
other one.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from lwskit.admission.webhooks import handlers
from lwskit.api import names
from lwskit.api.crds import crds
from lwskit.backends.registry import find
from lwskit.embedded.cluster import Cluster
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.manager.inprocess import register
from lwskit.reconcilers.setup import group_controller, set_controller
from lwskit.reconcilers.watches import Watches
from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.clock import Clock, RealClock, real_random
from lwskit.runtime.events import Recorder
from lwskit.runtime.execute import Executor
from lwskit.runtime.logging import configure
from lwskit.runtime.manager import Manager
from lwskit.runtime.objects import Obj, is_true

SET: Obj = {
    "apiVersion": names.API_VERSION,
    "kind": names.KIND,
    "metadata": {"name": "llm", "namespace": "default"},
    "spec": {
        "replicas": 2,
        "leaderWorkerTemplate": {
            "size": 3,
            "workerTemplate": {"spec": {"containers": [{"name": "server", "image": "example.com/server:1"}]}},
        },
    },
}


class Availability:
    """The platform's own code: it is told of every change of a set, as the cache sees it."""

    def __init__(self, tell: Callable[[str], object]) -> None:
        self.reached = asyncio.Event()
        self._tell = tell

    def on_add(self, obj: Obj, initial: bool) -> None:
        """A set appeared; `initial` for those that were there when the program started."""
        self._look(None, obj)

    def on_update(self, old: Obj, new: Obj) -> None:
        """A set changed, its status included."""
        self._look(old, new)

    def on_delete(self, obj: Obj, unknown: bool) -> None:
        """A set is gone."""
        self._tell(f"{obj['metadata']['name']} is gone")

    def _look(self, old: Obj | None, new: Obj) -> None:
        if is_true(new, names.CONDITION_AVAILABLE) and not (old and is_true(old, names.CONDITION_AVAILABLE)):
            self._tell(f"{new['metadata']['name']} is available with {new['status']['readyReplicas']} groups")
            self.reached.set()


async def main(clock: Clock, rng: random.Random, tell: Callable[[str], object] = print) -> None:
    """Serve sets until one is available."""
    async with Cluster(clock, rng, nodes=3, crds=crds()) as cluster:
        client = cluster.client_for("platform")
        cache = Cache(client, clock, rng, keep_manager=names.FIELD_MANAGER)
        recorder = Recorder(client, clock, names.EVENT_CONTROLLER, "platform-1")
        executor = Executor(client, cache, recorder, clock, "platform")
        watches = Watches(cache, find())
        availability = Availability(tell)
        watches.sets.add_handler(availability)

        manager = Manager(clock, rng, graceful_timeout=1.0)
        for runnable in (
            recorder,
            cache,
            set_controller(watches, executor, clock, rng),
            group_controller(watches, executor, clock, rng),
        ):
            manager.add(runnable)
        await register(cluster.server, cluster.client, handlers(rng))

        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(manager.run(), name="manager")
            await cluster.client.create(LEADER_WORKER_SET, SET)
            await availability.reached.wait()
            running.cancel()


if __name__ == "__main__":
    configure(level="warn")
    asyncio.run(main(RealClock(), real_random()))
