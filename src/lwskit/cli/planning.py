"""Plans for the sets of a manifest: what the API server would store, and what follows from that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from lwskit.api import disaggregated_names, names
from lwskit.backends import registry
from lwskit.cli import disaggregated_planning, dryrun, observed
from lwskit.groups import drain as drains
from lwskit.groups import ownership, spec
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.scene import Scene
from lwskit.lint.findings import UNKNOWN_FIELD
from lwskit.lint.server import Server
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import RealClock
from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import Key, Obj, is_of
from lwskit.simulate import disaggregated_output, hashed_plan, output
from lwskit.simulate import plan as plans
from lwskit.simulate.disaggregated_report import Report as DisaggregatedReport
from lwskit.simulate.edit import Verdict, applied
from lwskit.simulate.report import Notice, Report, refused

_KINDS = ((names.API_VERSION, names.KIND), (disaggregated_names.API_VERSION, disaggregated_names.KIND))
_SERVED = {(version.partition("/")[0], kind): version for version, kind in _KINDS}
"""The version that is served, by group and kind."""
AnyReport = Report | DisaggregatedReport
"""A plan for a set of either kind."""


def text(report: AnyReport) -> Iterator[str]:
    """A plan as lines for people."""
    return disaggregated_output.text(report) if isinstance(report, DisaggregatedReport) else output.text(report)


def as_data(report: AnyReport) -> dict[str, Any]:
    """What the JSON output has of a plan."""
    if isinstance(report, DisaggregatedReport):
        return disaggregated_output.as_data(report)
    return {"kind": names.KIND, **output.as_data(report)}


def sets_of(objects: Sequence[Obj], filename: str, namespace: str) -> list[Obj]:
    """The sets of either kind among the objects of a manifest, each with its namespace.

    Raises ConfigurationError if there is none, and for one of another version, which could not be applied.
    """
    sets = [o for o in objects if (o["apiVersion"], o["kind"]) in _KINDS]
    if not sets:
        kinds = ", ".join(sorted({f"{o['kind']} ({o['apiVersion']})" for o in objects}))
        wanted = " and no ".join(f"{kind} of {version}" for version, kind in _KINDS)
        raise ConfigurationError(f"{filename} holds no {wanted}, only {kinds}")
    for obj in objects:
        served = _SERVED.get((obj["apiVersion"].partition("/")[0], obj["kind"]))
        if served is not None and obj["apiVersion"] != served:
            raise ConfigurationError(
                f"{filename}: {obj['kind']} {obj['metadata']['name']} is of {obj['apiVersion']}, which no cluster "
                f"serves; write {served}"
            )
    return [
        {**o, "metadata": {**o["metadata"], "namespace": o["metadata"].get("namespace") or namespace}} for o in sets
    ]


def against_dump(sets: Sequence[Obj], path: str, order: str) -> list[AnyReport]:
    """The plans against a saved dump. Raises ConfigurationError for a dump that cannot be read."""
    objects, server, backends = observed.read_dump(path), Server(), registry.find()
    now = observed.time_of(objects) or RealClock().now()
    reports: list[AnyReport] = []
    for manifest in sets:
        meta = manifest["metadata"]
        if manifest["kind"] == disaggregated_names.KIND:
            reports.append(disaggregated_planning.in_dump(objects, path, manifest, order, now))
            continue
        scene = observed.scene_in_dump(objects, path, meta["namespace"], meta["name"], backends)
        report = _partial(_offline(scene, manifest, server, order, now), scene)
        if scene.lws is None:
            report = replace(report, notices=(_missing(objects, path, scene), *report.notices))
        reports.append(report)
    return reports


def _partial(report: Report, scene: Scene) -> Report:
    """The report, and that the dump lacks what made the leaders, for then its steps are those of another set."""
    if not scene.partial or report.verdict is Verdict.REFUSED:
        return report
    text = f"{scene.partial}: the plan takes the set for one without them, and its steps are not those of the cluster"
    notice = Notice("partial-dump", text, (observed.save_again(scene.namespace),))
    return replace(report, notices=(notice, *report.notices))


def _missing(objects: Sequence[Obj], path: str, scene: Scene) -> Notice:
    """That a dump has no such set, which may be meant or not."""
    error = observed.unknown(scene.name, scene.namespace, observed.names_in(objects, scene.namespace), path)
    elsewhere = sorted(
        o["metadata"]["namespace"]
        for o in objects
        if is_of(o, LEADER_WORKER_SET) and o["metadata"]["name"] == scene.name
    )
    hints = (f"namespace {', '.join(elsewhere)} has one: say with -n where the set is",) if elsewhere else ()
    return Notice("not-in-dump", str(error), hints)


async def against_cluster(
    sets: Sequence[Obj],
    order: str,
    kubeconfig: str | None,
    context: str | None,
    reports: list[AnyReport],
) -> None:
    """Add the plans against a cluster to `reports`. Raises ConfigurationError, ApiError and ConnectionFailed.

    When cancelled, the connection is closed.
    """
    async with observed.connected(kubeconfig, context) as client:
        for manifest in sets:
            plan = disaggregated_planning.on_cluster if manifest["kind"] == disaggregated_names.KIND else on_cluster
            reports.append(await plan(client, manifest, order, client.clock.now()))


def restart_in_dump(group: str, namespace: str, path: str, order: str) -> Report:
    """The plan for recreating a group, against a saved dump. Raises ConfigurationError, and DecisionError for a group
    that is not there or goes already."""
    objects, backends = observed.read_dump(path), registry.find()
    pods = [o for o in objects if is_of(o, POD) and o["metadata"]["namespace"] == namespace]
    leader = drains.find(pods, group)
    scene = observed.scene_in_dump(objects, path, namespace, ownership.set_name(leader), backends)
    if scene.partial:
        raise ConfigurationError(f"{scene.partial}; {observed.save_again(namespace)}")
    return _restart(scene, leader, order, observed.time_of(objects) or RealClock().now())


async def restart_against_cluster(
    group: str,
    namespace: str,
    order: str,
    kubeconfig: str | None,
    context: str | None,
    reports: list[AnyReport],
) -> None:
    """Add the plan for recreating a group on a cluster to `reports`. Raises as `restart_on_cluster`, and
    ConnectionFailed. When cancelled, the connection is closed.
    """
    async with observed.connected(kubeconfig, context) as client:
        reports.append(await restart_on_cluster(client, group, namespace, order, client.clock.now()))


async def restart_on_cluster(client: Client, group: str, namespace: str, order: str, now: datetime) -> Report:
    """The plan for recreating the group that is called `group`. Raises DecisionError for one that is not there or goes
    already, ConfigurationError and ApiError."""
    leader = drains.find(await observed.leaders_on(client, namespace), group)
    scene = await observed.look(client, namespace, ownership.set_name(leader), registry.find())
    return _restart(scene, leader, order, now)


def _restart(scene: Scene, leader: Obj, order: str, now: datetime) -> Report:
    name, backends = leader["metadata"]["name"], registry.find()
    if scene.lws is None or not spec.is_hashed(scene.lws):
        raise ConfigurationError(
            f"{name} leads no group of a set in Hash mode: elsewhere a group comes back under its own names, and there "
            "is nothing to plan"
        )
    return hashed_plan.restarted(scene, name, order, backends.leaders_of(scene.lws), backends.workers, now)


async def on_cluster(client: Client, manifest: Obj, order: str, now: datetime) -> Report:
    """The plan for one set: the cluster's own API server and webhooks say in a dry run what would be stored.

    Who may not write gets the answers of the API server that lwskit has in it. A set that somebody else writes at the
    same time is looked at again. Raises ApiError and ConnectionFailed.
    """
    backends = registry.find()
    key = Key(manifest["metadata"]["namespace"], manifest["metadata"]["name"])

    async def looked() -> Scene:
        return await observed.look(client, key.namespace, key.name, backends)

    found = await dryrun.stored(client, LEADER_WORKER_SET, manifest, looked, lambda scene: scene.lws)
    if found.refusal:
        return refused(key.namespace, key.name, [found.refusal])
    if found.stored is None:
        return _offline(found.seen, manifest, Server(), order, now)
    return plans.plan(found.seen, found.stored, order, backends.leaders_of(found.stored), backends.workers, now)


def _offline(scene: Scene, manifest: Obj, server: Server, order: str, now: datetime) -> Report:
    body = applied(scene.lws, manifest)
    answer = server.create(body, scene.namespace)
    # Those of the manifest only: a server that is newer than this one may have stored what is not known here.
    unknown = [f.path for f in server.create(manifest, scene.namespace).warnings if f.code is UNKNOWN_FIELD]
    if unknown:
        told = [f"{path}: there is no such field, and kubectl apply refuses it" for path in unknown]
        return refused(scene.namespace, scene.name, told)
    if scene.lws is not None:
        answer = server.update(body, scene.lws, scene.namespace)
    if answer.stored is None or answer.refusals:
        told = [f"{f.path}: {f.message}" if f.path else f.message for f in answer.refusals]
        return refused(scene.namespace, scene.name, told)
    backends = registry.find()
    if scene.lws is not None:
        # What was stored before a default came to be is not changed by that default.
        there = server.create(scene.lws, scene.namespace).stored
        scene = replace(scene, lws={**scene.lws, "spec": there["spec"]}) if there is not None else scene
    return plans.plan(scene, answer.stored, order, backends.leaders_of(answer.stored), backends.workers, now)
