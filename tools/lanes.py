"""The lanes that need a cluster: the scenarios on a real control plane, and the recorded cases on either cluster.

python -m tools.lanes which                          what a real control plane would be here
python -m tools.lanes up DIR [--port N] [--nodes N]  start one, and print its kubeconfig
python -m tools.lanes down DIR                       stop it
python -m tools.lanes real [PYTEST ARGUMENTS]        tests/scenarios and tests/real, or the files named, against a real
                                                     control plane, and what needs one without a controller there
python -m tools.lanes conformance [--cluster embedded|real|both] [CASE...]
python -m tools.lanes differential [--seed N] [--steps M] [--sequences K] [--seconds S]
                                                     random requests to the embedded API server and to a real one
python -m tools.lanes statefulsets [--seed N] [--steps M] [--sets K]
                                                     random StatefulSets on the embedded cluster and on a real one
python -m tools.lanes deployments [--seed N] [--steps M] [--sequences K]
                                                     the same for Deployments and their ReplicaSets
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Lock

from tools.controlplane import plane
from tools.served import Cluster, LaneError, Program, await_collector, await_webhooks

ROOT = Path(__file__).resolve().parents[1]
CASES = ROOT / "tests" / "conformance-cases.txt"
OUTPUT = ROOT / ".cache" / "conformance"
ALLOW = ROOT / "tests" / "conformance-allow.txt"
ALLOW_LAST = ROOT / "tests" / "conformance-allow-last.txt"
"""The same for cases that are compared at their last snapshot only."""
LAST = "last"
"""After a case's name: what it passes through is not compared, only where it ends."""
VERDICT = re.compile(r"([a-z0-9-]+): (same$|(\d+) lines differ$|\S)")
SHOWN = 80
AT_ONCE = 6
"""Recorded cases that are played at the same time: each waits for most of its time until nothing changes any more."""
SERVICE_ADDRESSES = "--service-cluster-ip-range 10.96.0.0/16"
"""The addresses that the embedded API server gives to services, too."""
DIFFERENTIAL = ["--faults", "--rules", "--seed", "1", "--steps", "100", "--sequences", "40", "--seconds", "120"]
"""What is compared unless something else is asked for: each known fault and rule and 4000 steps, if there is time."""
PLAYED = {
    "statefulsets": ["--seed", "1", "--steps", "20", "--sets", "60", "--at-once", "30", "--seconds", "90"],
    "deployments": ["--seed", "1", "--steps", "14", "--sequences", "36", "--at-once", "36", "--seconds", "60"],
}
"""What is compared unless something else is asked for: so many sequences, fewer on a very slow machine."""
AS_PLAYED = (
    "--controllers=-pod-garbage-collector-controller --concurrent-statefulset-syncs=30 "
    "--concurrent-deployment-syncs=30 --concurrent-replicaset-syncs=30"
)
"""For the controller manager that random workloads are played on: nobody else ends pods that the player holds."""
LEFT_OUT = ("statefulset",)
"""Controllers that tests play themselves, each on a control plane of its own."""
FOLDERS = ("tests/scenarios", "tests/real")
ALONE = ("tests/scenarios/test_fifty_sets.py",)
"""What keeps a machine so busy that others would miss their times beside it."""
SIDE_BY_SIDE = 4
"""Control planes that the lane `real` has at the same time."""
PIECES = 4 * SIDE_BY_SIDE
"""Pieces that its files are dealt out in, so that no control plane is idle long before the last one is."""
LIMIT = 600
"""Seconds that one test may take on a control plane which shares the machine with the others."""
NOTHING_TO_RUN = 5
"""What pytest ends with when no test is selected."""
_STARTING = Lock()
EVENT = re.compile(r"  [+-](snapshots\.[^.]+\.)?event\[")
IDLE = "allowed 0: "


def listed_cases() -> dict[str, bool]:
    """The recorded cases that are compared when none is named, and for each whether at its last snapshot only."""
    lines = [line.split() for line in CASES.read_text().splitlines() if line and not line.startswith("#")]
    return {name: LAST in marks for name, *marks in lines}


