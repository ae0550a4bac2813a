"""Plans for the sets of a manifest: what the API server would store, and what follows from that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from lwskit.api import names
from lwskit.backends import registry
from lwskit.cli import observed
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.scene import Scene
from lwskit.lint.server import Server
from lwskit.manager import version
from lwskit.runtime.client.client import Client
from lwskit.runtime.client.config import connect
from lwskit.runtime.clock import RealClock
from lwskit.runtime.errors import ApiError, ConfigurationError, Forbidden
from lwskit.runtime.objects import Key, Obj
from lwskit.simulate import plan as plans
from lwskit.simulate.edit import applied
from lwskit.simulate.plan import Report


def sets_of(objects: Sequence[Obj], filename: str, namespace: str) -> list[Obj]:
    """The sets among the objects of a manifest, each with its namespace. Raises ConfigurationError if there is none."""
    sets = [o for o in objects if o["kind"] == names.KIND and o["apiVersion"] == names.API_VERSION]
    if not sets:
        kinds = ", ".join(sorted({f"{o['kind']} ({o['apiVersion']})" for o in objects}))
        raise ConfigurationError(f"{filename} holds no {names.KIND} of {names.API_VERSION}, only {kinds}")
    return [
        {**o, "metadata": {**o["metadata"], "namespace": o["metadata"].get("namespace") or namespace}} for o in sets
    ]


def against_dump(sets: Sequence[Obj], path: str, order: str) -> list[Report]:
    """The plans against a saved dump. Raises ConfigurationError for a dump that cannot be read."""
    objects, server, backends = observed.read_dump(path), Server(), registry.find()
    reports: list[Report] = []
    for manifest in sets:
        meta = manifest["metadata"]
        scene = observed.scene_of(objects, meta["namespace"], meta["name"], backends)
        reports.append(_offline(scene, manifest, server, order, RealClock().now()))
    return reports


async def against_cluster(
    sets: Sequence[Obj], order: str, kubeconfig: str | None, context: str | None, reports: list[Report]
) -> None:
    """Add the plans against a cluster to `reports`. Raises ConfigurationError, ApiError and ConnectionFailed.

    When cancelled, the connection is closed.
    """
    clock = RealClock()
    client = await connect(kubeconfig, context, user_agent=version.user_agent(), clock=clock)
    try:
        for manifest in sets:
            reports.append(await on_cluster(client, manifest, order, clock.now()))
    finally:
        await client.close()


async def on_cluster(client: Client, manifest: Obj, order: str, now: datetime) -> Report:
    """The plan for one set: the cluster's own API server and webhooks say in a dry run what would be stored.

    Who may not write gets the answers of the API server that lwskit has in it. Raises ApiError and ConnectionFailed.
    """
    backends = registry.find()
    key = Key(manifest["metadata"]["namespace"], manifest["metadata"]["name"])
    scene = await observed.look(client, key.namespace, key.name, backends)
    body = applied(scene.lws, manifest)
    try:
        if scene.lws is None:
            stored = await client.create(LEADER_WORKER_SET, body, dry_run=True)
        else:
            stored = await client.update(LEADER_WORKER_SET, body, dry_run=True)
    except Forbidden as error:
        if "admission webhook" in error.message:
            return plans.refused(key.namespace, key.name, [error.message])
        return _offline(scene, manifest, Server(), order, now)
    except ApiError as error:
        if not 400 <= error.code < 500:
            raise
        return plans.refused(key.namespace, key.name, [error.message])
    return plans.plan(scene, stored, order, backends.leaders, backends.workers, now)


def _offline(scene: Scene, manifest: Obj, server: Server, order: str, now: datetime) -> Report:
    body = applied(scene.lws, manifest)
    answer = server.create(body, scene.namespace)
    if scene.lws is not None:
        answer = server.update(body, scene.lws, scene.namespace)
    if answer.stored is None or answer.refusals:
        told = [f"{f.path}: {f.message}" if f.path else f.message for f in answer.refusals]
        return plans.refused(scene.namespace, scene.name, told)
    backends = registry.find()
    if scene.lws is not None:
        # What was stored before a default came to be is not changed by that default.
        there = server.create(scene.lws, scene.namespace).stored
        scene = replace(scene, lws={**scene.lws, "spec": there["spec"]}) if there is not None else scene
    return plans.plan(scene, answer.stored, order, backends.leaders, backends.workers, now)
