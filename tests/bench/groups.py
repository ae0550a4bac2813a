"""What the manager costs on a real control plane: start-up to its first write, memory, requests per group.

python -m tests.bench.groups [--groups 100] [--size 2]
"""

from __future__ import annotations

import argparse
import collections
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.controlplane import plane
from tools.served import SETS, Cluster, LaneError, Program, await_collector, await_webhooks

POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
"""
STATEFUL_SETS = "/apis/apps/v1/namespaces/default/statefulsets"
OTHERS = ("kube-", "Python-urllib", "kubelet", "lwskit-kubelet", "curl")
"""How the user agents begin that are not the manager's."""


def sample(name: str, groups: int, size: int) -> dict[str, Any]:
    """A set of that many groups."""
    template = {"spec": {"containers": [{"name": "main", "image": "none"}]}}
    spec = {"replicas": groups, "leaderWorkerTemplate": {"size": size, "workerTemplate": template}}
    body = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"name": name}}
    return {**body, "spec": spec}


def resident_mib(pid: int) -> float:
    """The resident memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def manager_requests(audit: Path, since: int) -> collections.Counter[str]:
    """The manager's requests by verb and resource, from byte `since` of the audit log on."""
    counts: collections.Counter[str] = collections.Counter()
    with audit.open() as log:
        log.seek(since)
        for line in log:
            entry = json.loads(line)
            if entry.get("userAgent", "").startswith(OTHERS) or "objectRef" not in entry:
                continue
            ref = entry["objectRef"]
            resource = "/".join(filter(None, (ref.get("resource"), ref.get("subresource"))))
            counts[f"{entry['verb']} {resource}"] += 1
    return counts


def measure(control: plane.Plane, audit: Path, groups: int, size: int) -> None:
    """Run the manager twice, once for the CRDs and once to be measured, and print what it took."""
    cluster = Cluster.read(control.kubeconfig, control.folder)
    arguments = ["run", "--kubeconfig", str(control.kubeconfig)]
    with Program(arguments, control.folder / "prepare.log") as program:
        await_webhooks(cluster, program)
        await_collector(cluster, program)

    cluster.call("POST", SETS, sample("first", 0, 1))
    begin = time.monotonic()
    with Program(arguments, control.folder / "measured.log") as program:
        program.wait_until(lambda: cluster.call("GET", f"{STATEFUL_SETS}/first")[0] == 200, 60, "the first write")
        print(f"start to the first write: {time.monotonic() - begin:.2f} s")
        await_webhooks(cluster, program)
        print(f"start until the webhooks serve: {time.monotonic() - begin:.2f} s")
        print(f"resident memory, idle: {resident_mib(program.process.pid):.0f} MiB")

        since = audit.stat().st_size
        begin = time.monotonic()
        status, answer = cluster.call("POST", SETS, sample("many", groups, size))
        if status != 201:
            raise program.error(f"the set was refused: {answer.get('message')}")

        def ready() -> bool:
            found = cluster.call("GET", f"{SETS}/many")[1]
            return found.get("status", {}).get("readyReplicas") == groups

        program.wait_until(ready, 300, f"{groups} groups becoming ready")
        print(f"{groups} groups of {size}: ready after {time.monotonic() - begin:.1f} s")
        print(f"resident memory, {groups} groups: {resident_mib(program.process.pid):.0f} MiB")
        counts = manager_requests(audit, since)
        for what, count in counts.most_common():
            print(f"  {count:6}  {what}")
        print(f"requests of the manager per group: {counts.total() / groups:.2f}")


def main(argv: Sequence[str]) -> int:
    """Measure on a control plane made for it; see the module's docstring."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.groups", description=__doc__)
    parser.add_argument("--groups", type=int, default=100)
    parser.add_argument("--size", type=int, default=2)
    options = parser.parse_args(argv)
    try:
        programs = plane.find()
        with tempfile.TemporaryDirectory(prefix="lwskit-bench-") as folder:
            policy, audit = Path(folder, "policy.yaml"), Path(folder, "audit.log")
            policy.write_text(POLICY)
            extra = {"APISERVER": f"--audit-policy-file={policy} --audit-log-path={audit}"}
            with plane.running(programs, nodes=4, arguments=extra) as control:
                measure(control, audit, options.groups, options.size)
    except plane.Unavailable as e:
        print(f"skipped, the benchmark on a real control plane: {e}")
    except LaneError as e:
        print(f"Error: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
