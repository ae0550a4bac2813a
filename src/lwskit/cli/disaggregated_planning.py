"""Plans for the DisaggregatedSets of a manifest: what the API server would store, and what follows from that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from lwskit.api import disaggregated_names as names
from lwskit.backends import registry
from lwskit.cli import dryrun, everything, observed
from lwskit.disaggregated import family as families
from lwskit.disaggregated.family import Family
from lwskit.disaggregated.kinds import DISAGGREGATED_SET
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.lint.findings import UNKNOWN_FIELD
from lwskit.lint.server import Server
from lwskit.runtime.client.client import Client
from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.objects import Obj, labels_of
from lwskit.simulate import disaggregated_plan
from lwskit.simulate.disaggregated_report import Report, refused
from lwskit.simulate.disaggregated_world import Judge, Refusal
from lwskit.simulate.edit import applied
from lwskit.simulate.order import OrderError
from lwskit.simulate.report import Notice


def in_dump(objects: Sequence[Obj], path: str, manifest: Obj, order: str, now: datetime) -> Report:
    """The plan against the objects of a dump. Raises ConfigurationError for an order that such sets do not have."""
    meta = manifest["metadata"]
    backends = registry.find()
    family = families.of(objects, meta["namespace"], meta["name"], backends.leaders_of, backends.workers)
    report = _offline(family, manifest, order, now)
    if family.ds is not None:
        return report
    there = observed.names_in(objects, family.namespace, DISAGGREGATED_SET)
    error = observed.unknown(family.name, family.namespace, there, path, names.KIND)
    return replace(report, notices=(Notice("not-in-dump", str(error)), *report.notices))


async def on_cluster(client: Client, manifest: Obj, order: str, now: datetime) -> Report:
    """The plan for one set: the cluster's own API server and webhooks say in a dry run what would be stored, and of the
    LeaderWorkerSets that are made, one for each role, whether they would be.

    Who may not write gets the answers of the API server that lwskit has in it. Raises ConfigurationError, ApiError and
    ConnectionFailed; when cancelled, it asks no more.
    """
    namespace, name = manifest["metadata"]["namespace"], manifest["metadata"]["name"]

    async def looked() -> Family:
        return await look(client, namespace, name)

    found = await dryrun.stored(client, DISAGGREGATED_SET, manifest, looked, lambda family: family.ds)
    if found.refusal:
        return refused(namespace, name, [found.refusal])
    if found.stored is None:
        return _offline(found.seen, manifest, order, now)
    seen, stored = found.seen, found.stored
    offline, met = _judge(), dict[str, Obj]()

    def noting(child: Obj, before: Obj | None) -> Sequence[Refusal]:
        if before is None:
            met.setdefault(_role(child), child)
        return offline(child, before)

    report = _planned(seen, stored, order, now, noting)
    said = {role: await dryrun.refusal(client, LEADER_WORKER_SET, child) for role, child in met.items()}
    # Where the cluster is of another mind about a role's LeaderWorkerSets, it is right.
    other = {
        role: text
        for role, text in said.items()
        if text is not None and bool(text) is not bool(offline(met[role], None))
    }
    if not other:
        return report

    def judge(child: Obj, before: Obj | None) -> Sequence[Refusal]:
        text = other.get(_role(child)) if before is None else None
        if text is None:
            return offline(child, before)
        return [Refusal("", text)] if text else []

    return _planned(seen, stored, order, now, judge)


def _role(child: Obj) -> str:
    return labels_of(child)[names.ROLE_LABEL]


def _judge() -> Judge:
    """What the API server that lwskit has in it refuses of children."""
    server = Server()

    def judge(child: Obj, before: Obj | None) -> Sequence[Refusal]:
        namespace = child["metadata"]["namespace"]
        answer = server.create(child, namespace) if before is None else server.update(child, before, namespace)
        return [Refusal(fault.path, fault.message) for fault in answer.refusals]

    return judge


async def look(client: Client, namespace: str, name: str) -> Family:
    """The family of a set on a cluster. Raises ApiError for what may not be read, but for events and nodes."""
    found = await everything.read(client, namespace)
    for error in found.unread.values():
        raise error
    backends = registry.find()
    return families.of(found.objects, namespace, name, backends.leaders_of, backends.workers, found.blind)


def _planned(family: Family, stored: Obj, order: str, now: datetime, judge: Judge) -> Report:
    backends = registry.find()
    try:
        return disaggregated_plan.plan(family, stored, order, backends.leaders_of, backends.workers, now, judge)
    except OrderError as error:
        raise ConfigurationError(str(error)) from error


def _offline(family: Family, manifest: Obj, order: str, now: datetime) -> Report:
    server, namespace, name = Server(), family.namespace, family.name
    # Those of the manifest only: a server that is newer than this one may have stored what is not known here.
    unknown = [f.path for f in server.create(manifest, namespace).warnings if f.code is UNKNOWN_FIELD]
    if unknown:
        told = [f"{path}: there is no such field, and kubectl apply refuses it" for path in unknown]
        return refused(namespace, name, told)
    body = applied(family.ds, manifest)
    answer = server.create(body, namespace) if family.ds is None else server.update(body, family.ds, namespace)
    if answer.stored is None or answer.refusals:
        told = [f"{f.path}: {f.message}" if f.path else f.message for f in answer.refusals]
        return refused(namespace, name, told)
    live = family.ds
    if live is not None:
        # A server gives out what it stored before a default came to be with that default.
        there = server.create(live, namespace).stored
        family = replace(family, ds={**live, "spec": there["spec"]}) if there is not None else family
        answer.stored["status"] = live.get("status") or {}
    return _planned(family, answer.stored, order, now, _judge())
