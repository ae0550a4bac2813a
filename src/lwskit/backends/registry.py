"""Finding backends: the built-in ones, and those that other packages register as entry points."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points

from lwskit.backends.deployment import DeploymentLeaders
from lwskit.backends.statefulset import StatefulSetLeaders, StatefulSetWorkers
from lwskit.groups import spec
from lwskit.groups.ports import LeaderBackend, WorkerBackend
from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.objects import Obj

ENTRY_POINTS = "lwskit.backends"
DEFAULT = "statefulset"


@dataclass(frozen=True, slots=True)
class Backends:
    """How the sets that one manager serves exist in the cluster."""

    leaders: LeaderBackend
    """The leaders of sets whose groups have ordinals."""
    workers: WorkerBackend
    """The workers of all groups."""
    hashed: LeaderBackend = field(default_factory=DeploymentLeaders)
    """The leaders of sets whose groups are told apart by keys."""

    @property
    def leading(self) -> tuple[LeaderBackend, LeaderBackend]:
        """Both backends of leaders."""
        return self.leaders, self.hashed

    def leaders_of(self, lws: Obj | None) -> LeaderBackend:
        """The backend of a set's leaders; that of Ordinal sets for one that is not known."""
        return self.hashed if lws is not None and spec.is_hashed(lws) else self.leaders


def _built_in() -> dict[str, Backends]:
    return {DEFAULT: Backends(StatefulSetLeaders(), StatefulSetWorkers())}


def find(name: str = DEFAULT) -> Backends:
    """The backends of that name: built in, or an entry point of the group `lwskit.backends` that returns Backends.

    Raises ConfigurationError for a name that does not exist, and for an entry point that cannot be used.
    """
    built_in = _built_in()
    if name in built_in:
        return built_in[name]
    found = entry_points(group=ENTRY_POINTS)
    for point in found:
        if point.name == name:
            return _made(point)
    known = ", ".join(sorted({*built_in, *(p.name for p in found)}))
    raise ConfigurationError(f"there is no workload backend {name!r}; there are: {known}")


def _made(point: EntryPoint) -> Backends:
    """What an entry point returns; whatever goes wrong in another package is told with its name."""
    try:
        made = point.load()()
    except Exception as error:
        raise ConfigurationError(f"the workload backend {point.name!r} ({point.value}) fails: {error!r}") from error
    if not isinstance(made, Backends):
        raise ConfigurationError(
            f"the workload backend {point.name!r} ({point.value}) returns {type(made).__name__}, not Backends"
        )
    return made
