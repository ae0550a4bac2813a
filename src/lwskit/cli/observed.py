"""What `plan`, `explain` and `drain-group` look at: a saved dump, or a cluster through its API server."""

from __future__ import annotations

import difflib
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime

from lwskit.api import names
from lwskit.backends.registry import Backends
from lwskit.cli import dumped, manifests
from lwskit.disaggregated.kinds import DISAGGREGATED_SET, ROLE_SCALER
from lwskit.groups import scene as scenes
from lwskit.groups import spec
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.scene import Scene
from lwskit.manager import version
from lwskit.runtime.client.client import Client
from lwskit.runtime.client.config import connect
from lwskit.runtime.clock import RealClock
from lwskit.runtime.errors import ConfigurationError, Forbidden, NotFound
from lwskit.runtime.kinds import (
    CONTROLLER_REVISION,
    DEPLOYMENT,
    EVENT,
    NODE,
    POD,
    REPLICA_SET,
    SERVICE,
    STATEFUL_SET,
    Kind,
)
from lwskit.runtime.objects import Obj, is_of
from lwskit.runtime.typed import DecodeError, MissingError

_DEFAULT_NAMESPACE = "default"
_DUMP = "a dump is what kubectl get -o yaml prints"
_READ = (LEADER_WORKER_SET, DISAGGREGATED_SET, ROLE_SCALER, STATEFUL_SET, DEPLOYMENT, REPLICA_SET, POD)
"""Kinds whose spec is looked into."""


@asynccontextmanager
async def connected(kubeconfig: str | None, context: str | None) -> AsyncIterator[Client]:
    """A connection to a cluster, closed at the end and when cancelled. Raises ConfigurationError."""
    client = await connect(kubeconfig, context, user_agent=version.user_agent(), clock=RealClock())
    try:
        yield client
    finally:
        await client.close()


async def leaders_on(client: Client, namespace: str) -> list[Obj]:
    """The pods of a namespace that lead groups, by their label. Raises ApiError and ConnectionFailed."""
    leaders = f"{names.WORKER_INDEX_LABEL}={names.LEADER_INDEX}"
    return await client.list_all(POD, namespace, label_selector=leaders)


def read_dump(path: str) -> list[Obj]:
    """The objects of a dump; those without a namespace are of the namespace `default`. Raises ConfigurationError.

    A List without items is what `kubectl get` prints of a namespace that has nothing.
    """
    return [_checked(obj, path) for obj in manifests.read(path, may_be_empty=True)]


def _checked(obj: Obj, path: str) -> Obj:
    """The object as a cluster gives it out. Raises ConfigurationError for what none can have given out."""
    what = f"{path}: {obj['kind']} {obj['metadata']['name']}"
    try:
        obj = dumped.conformed(obj)
    except MissingError as error:
        raise ConfigurationError(f"{what} has no {error.path}; {_DUMP}") from error
    except DecodeError as error:
        raise ConfigurationError(f"{what}: {error}; {_DUMP}") from error
    if not is_of(obj, NODE):
        obj["metadata"].setdefault("namespace", _DEFAULT_NAMESPACE)
    if _is_read(obj) and "uid" not in obj["metadata"]:
        raise ConfigurationError(f"{what} has no metadata.uid; {_DUMP}, no manifest")
    return obj


def _is_read(obj: Obj) -> bool:
    return any(is_of(obj, kind) for kind in _READ)


def blind_in(objects: Iterable[Obj]) -> str:
    """What the objects of a dump do not tell of, in words; empty if nothing."""
    return "" if any(map(scenes.is_event, objects)) else "there are no events in the dump"


def scene_of(objects: Iterable[Obj], namespace: str, name: str, backends: Backends) -> Scene:
    """The scene of one set in a dump."""
    known = list(objects)
    mine = (o for o in known if is_of(o, LEADER_WORKER_SET) and _is_named(o, namespace, name))
    scene = scenes.of(known, namespace, name, backends.leaders_of(next(mine, None)), backends.workers)
    return replace(scene, blind=blind_in(known))


def scene_in_dump(objects: Sequence[Obj], path: str, namespace: str, name: str, backends: Backends) -> Scene:
    """The scene of one set in a dump, which may be without what made the leaders that are in it."""
    scene = scene_of(objects, namespace, name, backends)
    if scene.lws is None or not any(map(scenes.is_leader_pod, scene.pods)):
        return scene
    kinds = (backends.leaders_of(scene.lws).kind, *((REPLICA_SET,) if spec.is_hashed(scene.lws) else ()))
    missing = [
        k.kind for k in kinds if not any(is_of(o, k) and o["metadata"]["namespace"] == namespace for o in objects)
    ]
    if not missing:
        return scene
    text = f"{path} has no {' and no '.join(f'{k}s' for k in missing)}, though leaders of {namespace}/{name} are in it"
    return replace(scene, partial=text)


