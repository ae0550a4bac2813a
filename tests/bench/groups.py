"""The manager on a real control plane with four nodes, beside bare StatefulSets with as many pods.

python -m tests.bench.groups [--groups 100,500,2500] [--size 2] [--sets 50x4x4] [--nodes 4] [--qps 500] [--strict]
python -m tests.bench.groups --hash --groups 100 --sets ""
python -m tests.bench.groups --embedded --groups 500,2500 --sets "" --nodes 8

Each shape has a control plane of its own, and so has what it is compared with. The kubelet is played by a process of
its own that records no events. Numbers of sets are given as SETSxGROUPSxSIZE. With --hash it is sets in Hash mode,
beside as many in Ordinal mode. With --embedded the cluster is `lwskit up` in a process of its own, with nothing to
compare with and requests that nobody counts: it shows how the manager's processor time grows, on a machine that is too
small for a real control plane of that size.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from lwskit.api import names
from lwskit.runtime.cache.cache import Cache
from lwskit.runtime.cache.store import Store
from lwskit.runtime.client.client import Client
from lwskit.runtime.client.config import connect
from lwskit.runtime.clock import RealClock, real_random
from lwskit.runtime.kinds import POD
from tests.bench import loads
from tests.bench.loads import NAMESPACE, Bare, Load, Sets, Shape
from tests.bench.rounds import Report
from tests.bench.usage import Audit, Usage, memory_mib, plane_pids
from tools.controlplane import plane
from tools.served import Cluster, LaneError, Program, await_collector, await_webhooks

FEW, MANY = 500, 2_500
MOST_CPU = 5.5
"""How many times the manager's processor time for FEW groups MANY may take; they are five times as many."""
MOST_REQUESTS = 0.2
"""Further requests per group at its creation, beside its worker StatefulSet and the event about that, without the
renewals of the Lease, which come with time; from FEW groups on, since few share what a set costs by itself."""
OF_WORKERS, OF_THE_GATE = 2, 2
"""Requests that each group costs: its worker StatefulSet and the event about it; in Hash mode its gate, and the event
about that."""
OF_THE_CONDITION = 2
"""Further ones of groups with workers in Hash mode: their leader's condition is written twice."""
RENEWAL = "update leases"
MANAGER = "manager"
LONGEST = 3600.0
"""Seconds that one phase may take."""
QUIET = 3.0
"""Seconds after a phase in which what is still sent counts as its own: events, a last status."""


@dataclass
class Phase:
    """Seconds from the first request of the client, processor seconds of each process, requests of the manager."""

    seconds: float = 0.0
    created: float = 0.0
    cpu: dict[str, float] = field(default_factory=dict)
    requests: collections.Counter[str] = field(default_factory=collections.Counter)

    @property
    def plane_cpu(self) -> float:
        """Processor seconds of the control plane: API server, etcd, controllers and scheduler."""
        return sum(seconds for name, seconds in self.cpu.items() if name not in (MANAGER, "kubelet"))


@dataclass
class Outcome:
    """What one load took: to create and get ready, and to update; the manager's peak memory in MiB."""

    creation: Phase
    update: Phase
    memory: float = 0.0


@contextmanager
def control_plane(
    programs: plane.Programs, audit: Audit, options: argparse.Namespace, pods: int
) -> Iterator[plane.Plane]:
    """A control plane whose controllers and scheduler may send so many requests a second, with room for the pods."""
    nodes: int = options.nodes
    rate = f"--kube-api-qps {options.qps} --kube-api-burst {2 * options.qps}"
    arguments = {
        "APISERVER": audit.arguments,
        "KCM": rate,
        "SCHEDULER": rate,
        "KUBELET": f"--quiet --pods-per-node {2 * pods // nodes + 100}",
    }
    with plane.running(programs, nodes=nodes, arguments=arguments) as control:
        yield control


async def measure(
    kubeconfig: Path,
    pids: dict[str, int],
    requests: Callable[[], collections.Counter[str]],
    load: Load,
    shape: Shape,
    program: Program | None = None,
) -> Outcome:
    """Create a load, wait until it is ready, change it, and wait until it is updated. Raises LaneError.

    `pids` are the processes of the cluster, `requests` those of the manager since it was asked last.
    """
    if program is not None:
        pids[MANAGER] = program.process.pid

    async def wait(true: Callable[[], Awaitable[bool]], what: str) -> None:
        await until(true, what, program.check if program is not None else lambda: None)

    client = await connect(str(kubeconfig), user_agent="bench")
    try:
        async with watching(client, load) as store:
            usage = Usage(pids)
            requests()
            creation, update = Phase(), Phase()
            for phase, act, image in ((creation, loads.create, "img:v1"), (update, loads.change, "img:v2")):
                begin = time.monotonic()
                await act(client, load)
                if phase is creation:
                    await wait(lambda: counted(client, shape.pods), "all pods are created")
                    phase.created = time.monotonic() - begin
                await wait(lambda image=image: done(load, store, image), f"all pods are ready with {image}")
                phase.seconds = time.monotonic() - begin
                await asyncio.sleep(QUIET)
                phase.cpu, phase.requests = usage.look(), requests()
                used = ", ".join(f"{name} {seconds:.1f}" for name, seconds in phase.cpu.items())
                print(f"  … {phase.seconds:.1f} s for {image}; processor seconds: {used}", file=sys.stderr, flush=True)
            return Outcome(creation, update, memory_mib(pids[MANAGER], "VmHWM") if program is not None else 0.0)
    finally:
        await client.close()


