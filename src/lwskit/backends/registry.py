"""Finding backends: the built-in ones, and those that other packages register as entry points."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import entry_points

from lwskit.backends.statefulset import StatefulSetLeaders, StatefulSetWorkers
from lwskit.groups.ports import LeaderBackend, WorkerBackend
from lwskit.runtime.errors import ConfigurationError

ENTRY_POINTS = "lwskit.backends"
DEFAULT = "statefulset"


@dataclass(frozen=True, slots=True)
class Backends:
    """How the sets that one reconciler serves exist in the cluster."""

    leaders: LeaderBackend
    workers: WorkerBackend


def _built_in() -> dict[str, Backends]:
    return {DEFAULT: Backends(StatefulSetLeaders(), StatefulSetWorkers())}


def find(name: str = DEFAULT) -> Backends:
    """The backends of that name: built in, or an entry point of the group `lwskit.backends` that returns Backends.

    Raises ConfigurationError naming those that exist.
    """
    built_in = _built_in()
    if name in built_in:
        return built_in[name]
    found = entry_points(group=ENTRY_POINTS)
    for point in found:
        if point.name == name:
            return point.load()()
    known = ", ".join(sorted([*built_in, *(p.name for p in found)]))
    raise ConfigurationError(f"there is no workload backend {name!r}; there are: {known}")
