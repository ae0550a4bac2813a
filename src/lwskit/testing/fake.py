"""A client without a cluster: an API server in this process with the objects that a test begins with.

Nothing but the server runs: no controllers, no scheduler, no kubelet, no garbage collector. Specification: 70 §13.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import orjson

from lwskit.embedded import commits
from lwskit.embedded.apiserver import ApiServer
from lwskit.embedded.resources import Resource
from lwskit.embedded.store import StaleError, Store, key
from lwskit.embedded.transport import InProcessTransport
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import Clock, RealClock, random_uuid
from lwskit.runtime.errors import ApiError, ConfigurationError
from lwskit.runtime.kinds import POD, Kind
from lwskit.runtime.objects import Obj, group_of
from lwskit.testing.arguments import check_kind
from lwskit.testing.interceptors import Interceptor
from lwskit.testing.virtual import VirtualClock, VirtualLoop

T = TypeVar("T")

SEED = 1
USER_AGENT = "lwskit-fake"
_CRD = "CustomResourceDefinition"


def client(
    objects: Iterable[Obj] = (),
    *,
    crds: Iterable[Obj] = (),
    kinds: Iterable[Kind] = (),
    namespaces: Iterable[str] = (),
    field_manager: str | None = None,
    clock: Clock | None = None,
    rng: random.Random | None = None,
    graceful_deletion: bool = False,
) -> FakeClient:
    """A client of an API server that holds `objects`, as they are: with their status, UIDs and times where given.

    `crds` are served besides the built-in kinds; `kinds` likewise, with any content and a status subresource.
    `namespaces` are made, as are those of the objects. `clock` is by default the virtual one on a virtual loop and
    else this machine's; `rng` repeats itself by default. With `graceful_deletion` a pod on a node lingers when it is
    deleted, as on a cluster; without it, it goes at once. Raises ConfigurationError for an object that no server could
    hold. Specification: 70 §13.
    """
    __tracebackhide__ = True
    objects, crds = _listed(objects, "objects"), _listed(crds, "crds")
    kinds, namespaces = _listed(kinds, "kinds"), _listed(namespaces, "namespaces")
    for kind in kinds:
        check_kind(kind, "fake.client's `kinds`")
    clock = clock or _default_clock()
    rng = rng or random.Random(SEED)
    made = FakeClient(ApiServer(Store(), clock, rng), clock, rng, field_manager, graceful_deletion)
    for crd in (*crds, *(crd_of(kind) for kind in kinds)):
        made.add(crd)
    for name in namespaces:
        made.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    made.add(*objects)
    return made


def crd_of(kind: Kind, *, status: bool = True, scale: bool = False) -> Obj:
    """A CustomResourceDefinition of a kind whose objects may hold anything.

    `status` and `scale` switch these subresources on. Give the project's own CRDs where there are any: they validate
    and fill in defaults.
    """
    subresources: Obj = {"status": {}} if status else {}
    if scale:
        subresources["scale"] = {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        }
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version: Obj = {"name": kind.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    if subresources:
        version["subresources"] = subresources
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": _CRD,
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "names": {"kind": kind.kind, "plural": kind.plural},
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [version],
        },
    }


class FakeClient(Client):
    """A client of an API server in this process. Made by `client`.

    `server` is that server; `interceptor` injects errors, latency and stale reads, and has the record of all requests.
    """

    def __init__(
        self,
        server: ApiServer,
        clock: Clock,
        rng: random.Random,
        field_manager: str | None = None,
        graceful_deletion: bool = False,
    ) -> None:
        self.server = server
        self.interceptor = Interceptor(InProcessTransport(server), user_agent=USER_AGENT)
        self._rng = rng
        self._graceful = graceful_deletion
        super().__init__(self.interceptor, field_manager=field_manager, clock=clock)

    def add(self, *objects: Obj) -> None:
        """Put further objects into the server, as they are. Watches are told of them.

        They need apiVersion, kind and name. Namespaces that they are in are made. Raises ConfigurationError for one
        that is there already, whose kind is not served, or that no server could hold.
        """
        __tracebackhide__ = True
        for obj in objects:
            self._put(obj)

    def objects(self, kind: Kind, namespace: str | None = None) -> list[Obj]:
        """What the server holds of a kind at this moment, by namespace and name: copies, and no request."""
        b = self.server.backend
        resource = b.registry.find(kind.group, kind.version, kind.plural)
        if resource is None:
            raise ConfigurationError(_not_served(kind.api_version, kind.kind))
        entries = b.store.list(resource.storage, f"{namespace}/" if namespace else "")
        return [orjson.loads(orjson.dumps(b.codec.from_stored(resource, entry.obj))) for entry in entries]

    async def delete(self, kind: Kind, name: str, namespace: str | None = None, **options: Any) -> Obj:
        """`Client.delete`; a pod goes at once unless its grace is asked for."""
        return await super().delete(kind, name, namespace, **self._with_grace(kind, options))

    async def delete_collection(self, kind: Kind, namespace: str | None = None, **options: Any) -> Obj:
        """`Client.delete_collection`; pods go at once unless their grace is asked for."""
        return await super().delete_collection(kind, namespace, **self._with_grace(kind, options))

    def _with_grace(self, kind: Kind, options: dict[str, Any]) -> dict[str, Any]:
        if self._graceful or kind != POD or options.get("grace_seconds") is not None:
            return options
        return {**options, "grace_seconds": 0}

    def _put(self, obj: Obj) -> None:
        __tracebackhide__ = True
        if not isinstance(obj, dict) or not isinstance(obj.get("metadata"), dict):
            shown = "an object without metadata" if isinstance(obj, dict) else repr(obj)[:60]
            raise ConfigurationError(f"the fake was given {shown}; it takes dicts with apiVersion, kind and metadata")
        b = self.server.backend
        api_version, name = str(obj.get("apiVersion") or ""), str(obj.get("kind") or "")
        resource = b.registry.by_kind(group_of(api_version), api_version.rpartition("/")[2], name)
        if resource is None:
            raise ConfigurationError(_not_served(api_version, name))
        if name == _CRD:
            self.server.put(obj)
            return
        try:
            held = b.codec.decode(resource, orjson.loads(orjson.dumps(obj)), "Strict")
        except ApiError as e:
            raise ConfigurationError(f"the fake cannot hold {_label(obj)}: {e}") from e
        self._complete(resource, held)
        place = key(held["metadata"].get("namespace"), held["metadata"]["name"])
        stored = b.codec.to_stored(resource, held)
        present = b.store.get(resource.storage, place)
        if present is not None and resource.storage == "/namespaces":
            b.store.update(resource.storage, place, stored, present)
            return
        try:
            entry = b.store.create(resource.storage, place, stored)
        except StaleError as e:
            raise ConfigurationError(f"the fake holds {_label(obj)} already") from e
        commits.after(b, resource, entry, removed=False)

    def _complete(self, resource: Resource, obj: Obj) -> None:
        """Set what every stored object has, and make its namespace."""
        b, meta = self.server.backend, obj["metadata"]
        if not meta.get("name"):
            raise ConfigurationError(f"a {resource.kind} that the fake begins with needs metadata.name")
        lingers = bool(meta.get("finalizers")) or bool(meta.get("deletionGracePeriodSeconds"))
        if meta.get("deletionTimestamp") and not lingers:
            raise ConfigurationError(
                f"the fake cannot hold {_label(obj)}: it has a deletionTimestamp and no finalizer, so it would be gone"
            )
        meta.pop("resourceVersion", None)
        meta.setdefault("uid", random_uuid(self._rng))
        meta.setdefault("creationTimestamp", b.now())
        if resource.generation:
            meta.setdefault("generation", 1)
        if resource.storage == "/namespaces":
            obj.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
            obj.setdefault("status", {}).setdefault("phase", "Active")
        if not resource.namespaced:
            meta.pop("namespace", None)
        elif not meta.get("namespace"):
            raise ConfigurationError(f"the fake cannot hold {_label(obj)}: it needs metadata.namespace")
        elif b.namespace(meta["namespace"]) is None:
            self.server.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": meta["namespace"]}})


def _listed(given: Iterable[T], what: str) -> list[T]:
    if isinstance(given, dict | str | bytes) or not isinstance(given, Iterable):
        raise ConfigurationError(f"fake.client takes a list of {what}, not {type(given).__name__}; put it into [...]")
    return [*given]


def _default_clock() -> Clock:
    try:
        virtual = isinstance(asyncio.get_running_loop(), VirtualLoop)
    except RuntimeError:
        virtual = False
    return VirtualClock() if virtual else RealClock()


def _label(obj: Obj) -> str:
    meta = obj.get("metadata") or {}
    parts: Sequence[str] = [p for p in (meta.get("namespace"), meta.get("name")) if p]
    return f"{obj.get('kind')} {'/'.join(parts)}"


def _not_served(api_version: str, kind: str) -> str:
    return (
        f'the fake serves no kind "{kind}" in "{api_version}"; '
        "give its CustomResourceDefinition in `crds`, or its Kind in `kinds`"
    )
