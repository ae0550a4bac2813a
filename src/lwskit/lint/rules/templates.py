"""Pod templates: what the StatefulSets made from them would be refused for, and what they overwrite. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from lwskit.api import names
from lwskit.backends.statefulset import StatefulSetLeaders, StatefulSetWorkers
from lwskit.groups import spec
from lwskit.groups.model import DecisionError
from lwskit.groups.templates import group_plan, leader_plan
from lwskit.lint.findings import HOST_NAME_OVERWRITTEN, TEMPLATE_NAME_IGNORED, WORKLOAD_REFUSED, Fault
from lwskit.lint.rules.paths import LEADER, TEMPLATE, WORKER, templates
from lwskit.lint.server import Server
from lwskit.runtime.objects import Obj

_IN_POD = {"hostname": "the pod's name", "subdomain": "the name of its Service"}


def check(lws: Obj) -> Iterator[Fault]:
    """Names in templates that pods do not get."""
    for template in templates(lws):
        for field, instead in _IN_POD.items():
            if template.spec.get(field) and spec.identity(lws) == names.IDENTITY_ORDINAL:
                text = f"{field} of a template is overwritten: it is {instead}"
                yield Fault(HOST_NAME_OVERWRITTEN, f"{template.path}.spec.{field}", text, "leave it out")
        for field in ("name", "namespace", "generateName"):
            if template.metadata.get(field):
                text = f"{field} of a template is ignored: pods are named after their set"
                yield Fault(TEMPLATE_NAME_IGNORED, f"{template.path}.metadata.{field}", text, "leave it out")


def refused(lws: Obj, server: Server) -> Iterator[Fault]:
    """Why the StatefulSets made from a set, which is itself accepted, would be refused."""
    if spec.identity(lws) != names.IDENTITY_ORDINAL:
        return
    told: set[tuple[str, str]] = set()
    for workload, template in _workloads(lws):
        for field, message in server.workload(workload):
            path = _source(field, template)
            if path is None or (path, message) in told:
                continue
            told.add((path, message))
            text = f"the StatefulSet made from this will be refused: {message}"
            yield Fault(WORKLOAD_REFUSED, path, text)


def _workloads(lws: Obj) -> Iterator[tuple[Obj, str]]:
    """The StatefulSets of leaders and of workers of the first group, and which template they are made from."""
    owned = {**lws, "metadata": {**lws["metadata"], "uid": "0"}}
    own = bool(spec.template_of(lws).get(LEADER))
    try:
        leaders = leader_plan(owned, "0", partition=0, replicas=spec.replicas(lws))
        yield StatefulSetLeaders().render(leaders), LEADER if own else WORKER
        if spec.size(lws) > 1:
            leader = {
                "metadata": {
                    "name": f"{lws['metadata']['name']}-0",
                    "uid": "0",
                    "labels": {names.GROUP_INDEX_LABEL: "0", names.GROUP_KEY_LABEL: "0", names.REVISION_LABEL: "0"},
                },
                "spec": {"hostname": "x", "subdomain": "x"},
            }
            yield StatefulSetWorkers().render(group_plan(owned, owned, leader)), WORKER
    except (DecisionError, KeyError):
        # Without what every StatefulSet has there is none; that has been refused by name.
        return


def _source(field: str, template: str) -> str | None:
    """The field of the set that a field of its StatefulSet is made from; None for what is not made from one."""
    if field.startswith("spec.template"):
        return f"{TEMPLATE}.{template}{field.removeprefix('spec.template')}"
    for name in ("volumeClaimTemplates", "persistentVolumeClaimRetentionPolicy"):
        if field.startswith(f"spec.{name}"):
            return f"{TEMPLATE}.{field.removeprefix('spec.')}"
    return None