@asynccontextmanager
async def watching(client: Client, load: Load) -> AsyncIterator[Store]:
    """The objects of a load as they change."""
    cache = Cache(client, RealClock(), real_random())
    store = cache.informer(load.kind, NAMESPACE).store
    running = asyncio.create_task(cache.run(), name="watch")
    try:
        await cache.wait_synced()
        yield store
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def counted(client: Client, wanted: int) -> bool:
    """Whether there are so many pods."""
    metadata = (await client.list(POD, NAMESPACE, limit=1))["metadata"]
    return metadata.get("remainingItemCount", 0) + 1 >= wanted


async def done(load: Load, store: Store, image: str) -> bool:
    """Whether all pods are ready and have that image."""
    return loads.all_done(load, store, image)


async def until(true: Callable[[], Awaitable[bool]], what: str, check: Callable[[], None]) -> None:
    """Wait until `true()`, asking `check` meanwhile. Raises LaneError after LONGEST seconds, and what it raises."""
    end = time.monotonic() + LONGEST
    while not await true():
        check()
        if time.monotonic() > end:
            raise LaneError(f"not within {LONGEST:g} seconds: {what}")
        await asyncio.sleep(0.2)


def bare(programs: plane.Programs, shape: Shape, options: argparse.Namespace) -> Outcome:
    """What StatefulSets without a manager take."""
    with tempfile.TemporaryDirectory(prefix="lwskit-bench-") as folder:
        audit = Audit(Path(folder))
        with control_plane(programs, audit, options, shape.pods) as control:
            pids = plane_pids(control.folder)
            return asyncio.run(measure(control.kubeconfig, pids, audit.look, Bare(shape), shape))


def managed(
    programs: plane.Programs, shape: Shape, options: argparse.Namespace, report: Report, identity: str
) -> Outcome:
    """What sets take with the manager that `lwskit run` starts."""
    with tempfile.TemporaryDirectory(prefix="lwskit-bench-") as folder:
        audit = Audit(Path(folder))
        with control_plane(programs, audit, options, shape.pods) as control:
            cluster = Cluster.read(control.kubeconfig, control.folder)
            arguments = ["run", "--kubeconfig", str(control.kubeconfig)]
            with Program(arguments, control.folder / "prepare.log") as program:
                await_webhooks(cluster, program)
                await_collector(cluster, program)
            begin = time.monotonic()
            with Program(arguments, control.folder / "measured.log") as program:
                await_webhooks(cluster, program)
                report.say(f"  start until the webhooks serve: {time.monotonic() - begin:.2f} s")
                report.say(f"  resident memory, idle: {memory_mib(program.process.pid):.0f} MiB")
                pids = plane_pids(control.folder)
                return asyncio.run(measure(control.kubeconfig, pids, audit.look, Sets(shape, identity), shape, program))


