"""What processes on this machine use, and what the manager asks of an API server that keeps an audit log."""

from __future__ import annotations

import collections
import json
import os
from collections.abc import Mapping
from pathlib import Path

POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
"""
AGENT = "lwskit/"
"""How the manager's user agent begins, and nobody else's."""
_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """The processor time that a process has taken, its threads' included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def memory_mib(pid: int, what: str = "VmRSS") -> float:
    """The resident memory of a process: now, or with VmHWM the most there ever was."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{what}:")) / 1024


def plane_pids(folder: Path) -> dict[str, int]:
    """The processes of a control plane by name, the played kubelet's included."""
    return {path.stem: int(path.read_text()) for path in folder.glob("*.pid")}


class Usage:
    """What named processes have used since the last look."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._pids = pids
        self._seen = self._now()

    def look(self) -> dict[str, float]:
        """Processor seconds of each since the last look, or since this was made."""
        before, self._seen = self._seen, self._now()
        return {name: seconds - before[name] for name, seconds in self._seen.items()}

    def _now(self) -> dict[str, float]:
        return {name: cpu_seconds(pid) for name, pid in self._pids.items()}


class Audit:
    """The manager's requests in an API server's audit log."""

    def __init__(self, folder: Path) -> None:
        self.policy, self.log = folder / "policy.yaml", folder / "audit.log"
        self.policy.write_text(POLICY)
        self._read = 0

    @property
    def arguments(self) -> str:
        """What makes an API server keep the log, whole and in one file."""
        return f"--audit-policy-file={self.policy} --audit-log-path={self.log} --audit-log-maxsize=100000"

    def look(self) -> collections.Counter[str]:
        """The manager's requests by verb and collection since the last look."""
        counts: collections.Counter[str] = collections.Counter()
        with self.log.open("rb") as log:
            log.seek(self._read)
            for line in log:
                if not line.endswith(b"\n"):
                    break
                self._read += len(line)
                entry = json.loads(line)
                if entry.get("userAgent", "").startswith(AGENT) and "objectRef" in entry:
                    counts[_what(entry)] += 1
        return counts


def _what(entry: dict[str, object]) -> str:
    ref = entry["objectRef"]
    assert isinstance(ref, dict)
    return f"{entry['verb']} " + "/".join(filter(None, (ref.get("resource"), ref.get("subresource"))))