def compare(title: str, cluster: Cluster, cases: Sequence[str], output: Path) -> bool:
    """Play recorded cases against a cluster, print what the comparison says, and tell whether all are the same.

    Those of which only the end counts are played after the others. What is allowed of them, and was not needed by any
    while all were played, is a fault.
    """
    listed = listed_cases()
    ends = [name for name in cases if listed.get(name)]
    whole = [name for name in cases if name not in ends]
    same = _compare(title, cluster, whole, output, last=False) if whole else True
    if ends:
        same &= _compare(f"{title}, their last snapshots", cluster, ends, output, last=True)
    return same


def _compare(title: str, cluster: Cluster, cases: Sequence[str], output: Path, *, last: bool) -> bool:
    """Cases that are compared in one way; whether all are the same.

    A case that differs in nothing but events is played once more: the server folds events that come close together, and
    a step that was passed through quickly may have none.
    """
    failed, idle = _play(title, cluster, cases, output, last=last)
    again = [name for name, only_events in failed.items() if only_events]
    if again and len(again) == len(failed):
        failed, _ = _play(
            f"{title}, again, since only events differ: {' '.join(again)}", cluster, again, output, last=last
        )
    if last and idle and {*cases} == {name for name, only_end in listed_cases().items() if only_end}:
        print("\n".join(f"no case needs the allowed line {line}" for line in idle), flush=True)
        return False
    return not failed


def _play(
    title: str, cluster: Cluster, cases: Sequence[str], output: Path, *, last: bool
) -> tuple[dict[str, bool], list[str]]:
    """One run: the cases that differ, for each whether events are all that does; and the patterns without use."""
    folder = ROOT / "tests" / "conformance"
    command = [sys.executable, str(folder / "run.py"), "--server", cluster.server, "--token", cluster.token]
    command += ["--cafile", str(cluster.authority)] if cluster.authority else []
    command += ["--allow", str(ALLOW_LAST if last else ALLOW), "-j", str(AT_ONCE)]
    command += ["--last"] if last else []
    command += ["--got", str(output), "compare", *(str(folder / "cases" / f"{name}.yaml") for name in cases)]
    command += ["-g", str(folder / "golden")]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, stdin=subprocess.DEVNULL)
    # At once, since the other cluster's comparison prints too.
    print(f"{title}\n{ran.stdout}", end="", flush=True)
    lines = ran.stdout.splitlines()
    return differing(lines, cases), idle_patterns(lines)


def idle_patterns(lines: Iterable[str]) -> list[str]:
    """The allowed lines that a comparison says it has had no use for."""
    return [line.removeprefix(IDLE) for line in lines if line.startswith(IDLE)]


def differing(lines: Iterable[str], cases: Sequence[str]) -> dict[str, bool]:
    """Read what the comparison printed: the cases that are not the same, and for each whether only events differ.

    A case it says nothing of differs. Where more than SHOWN lines differ not all are printed: some count as others.
    """
    failed: dict[str, bool] = {}
    same: set[str] = set()
    current = ""
    for line in lines:
        verdict = VERDICT.match(line)
        if verdict and verdict[1] in cases:
            current = verdict[1]
            if verdict[2] == "same":
                same.add(current)
            else:
                failed[current] = verdict[3] is not None and int(verdict[3]) <= SHOWN
        elif current in failed and line.startswith("  ") and not EVENT.match(line):
            failed[current] = False
    return {**failed, **{name: False for name in cases if name not in same and name not in failed}}