def save_again(namespace: str) -> str:
    """What to do about a dump that lacks objects."""
    kinds = "leaderworkersets,statefulsets,deployments,replicasets,pods,controllerrevisions,services,events"
    return f"save them too: `kubectl -n {namespace} get {kinds} -o yaml`"


def _is_named(obj: Obj, namespace: str, name: str) -> bool:
    return obj["metadata"]["name"] == name and obj["metadata"].get("namespace") == namespace


def time_of(objects: Iterable[Obj]) -> datetime | None:
    """When a dump was made, as near as its objects tell: the latest time that something in it happened, if any."""
    times = [text for obj in objects for text in _times(obj)]
    return max((t for text in times if (t := scenes.moment(text)) is not None), default=None)


def _times(obj: Obj) -> Iterator[str]:
    yield obj["metadata"].get("creationTimestamp") or ""
    if scenes.is_event(obj):
        yield scenes.happening(obj).time
    elif _is_read(obj):
        for condition in (obj.get("status") or {}).get("conditions") or ():
            yield condition.get("lastTransitionTime") or ""


async def look(client: Client, namespace: str, name: str, backends: Backends, *, events: bool = False) -> Scene:
    """The scene of one set on a cluster; with `events` also the events of the namespace and the nodes of its pods.

    Raises ConfigurationError where the cluster does not know LeaderWorkerSets, ApiError for what may not be read, but
    for events and nodes, without which there is less to say.
    """
    label = f"{names.NAME_LABEL}={name}"
    found: list[Obj] = []
    try:
        found.append({**await client.get(LEADER_WORKER_SET, name, namespace), **_typed(LEADER_WORKER_SET)})
    except NotFound as error:
        await _check_served(client, error)
    leaders = backends.leaders_of(found[0] if found else None)
    kinds = dict.fromkeys((POD, CONTROLLER_REVISION, SERVICE, backends.workers.kind, *leaders.watches))
    for kind in kinds:
        found += await client.list_all(kind, namespace, label_selector=label)
    try:
        found.append({**await client.get(leaders.kind, name, namespace), **_typed(leaders.kind)})
    except NotFound:
        pass
    blind = ""
    if events:
        try:
            found += await client.list_all(EVENT, namespace)
        except Forbidden as error:
            blind = f"events could not be read ({error})"
        found += await _nodes(client, found)
    return replace(scene_of(found, namespace, name, backends), blind=blind)


async def _check_served(client: Client, missing: NotFound) -> None:
    """A collection that is not there either is another matter than a set that is not. Raises ConfigurationError."""
    try:
        await client.list(LEADER_WORKER_SET, limit=1)
    except NotFound:
        raise ConfigurationError(
            f"the cluster has no {LEADER_WORKER_SET.qualified}; is its CustomResourceDefinition installed?"
        ) from missing
    except Forbidden:
        return


async def _nodes(client: Client, objects: Sequence[Obj]) -> list[Obj]:
    wanted = {o["spec"]["nodeName"] for o in objects if o.get("kind") == POD.kind and o["spec"].get("nodeName")}
    found: list[Obj] = []
    for name in sorted(wanted):
        try:
            found.append({**await client.get(NODE, name), **_typed(NODE)})
        except (NotFound, Forbidden):
            # An explanation without them says a little less.
            continue
    return found


def _typed(kind: Kind) -> Obj:
    return {"apiVersion": kind.api_version, "kind": kind.kind}


async def names_on(client: Client, namespace: str, kind: Kind = LEADER_WORKER_SET) -> list[str]:
    """The names of the sets of a kind in a namespace."""
    return [o["metadata"]["name"] for o in await client.list_all(kind, namespace)]


def names_in(objects: Iterable[Obj], namespace: str, kind: Kind = LEADER_WORKER_SET) -> list[str]:
    """The names of the sets of a kind and a namespace in a dump."""
    return [o["metadata"]["name"] for o in objects if is_of(o, kind) and o["metadata"]["namespace"] == namespace]


def unknown(name: str, namespace: str, there: Sequence[str], where: str, kind: str = names.KIND) -> ConfigurationError:
    """The error about a set that does not exist, with the names that it could have been."""
    near = difflib.get_close_matches(name, there, n=3, cutoff=0.5)
    if near:
        hint = f"did you mean {' or '.join(near)}?"
    elif there:
        hint = f"there are: {', '.join(sorted(there)[:10])}"
    else:
        hint = "there are none in that namespace"
    return ConfigurationError(f"{where} has no {kind} {name!r} in namespace {namespace!r}; {hint}")