def embedded(shape: Shape, options: argparse.Namespace) -> Outcome:
    """What sets take with the manager that `lwskit run` starts, on the cluster of `lwskit up`."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lwskit-bench-")))
        config = folder / "kubeconfig"
        arguments = ["up", "--without", "manager", "--nodes", str(options.nodes), "--speed", "100"]
        up = stack.enter_context(Program([*arguments, "--kubeconfig-out", str(config)], folder / "up.log"))
        up.await_file(config)
        program = stack.enter_context(Program(["run", "--kubeconfig", str(config)], folder / "run.log"))
        await_webhooks(Cluster.read(config, folder), program)
        pids = {"cluster": up.process.pid}
        return asyncio.run(measure(config, pids, collections.Counter, Sets(shape, mode(options)), shape, program))


def compared(programs: plane.Programs, shape: Shape, options: argparse.Namespace, report: Report) -> Outcome:
    """What sets are compared with: those of Hash mode with those of Ordinal mode, and these with StatefulSets."""
    if options.hash:
        return managed(programs, shape, options, report, names.IDENTITY_ORDINAL)
    return bare(programs, shape, options)


def mode(options: argparse.Namespace) -> str:
    """The mode of the sets that are measured."""
    return names.IDENTITY_HASH if options.hash else names.IDENTITY_ORDINAL


def for_each(shape: Shape, identity: str) -> int:
    """How many requests each group costs at its creation."""
    found = OF_WORKERS if shape.size > 1 else 0
    if identity == names.IDENTITY_HASH:
        found += OF_THE_GATE + (OF_THE_CONDITION if shape.size > 1 else 0)
    return found


def tell(report: Report, shape: Shape, identity: str, ours: Outcome, theirs: Outcome | None) -> None:
    """Print what one shape took, on both sides where it was compared."""
    other_side = "sets in Ordinal mode" if identity == names.IDENTITY_HASH else "bare StatefulSets"
    readings: dict[str, Callable[[Outcome], float]] = {
        "created": lambda o: o.creation.created,
        "ready": lambda o: o.creation.seconds,
        "updated": lambda o: o.update.seconds,
        "the cluster's processor time, creation": lambda o: o.creation.plane_cpu,
        "the cluster's processor time, update": lambda o: o.update.plane_cpu,
    }
    for what, read in readings.items():
        mine, other = read(ours), read(theirs) if theirs is not None else 0.0
        beside = f"; {other_side} {other:.1f} s, ratio {mine / other:.2f}" if other else ""
        report.say(f"  {mine:9.1f} s      {what}{beside}")
    for what, phase in (("creation", ours.creation), ("update", ours.update)):
        cpu = phase.cpu[MANAGER]
        report.say(
            f"  {cpu:9.1f} s      manager's processor time, {what}: {cpu / shape.all_groups * 1e3:.1f} ms a group"
        )
        others = ", ".join(f"{name} {seconds:.1f}" for name, seconds in phase.cpu.items() if name != MANAGER)
        report.say(f"                   of others: {others}")
        if phase.requests:
            report.say(f"  {phase.requests.total():9}        requests of the manager, {what}")
        for request, count in phase.requests.most_common():
            report.say(f"  {count:9}          {request}: {count / shape.all_groups:.3f} a group")
    report.say(f"  {ours.memory:9.0f} MiB    manager's peak resident memory")
    requests = ours.creation.requests
    if not requests:
        return
    further = (requests.total() - requests[RENEWAL]) / shape.all_groups - for_each(shape, identity)
    most = MOST_REQUESTS if shape.all_groups >= FEW else None
    report.figure("further requests per group at its creation", further, "", most=most)
    report.figure("… and renewals of the Lease", requests[RENEWAL] / shape.all_groups, "")


def compare(report: Report, few: Outcome, many: Outcome) -> None:
    """The manager's processor time for many groups per that for few."""
    for what, one, other in (("creation", few.creation, many.creation), ("update", few.update, many.update)):
        ratio = other.cpu[MANAGER] / one.cpu[MANAGER]
        report.ratio(f"manager's processor time, {what}: {MANY} groups, per {FEW}", ratio, most=MOST_CPU)


def shapes(options: argparse.Namespace) -> list[Shape]:
    """What the arguments ask for."""
    found = [Shape(1, int(groups), options.size) for groups in options.groups.split(",") if groups]
    for text in filter(None, options.sets.split(",")):
        sets, groups, size = (int(part) for part in text.split("x"))
        found.append(Shape(sets, groups, size))
    return found


def main(argv: Sequence[str]) -> int:
    """Measure on control planes made for it; see the module's docstring."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.groups", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--groups", default="100,500")
    parser.add_argument("--size", type=int, default=2)
    parser.add_argument("--sets", default="50x4x4")
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--qps", type=int, default=500, help="requests a second of the controllers and the scheduler")
    parser.add_argument("--embedded", action="store_true", help="on the cluster of `lwskit up`")
    parser.add_argument("--hash", action="store_true", help="sets in Hash mode, beside as many in Ordinal mode")
    parser.add_argument("--alone", action="store_true", help="without what it is compared with")
    parser.add_argument("--strict", action="store_true", help="a missed target is a failure")
    options = parser.parse_args(argv)
    report, found = Report(), dict[Shape, Outcome]()
    try:
        programs = None if options.embedded else plane.find()
        for shape in shapes(options):
            report.say(f"{shape}, on {options.nodes} nodes")
            theirs = None
            if programs is not None and not options.alone:
                theirs = compared(programs, shape, options, report)
            if programs is None:
                found[shape] = embedded(shape, options)
            else:
                found[shape] = managed(programs, shape, options, report, mode(options))
            tell(report, shape, mode(options), found[shape], theirs)
    except plane.Unavailable as e:
        print(f"skipped, the benchmark on a real control plane: {e}")
        return 0
    except LaneError as e:
        print(f"Error: {e}", file=sys.stderr)
        return 1
    few, many = (found.get(Shape(1, groups, options.size)) for groups in (FEW, MANY))
    if few is not None and many is not None:
        compare(report, few, many)
    report.done()
    return 1 if options.strict and report.missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