def conformance_embedded(cases: Sequence[str]) -> bool:
    """Compare on `lwskit up`, where the comparison itself plays the scheduler and the kubelet."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lwskit-conformance-")))
        config = folder / "kubeconfig"
        options = ["--without", "scheduler", "--without", "kubelet"]
        # Any port: one that is looked for may be taken by the control plane that starts at the same time.
        arguments = ["up", *options, "--port", "0", "--kubeconfig-out", str(config)]
        program = stack.enter_context(Program(arguments, OUTPUT / "embedded.log"))
        program.await_file(config)
        cluster = Cluster.read(config, folder)
        await_webhooks(cluster, program)
        return compare("recorded cases on the embedded cluster", cluster, cases, OUTPUT / "embedded")


def conformance_real(cases: Sequence[str]) -> bool:
    """Compare on a real control plane without scheduler and kubelet, with the manager that `lwskit run` starts."""
    try:
        programs = plane.find()
    except plane.Unavailable as e:
        print(f"skipped, the recorded cases on a real control plane: {e}", flush=True)
        return True
    with ExitStack() as stack:
        control = stack.enter_context(plane.running(programs))
        program = stack.enter_context(Program(["run", "--kubeconfig", str(control.kubeconfig)], OUTPUT / "real.log"))
        cluster = Cluster.read(control.kubeconfig, control.folder)
        await_webhooks(cluster, program)
        await_collector(cluster, program)
        return compare(f"recorded cases on {programs.describe()}", cluster, cases, OUTPUT / "real")


def conformance(arguments: argparse.Namespace) -> int:
    """The lane `conformance`: 0 if every case is the same on all clusters asked for, which are played side by side."""
    cases = arguments.cases or [*listed_cases()]
    lanes = {"embedded": conformance_embedded, "real": conformance_real}
    asked = [lane for cluster, lane in lanes.items() if arguments.cluster in (cluster, "both")]
    with ThreadPoolExecutor(len(asked)) as pool:
        return 0 if all([*pool.map(lambda lane: lane(cases), asked)]) else 1


def _prepare(control: plane.Plane) -> None:
    """Bring the CRDs and wait until the garbage collector knows them, so that the first scenario finds it at work."""
    cluster = Cluster.read(control.kubeconfig, control.folder)
    with Program(["run", "--kubeconfig", str(control.kubeconfig)], control.folder / "prepare.log") as program:
        await_webhooks(cluster, program)
        await_collector(cluster, program)


def real(pytest_arguments: Sequence[str]) -> int:
    """The lane `real`: the scenario files against a real control plane, and tests of our own against further ones.

    Without files named the work is dealt out in pieces to control planes that run side by side, for it waits for most
    of its time; what does not comes last, alone.
    What plays a controller itself has a control plane without that one (the variable LWSKIT_WITHOUT of the plugin).
    Returns pytest's exit code, of several the first that is not 0.
    """
    try:
        programs = plane.find()
    except plane.Unavailable as e:
        print(f"skipped, the scenarios on a real control plane: {e}")
        return 0
    named = any(Path(argument.partition("::")[0]).exists() for argument in pytest_arguments)
    files = [] if named else lane_files(pytest_arguments)
    pieces = [[]] if named else shares([name for name in files if name not in ALONE], PIECES)
    alone = [[name] for name in files if name in ALONE]
    scenarios = [] if named else ["tests/scenarios"]
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        running = [pool.submit(_scenarios, programs, name, [scenarios], pytest_arguments) for name in LEFT_OUT]
        planes = min(SIDE_BY_SIDE, len(pieces))
        running += [pool.submit(_scenarios, programs, "", pieces, pytest_arguments) for _ in range(planes)]
        codes = [code for part in running for code in part.result()]
    codes += _scenarios(programs, "", alone, pytest_arguments)
    ran = [code for code in codes if code != NOTHING_TO_RUN]
    return next((code for code in ran if code), 0) if ran else NOTHING_TO_RUN


def lane_files(pytest_arguments: Sequence[str]) -> list[str]:
    """The files of the lane, without those that `--ignore=FILE` names."""
    ignored = {argument.removeprefix("--ignore=") for argument in pytest_arguments}
    found = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("test_*.py"))
    return [name for path in found if (name := str(path.relative_to(ROOT))) not in ignored]


def shares(files: Sequence[str], count: int) -> list[list[str]]:
    """Files dealt out in turns, so that neighbours, which are much alike, come to different shares."""
    return [[*files[first::count]] for first in range(count)]


def _scenarios(
    programs: plane.Programs, left_out: str, pieces: list[list[str]], pytest_arguments: Sequence[str]
) -> list[int]:
    """Tests on a control plane that lacks one controller, or on a whole one: pytest's exit code for each piece.

    Takes piece after piece from the list, out of which others may take some at the same time.
    """
    if not pieces:
        return []
    env = {**os.environ, "LWSKIT_CLUSTER": "real", "LWSKIT_WITHOUT": left_out}
    command = [sys.executable, "-m", "pytest", "-o", f"timeout={LIMIT}", *pytest_arguments]
    if left_out:
        # Few tests are for it, and none of those that somebody has selected may be.
        tests = [name for piece in pieces for name in piece]
        look = subprocess.run([*command, *tests, "--collect-only", "-q"], env=env, cwd=ROOT, capture_output=True)
        if look.returncode == NOTHING_TO_RUN:
            return [NOTHING_TO_RUN]
    codes: list[int] = []
    with ExitStack() as stack:
        # One after the other, so that no two are given the same ports.
        with _STARTING:
            control = stack.enter_context(plane.running(programs, without=[left_out] if left_out else [], cores=1))
        _prepare(control)
        env["LWSKIT_KUBECONFIG"] = str(control.kubeconfig)
        title = f"scenarios on {programs.describe()}" + (f" without the controller {left_out}" if left_out else "")
        while (piece := _next(pieces)) is not None:
            ran = subprocess.run(
                [*command, *piece], env=env, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True
            )
            # At once, since others print too.
            print(f"{title}\n{ran.stdout}{ran.stderr}", flush=True)
            codes.append(ran.returncode)
    return codes


def _next(pieces: list[list[str]]) -> list[str] | None:
    """The next piece, taken out of the list; None if others have taken the last."""
    try:
        return pieces.pop(0)
    except IndexError:
        return None


def differential(arguments: Sequence[str]) -> int:
    """The lane `differential`: 0 if both API servers answer everything alike."""
    try:
        programs = plane.find()
        print(f"the embedded API server against {programs.describe()}", flush=True)
        with plane.running(programs, controllers=False, arguments={"APISERVER": SERVICE_ADDRESSES}) as control:
            cluster = Cluster.read(control.kubeconfig, control.folder)
            given = list(arguments) or DIFFERENTIAL
            command = [sys.executable, "-m", "tests.differential", "--server", cluster.server, *given]
            command += ["--token", cluster.token]
            return subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL).returncode
    except plane.Unavailable as e:
        print(f"skipped, the embedded API server against a real one: {e}")
        return 0


def side_by_side(what: str, arguments: Sequence[str]) -> int:
    """The lanes `statefulsets` and `deployments`: 0 if both controllers do the same, and what lwskit foretells."""
    try:
        programs = plane.find()
        if not programs.has("kube-controller-manager"):
            raise plane.Unavailable(f"{programs.folder} has no controllers")
        print(f"random {what} on the embedded controllers and on {programs.describe()}", flush=True)
        with plane.running(programs, arguments={"KCM": AS_PLAYED}) as control:
            command = [sys.executable, "-m", f"tests.differential.{what}", *(list(arguments) or PLAYED[what])]
            command += ["--kubeconfig", str(control.kubeconfig)]
            return subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL).returncode
    except plane.Unavailable as e:
        print(f"skipped, random {what} on a real control plane: {e}")
        return 0


def main(argv: Sequence[str]) -> int:
    """Run one lane; see the module's docstring."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.lanes", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="lane", required=True)
    commands.add_parser("which")
    up = commands.add_parser("up")
    up.add_argument("folder", type=Path)
    up.add_argument("--port", type=int)
    up.add_argument("--nodes", type=int, default=0)
    commands.add_parser("down").add_argument("folder", type=Path)
    commands.add_parser("real", add_help=False)
    commands.add_parser("differential", add_help=False)
    for what in PLAYED:
        commands.add_parser(what, add_help=False)
    recorded = commands.add_parser("conformance")
    recorded.add_argument("--cluster", choices=("embedded", "real", "both"), default="both")
    recorded.add_argument("cases", nargs="*")
    arguments, rest = parser.parse_known_args(argv)
    if rest and arguments.lane not in ("real", "differential", *PLAYED):
        parser.error(f"unknown arguments: {' '.join(rest)}")
    try:
        if arguments.lane == "which":
            print(plane.find().describe())
        elif arguments.lane == "up":
            started = plane.start(plane.find(), arguments.folder.absolute(), port=arguments.port, nodes=arguments.nodes)
            print(started.kubeconfig)
        elif arguments.lane == "down":
            subprocess.run([str(plane.HERE / "down.sh"), str(arguments.folder)], check=True)
        elif arguments.lane == "real":
            return real(rest)
        elif arguments.lane == "differential":
            return differential(rest)
        elif arguments.lane in PLAYED:
            return side_by_side(arguments.lane, rest)
        else:
            return conformance(arguments)
    except (plane.Unavailable, LaneError) as e:
        print(f"Error: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
