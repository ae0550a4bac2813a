"""Pod templates: what the workloads made from them would be refused for, and what they overwrite. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from lwskit.admission.pod import admitted
from lwskit.api import names
from lwskit.backends.statefulset import StatefulSetLeaders, StatefulSetWorkers
from lwskit.groups import spec
from lwskit.groups.model import DecisionError, LeaderPlan
from lwskit.groups.templates import group_plan, leader_plan
from lwskit.lint.findings import HOST_NAME_OVERWRITTEN, POD_REFUSED, TEMPLATE_NAME_IGNORED, WORKLOAD_REFUSED, Fault
from lwskit.lint.rules.claims import nameless
from lwskit.lint.rules.paths import LEADER, TEMPLATE, WORKER, templates
from lwskit.lint.server import Server
from lwskit.runtime.errors import InvalidRequest
from lwskit.runtime.kinds import DEPLOYMENT
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
    """Why the workloads made from a set, which is itself accepted, or their pods would be refused."""
    if nameless(lws):
        return
    told: set[tuple[str, str]] = set()
    for workload, template, pod in _workloads(lws):
        found = [(_source(field, template), message) for field, message in server.workload(workload)]
        for path, message in found:
            if path is None or (path, message) in told:
                continue
            told.add((path, message))
            text = f"the {workload['kind']} made from this will be refused: {message}"
            yield Fault(WORKLOAD_REFUSED, path, text)
        place = f"{TEMPLATE}.{template}"
        if not found and (place, "") not in told and (message := _denied(workload, pod)):
            told.add((place, ""))
            text = f"pods of this template will be refused, such as {pod}: {message}"
            yield Fault(POD_REFUSED, place, text)


def _workloads(lws: Obj) -> Iterator[tuple[Obj, str, str]]:
    """The workloads of leaders and of workers of the first group, from which template, and the last pod of each."""
    owned = {**lws, "metadata": {**lws["metadata"], "uid": "0"}}
    name, size = lws["metadata"]["name"], spec.size(lws)
    own = bool(spec.template_of(lws).get(LEADER))
    hashed = spec.identity(lws) == names.IDENTITY_HASH
    host = f"{name}-{names.SAFE_ALPHABET[0] * names.HASH_KEY_PREFIX}" if hashed else f"{name}-0"
    try:
        leaders = leader_plan(owned, "0", partition=0, replicas=spec.replicas(lws))
        made = _hashed(_deployment(leaders)) if hashed else StatefulSetLeaders().render(leaders)
        yield made, LEADER if own else WORKER, host
        if size > 1:
            labels = {names.GROUP_INDEX_LABEL: "0", names.GROUP_KEY_LABEL: "0", names.REVISION_LABEL: "0"}
            leader = {
                "metadata": {"name": host, "uid": "0", "labels": labels},
                "spec": {**(leaders.template.get("spec") or {}), "hostname": host, "subdomain": name},
            }
            workers = group_plan(owned, owned, leader)
            made = StatefulSetWorkers().render(workers)
            yield _hashed(made) if hashed else made, WORKER, f"{host}-{size - 1}"
    except DecisionError:
        # What cannot be decided is refused by name elsewhere.
        return


def _deployment(plan: LeaderPlan) -> Obj:
    """The leaders of a Hash set."""
    return {
        "apiVersion": DEPLOYMENT.api_version,
        "kind": DEPLOYMENT.kind,
        "metadata": {"name": plan.name, "namespace": plan.namespace, "labels": dict(plan.labels)},
        "spec": {
            "replicas": plan.replicas,
            "selector": {"matchLabels": dict(plan.selector)},
            "template": plan.template,
        },
    }


def _hashed(workload: Obj) -> Obj:
    """The workload with what tells its pods that their group has no ordinal."""
    template = workload["spec"]["template"]
    notes = {**template["metadata"]["annotations"], names.GROUP_IDENTITY_ANNOTATION: names.IDENTITY_HASH}
    changed = {**template, "metadata": {**template["metadata"], "annotations": notes}}
    return {**workload, "spec": {**workload["spec"], "template": changed}}


def _denied(workload: Obj, pod: str) -> str:
    """Why admission denies a pod of a workload; empty if it does not."""
    template, namespace = workload["spec"]["template"], workload["metadata"]["namespace"]
    named, inner = {**template["metadata"]}, {**(template.get("spec") or {})}
    if workload["kind"] == DEPLOYMENT.kind:
        # Its pods get their names and host names later.
        named["generateName"] = f"{workload['metadata']['name']}-"
    else:
        named["name"] = pod
        inner |= {"hostname": pod, "subdomain": workload["spec"]["serviceName"]}
    try:
        admitted({"metadata": named, "spec": inner}, namespace, lambda count: names.SAFE_ALPHABET[0] * count)
    except (DecisionError, InvalidRequest) as error:
        return str(error)
    return ""


def _source(field: str, template: str) -> str | None:
    """The field of the set that a field of its workload is made from; None for what is not made from one."""
    if field.startswith("spec.template"):
        return f"{TEMPLATE}.{template}{field.removeprefix('spec.template')}"
    for name in ("volumeClaimTemplates", "persistentVolumeClaimRetentionPolicy"):
        if field.startswith(f"spec.{name}"):
            return f"{TEMPLATE}.{field.removeprefix('spec.')}"
    return None
