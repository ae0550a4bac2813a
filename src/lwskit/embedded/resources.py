"""Which resources the server serves: the built-in ones from a recorded table, custom ones while their CRD is there."""

from __future__ import annotations

import importlib.resources
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from lwskit.runtime.kinds import Kind

if TYPE_CHECKING:
    from lwskit.embedded.crds import CustomVersion

GENERATION = frozenset(
    {
        "apps/deployments",
        "apps/daemonsets",
        "apps/replicasets",
        "apps/statefulsets",
        "/replicationcontrollers",
        "batch/jobs",
        "batch/cronjobs",
        "networking.k8s.io/ingresses",
        "networking.k8s.io/ingressclasses",
        "networking.k8s.io/networkpolicies",
        "policy/poddisruptionbudgets",
        "scheduling.k8s.io/priorityclasses",
        "discovery.k8s.io/endpointslices",
        "admissionregistration.k8s.io/mutatingwebhookconfigurations",
        "admissionregistration.k8s.io/validatingwebhookconfigurations",
        "apiextensions.k8s.io/customresourcedefinitions",
        "/pods",
    }
)
"""Built-in resources whose `metadata.generation` the server keeps."""

CONDITIONAL_UPDATE = frozenset(
    {
        "coordination.k8s.io/leases",
        "apiextensions.k8s.io/customresourcedefinitions",
        "admissionregistration.k8s.io/mutatingwebhookconfigurations",
        "admissionregistration.k8s.io/validatingwebhookconfigurations",
        "discovery.k8s.io/endpointslices",
        "policy/poddisruptionbudgets",
        "storage.k8s.io/csistoragecapacities",
        "storage.k8s.io/volumeattachments",
        "storage.k8s.io/csidrivers",
        "storage.k8s.io/csinodes",
    }
)
"""Built-in resources whose full update needs a resourceVersion."""

_PREFIXES = {
    "/services": "services/specs",
    "/endpoints": "services/endpoints",
    "/nodes": "minions",
    "/replicationcontrollers": "controllers",
}
_SHARED = {("events.k8s.io", "events"): "/events"}


@dataclass(frozen=True, slots=True)
class Subresource:
    """A subresource: what its objects are, and which verbs it takes."""

    name: str
    kind: str
    group: str = ""
    version: str = ""
    verbs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource of one group and version.

    `storage` names the table that holds its objects: versions of one resource share it, and so do both Events.
    `custom` is the schema side of a custom resource, None for a built-in one.
    """

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    verbs: tuple[str, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: Mapping[str, Subresource] = field(default_factory=dict)
    list_kind: str = ""
    generation: bool = False
    unconditional_update: bool = True
    storage: str = ""
    custom: CustomVersion | None = None

    @property
    def api_version(self) -> str:
        """What its objects carry as `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """`plural.group`, or only the plural in the core group: how the server's messages name a resource."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_kind(self) -> str:
        """`Kind.group`, or only the kind in the core group."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def has_status(self) -> bool:
        """Whether the status is written through its own subresource only."""
        return "status" in self.subresources

    @property
    def stored(self) -> bool:
        """Whether its objects are kept; reviews and bindings are only answered."""
        return "get" in self.verbs

    @property
    def prefix(self) -> str:
        """Where a real server keeps its objects: the beginning of their keys in etcd, which some refusals name."""
        if self.custom is not None or self.group == "apiextensions.k8s.io":
            return f"/registry/{self.group}/{self.plural}"
        return f"/registry/{_PREFIXES.get(self.storage, self.plural)}"

    def as_kind(self) -> Kind:
        """The kind as clients of `lwskit.runtime` name it."""
        return Kind(self.group, self.version, self.kind, self.plural, self.namespaced)


def _builtin(entry: Mapping[str, Any]) -> Resource:
    group, plural = entry["group"], entry["plural"]
    subresources = {
        name: Subresource(name, s["kind"], s.get("group", ""), s.get("version", ""), tuple(s["verbs"]))
        for name, s in entry.get("subresources", {}).items()
    }
    storage = _SHARED.get((group, plural), f"{group}/{plural}")
    return Resource(
        group=group,
        version=entry["version"],
        kind=entry["kind"],
        plural=plural,
        singular=entry["singular"],
        namespaced=entry["namespaced"],
        verbs=tuple(entry["verbs"]),
        short_names=tuple(entry.get("short", ())),
        categories=tuple(entry.get("categories", ())),
        subresources=subresources,
        list_kind=f"{entry['kind']}List",
        generation=f"{group}/{plural}" in GENERATION,
        unconditional_update=f"{group}/{plural}" not in CONDITIONAL_UPDATE,
        storage=storage,
    )


class Registry:
    """All resources by group, version and plural, in the order in which discovery lists them."""

    def __init__(self) -> None:
        data = orjson.loads(
            importlib.resources.files("lwskit.embedded").joinpath("builtin-resources.json").read_bytes()
        )
        self._by_path: dict[tuple[str, str, str], Resource] = {}
        for entry in data["resources"]:
            self._add(_builtin(entry))
        self.revision = 0
        """Grows with every change, so that discovery and OpenAPI documents can be cached."""

    def _add(self, resource: Resource) -> None:
        self._by_path[resource.group, resource.version, resource.plural] = resource

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """The resource served under that path, or None."""
        return self._by_path.get((group, version, plural))

    def by_kind(self, group: str, version: str, kind: str) -> Resource | None:
        """The resource whose objects are of that kind, or None."""
        for resource in self._by_path.values():
            if (resource.group, resource.version, resource.kind) == (group, version, kind):
                return resource
        return None

    def by_storage(self, storage: str) -> Resource:
        """The first resource over that table. Raises KeyError."""
        for resource in self._by_path.values():
            if resource.storage == storage:
                return resource
        raise KeyError(storage)

    def has_group(self, group: str, version: str | None = None) -> bool:
        """Whether anything is served in that group (and version)."""
        return any(g == group and version in (None, v) for g, v, _ in self._by_path)

    def has_builtin(self, group: str) -> bool:
        """Whether anything in that group is built in."""
        return any(r.group == group and r.custom is None for r in self._by_path.values())

    def versions_of(self, group: str, plural: str) -> list[Resource]:
        """The versions under which one resource is served."""
        return [r for (g, _, p), r in self._by_path.items() if g == group and p == plural]

    def replace_custom(self, group: str, plural: str, resources: Iterable[Resource]) -> None:
        """Serve these versions of one custom resource from now on; none takes it away."""
        for key in [k for k in self._by_path if k[0] == group and k[2] == plural]:
            del self._by_path[key]
        for resource in resources:
            self._add(resource)
        self.revision += 1

    def __iter__(self) -> Iterator[Resource]:
        return iter(self._by_path.values())
