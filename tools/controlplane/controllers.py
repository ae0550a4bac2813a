"""Runs controllers of the embedded cluster against another API server: its kubelet, or all of them where it has none.

python controllers.py --kubeconfig FILE [--nodes N] [--pods-per-node N] [--quiet]
                      statefulset|deployment|replicaset|claims|garbage|namespace|scheduler|kubelet...
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
from collections.abc import Sequence

from lwskit.embedded.controllers import claims, deployment, garbage, namespace, replicaset, scheduler, statefulset
from lwskit.embedded.controllers.events import CoreRecorder
from lwskit.embedded.controllers.kubelet import FIELD_MANAGER, Kubelet
from lwskit.embedded.controllers.nodes import CAPACITY, NodeSpec
from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.client.client import Client
from lwskit.runtime.client.config import connect
from lwskit.runtime.clock import RealClock, real_random
from lwskit.runtime.errors import LwskitError

NAMES = ("statefulset", "deployment", "replicaset", "claims", "garbage", "namespace", "scheduler", "kubelet")
CONTROLLERS = "lwskit-controllers"
KUBELET = "lwskit-kubelet"


async def run_controllers(client: Client, names: Sequence[str]) -> None:
    """Run the named controllers, the kubelet apart, until cancelled."""
    clock, rng = RealClock(), real_random()
    cache = Cache(client, clock, rng)
    recorder = CoreRecorder(client, clock, CONTROLLERS)
    made = {
        "statefulset": lambda: statefulset.build(client, cache, clock, rng, recorder),
        "deployment": lambda: deployment.build(client, cache, clock, rng, recorder),
        "replicaset": lambda: replicaset.build(client, cache, clock, rng, recorder),
        "claims": lambda: claims.build(client, cache, clock, rng),
        "garbage": lambda: garbage.build(client, clock, rng, recorder),
        "namespace": lambda: namespace.build(client, cache, clock, rng),
        "scheduler": lambda: scheduler.build(client, cache, clock, rng, recorder),
    }
    running = [made[name]() for name in names]
    async with asyncio.TaskGroup() as group:
        group.create_task(cache.run(), name="cache")
        group.create_task(recorder.run(), name="recorder")
        for name, controller in zip(names, running, strict=True):
            group.create_task(controller.run(), name=name)


def node_specs(count: int, pods: int) -> list[NodeSpec]:
    """The nodes that the kubelet plays, with room for that many pods each."""
    return [NodeSpec(f"node-{i}", capacity={**CAPACITY, "pods": str(pods)}) for i in range(count)]


async def run(kubeconfig: str, names: Sequence[str], nodes: Sequence[NodeSpec], quiet: bool) -> None:
    """Run everything that is named until a SIGTERM or Ctrl-C; a `quiet` kubelet records no events."""
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    controllers = [name for name in names if name != "kubelet"]
    async with contextlib.AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        if controllers:
            client = await connect(kubeconfig, user_agent=CONTROLLERS, field_manager="kube-controller-manager")
            stack.push_async_callback(client.close)
            group.create_task(run_controllers(client, controllers), name="controllers")
        if "kubelet" in names:
            client = await connect(kubeconfig, user_agent=KUBELET, field_manager=FIELD_MANAGER)
            stack.push_async_callback(client.close)
            group.create_task(Kubelet(client, nodes, events=not quiet).run(), name="kubelet")


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(prog="controllers.py", description=__doc__)
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--pods-per-node", type=int, default=int(CAPACITY["pods"]))
    parser.add_argument("--quiet", action="store_true", help="the kubelet records no events")
    parser.add_argument("names", nargs="+", choices=NAMES)
    arguments = parser.parse_args()
    try:
        nodes = node_specs(arguments.nodes, arguments.pods_per_node)
        asyncio.run(run(arguments.kubeconfig, arguments.names, nodes, arguments.quiet))
    except* asyncio.CancelledError:
        pass
    except* LwskitError as group:
        sys.exit("\n".join(f"Error: {e}" for e in group.exceptions))


if __name__ == "__main__":
    main()
