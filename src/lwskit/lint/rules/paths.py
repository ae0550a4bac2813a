"""Where in a set its parts stand. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lwskit.groups import spec
from lwskit.runtime.objects import Obj

TEMPLATE: Final = "spec.leaderWorkerTemplate"
ROLLING: Final = "spec.rolloutStrategy.rollingUpdateConfiguration"
SUBGROUPS: Final = f"{TEMPLATE}.subGroupPolicy"
LEADER: Final = "leaderTemplate"
WORKER: Final = "workerTemplate"


@dataclass(frozen=True, slots=True)
class Template:
    """A pod template: its path, its data, and whose pods are made from it."""

    path: str
    data: Mapping[str, Any]
    of_leaders: bool
    of_workers: bool

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Its metadata, empty if it has none."""
        return self.data.get("metadata") or {}

    @property
    def spec(self) -> Mapping[str, Any]:
        """Its pod spec, empty if it has none."""
        return self.data.get("spec") or {}


def templates(lws: Obj) -> Iterator[Template]:
    """The templates that pods are made from; the workers' is also that of leaders without one of their own."""
    own = spec.template_of(lws).get(LEADER)
    if own:
        yield Template(f"{TEMPLATE}.{LEADER}", own, of_leaders=True, of_workers=False)
    worker = spec.template_of(lws).get(WORKER) or {}
    yield Template(f"{TEMPLATE}.{WORKER}", worker, of_leaders=not own, of_workers=spec.size(lws) > 1)


def containers(template: Template) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Path and data of each container that admission changes: init containers and containers."""
    for field in ("containers", "initContainers"):
        for index, container in enumerate(template.spec.get(field) or ()):
            yield f"{template.path}.spec.{field}[{index}]", container
