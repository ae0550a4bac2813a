"""Rules of StatefulSets, Deployments, ReplicaSets, DaemonSets and their revisions, new and changed. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lwskit.embedded import names, validate_claim, validate_meta, validate_pod
from lwskit.embedded.failures import FieldError, forbidden_field, invalid_value, not_supported, required
from lwskit.runtime.objects import Obj, Selector

_NOT_NEGATIVE = "must be greater than or equal to 0"
_IMMUTABLE = "field is immutable"
_STATEFUL_IMMUTABLE = ("selector", "volumeClaimTemplates", "serviceName", "podManagementPolicy")


def create(obj: Obj) -> Iterator[FieldError]:
    """The broken rules of a new or changed workload's spec."""
    kind, spec = obj["kind"], obj["spec"]
    if kind == "StatefulSet":
        yield from _stateful(spec)
    for name in ("replicas", "minReadySeconds", "revisionHistoryLimit"):
        if (
            isinstance(spec.get(name), int)
            and spec[name] < 0
            and not (kind == "StatefulSet" and name == "revisionHistoryLimit")
        ):
            yield invalid_value(f"spec.{name}", spec[name], _NOT_NEGATIVE)
    yield from _selector(kind, spec)
    template = spec.get("template") or {}
    yield from _template(kind, _as_pods_get_it(spec, template) if kind == "StatefulSet" else template)
    if kind == "Deployment":
        yield from _deployment(spec)


def _selector(kind: str, spec: Mapping[str, Any]) -> Iterator[FieldError]:
    selector = spec.get("selector")
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if selector is None:
        yield required("spec.selector")
    elif not selector.get("matchLabels") and not selector.get("matchExpressions"):
        what = "statefulset" if kind == "StatefulSet" else "deployment"
        yield invalid_value("spec.selector", {}, f"empty selector is invalid for {what}")
        return
    else:
        yield from validate_meta.labels(selector.get("matchLabels"), "spec.selector.matchLabels")
    if selector is None or not Selector.from_object(selector).matches(labels or {}):
        text = "`selector` does not match template `labels`"
        yield invalid_value("spec.template.metadata.labels", labels, text)


def _as_pods_get_it(spec: Mapping[str, Any], template: Mapping[str, Any]) -> Mapping[str, Any]:
    """A template with what its pods get of their StatefulSet: names of their own, which are not looked at here, and the
    volumes of the claim templates in place of its own of those names."""
    claims = {claim["metadata"].get("name", ""): claim for claim in spec.get("volumeClaimTemplates") or ()}
    pods = {k: v for k, v in (template.get("spec") or {}).items() if k not in ("hostname", "subdomain")}
    if claims:
        own = [volume for volume in pods.get("volumes") or () if volume.get("name") not in claims]
        added = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
        pods["volumes"] = [*added, *own]
    return {**template, "spec": pods}


def _template(kind: str, template: Mapping[str, Any]) -> Iterator[FieldError]:
    spec = template.get("spec") or {}
    yield from validate_pod.template(template, "spec.template")
    if spec.get("restartPolicy") not in (None, "Always"):
        yield not_supported("spec.template.spec.restartPolicy", spec["restartPolicy"], ("Always",))
    if spec.get("activeDeadlineSeconds") is not None:
        text = f"activeDeadlineSeconds in {kind} is not Supported"
        yield forbidden_field("spec.template.spec.activeDeadlineSeconds", text)


def _stateful(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    policy = spec.get("podManagementPolicy")
    if policy not in ("OrderedReady", "Parallel"):
        yield invalid_value("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    yield from _update_strategy(spec.get("updateStrategy") or {})
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for name in ("whenDeleted", "whenScaled"):
        if retention.get(name) not in (None, "Retain", "Delete"):
            where = f"spec.persistentVolumeClaimRetentionPolicy.{name}"
            yield not_supported(where, retention[name], ("Retain", "Delete"))
    for i, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        yield from validate_claim.spec(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{i}].spec")
    start = (spec.get("ordinals") or {}).get("start", 0)
    if start < 0:
        yield invalid_value("spec.ordinals.start", start, _NOT_NEGATIVE)
    if spec.get("serviceName"):
        for text in names.label(spec["serviceName"]):
            yield invalid_value("spec.serviceName", spec["serviceName"], text)


def _update_strategy(strategy: Mapping[str, Any]) -> Iterator[FieldError]:
    where, kind, rolling = "spec.updateStrategy", strategy.get("type"), strategy.get("rollingUpdate")
    if kind not in ("RollingUpdate", "OnDelete"):
        shown = {"Type": kind, "RollingUpdate": _internal(rolling) if rolling else None}
        yield invalid_value(where, shown, "must be 'RollingUpdate' or 'OnDelete'")
        return
    if rolling is None:
        return
    if kind == "OnDelete":
        shown = _internal(rolling)
        text = "only allowed for updateStrategy 'RollingUpdate'"
        yield invalid_value(f"{where}.rollingUpdate", shown, text)
        return
    if rolling.get("partition", 0) < 0:
        yield invalid_value(f"{where}.rollingUpdate.partition", rolling["partition"], _NOT_NEGATIVE)
    yield from _share(rolling.get("maxUnavailable"), f"{where}.rollingUpdate.maxUnavailable")
    if rolling.get("maxUnavailable") in (0, "0%"):
        yield invalid_value(f"{where}.rollingUpdate.maxUnavailable", 0, "cannot be 0")


def _internal(rolling: Mapping[str, Any]) -> dict[str, Any]:
    """A rolling update as refusals show it."""
    return {"Partition": rolling.get("partition", 0), "MaxUnavailable": rolling.get("maxUnavailable")}


def _share(value: Any, where: str) -> Iterator[FieldError]:
    """A number or a percentage of at most 100."""
    yield from _number(value, where)
    yield from _at_most_all(value, where)


def _number(value: Any, where: str) -> Iterator[FieldError]:
    """A number or a percentage."""
    if isinstance(value, str):
        if not _is_percentage(value):
            text = (
                "a valid percent string must be a numeric string followed by an ending '%' "
                "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
            )
            yield invalid_value(where, value, text)
    elif isinstance(value, int) and value < 0:
        yield invalid_value(where, value, _NOT_NEGATIVE)


def _at_most_all(value: Any, where: str) -> Iterator[FieldError]:
    if isinstance(value, str) and _is_percentage(value) and int(value[:-1]) > 100:
        yield invalid_value(where, value, "must not be greater than 100%")


def _amount(value: Any) -> int:
    """The number in a number or a percentage, 0 for anything else."""
    if isinstance(value, str):
        return int(value[:-1]) if _is_percentage(value) else 0
    return value or 0


def _is_percentage(value: str) -> bool:
    return value.endswith("%") and value[:-1].isascii() and value[:-1].isdecimal()


def _deployment(spec: Mapping[str, Any]) -> Iterator[FieldError]:
    strategy = spec.get("strategy") or {}
    rolling = strategy.get("rollingUpdate")
    where = "spec.strategy"
    if strategy.get("type") == "Recreate":
        if rolling is not None:
            text = "may not be specified when strategy `type` is 'Recreate'"
            yield forbidden_field(f"{where}.rollingUpdate", text)
    elif strategy.get("type") != "RollingUpdate":
        shown = {"Type": strategy.get("type"), "RollingUpdate": None}
        if rolling is not None:
            shown["RollingUpdate"] = {k: rolling.get(k[0].lower() + k[1:], 0) for k in ("MaxUnavailable", "MaxSurge")}
        yield not_supported(where, shown, ("Recreate", "RollingUpdate"))
    elif rolling is not None:
        for name in ("maxUnavailable", "maxSurge"):
            yield from _number(rolling.get(name), f"{where}.rollingUpdate.{name}")
        if not (_amount(rolling.get("maxUnavailable")) or _amount(rolling.get("maxSurge"))):
            text = "may not be 0 when `maxSurge` is 0"
            yield invalid_value(f"{where}.rollingUpdate.maxUnavailable", rolling["maxUnavailable"], text)
        yield from _at_most_all(rolling.get("maxUnavailable"), f"{where}.rollingUpdate.maxUnavailable")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline < 0:
        yield invalid_value("spec.progressDeadlineSeconds", deadline, _NOT_NEGATIVE)
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        yield invalid_value("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def update(new: Obj, old: Obj) -> Iterator[FieldError]:
    """The broken rules of a changed workload, besides those of its spec: what may never change."""
    before, after = old["spec"], new["spec"]
    fields = _STATEFUL_IMMUTABLE if new["kind"] == "StatefulSet" else ("selector",)
    for name in fields:
        if before.get(name) != after.get(name):
            empty = "" if name in ("serviceName", "podManagementPolicy") else None
            yield invalid_value(f"spec.{name}", after.get(name, empty), _IMMUTABLE)


def stateful_status(new: Obj, old: Obj | None) -> Iterator[FieldError]:
    """The broken rules of a StatefulSet's changed status."""
    status: Mapping[str, Any] = new.get("status") or {}
    yield from _collisions(status, old)
    counts = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
    yield from _counts(status, ("replicas", *counts, "observedGeneration", "collisionCount"), counts)
    yield from _available(status, "status.readyReplicas")


def deployment_status(new: Obj, old: Obj | None) -> Iterator[FieldError]:
    """The broken rules of a Deployment's changed status."""
    status: Mapping[str, Any] = new.get("status") or {}
    counts = ("updatedReplicas", "readyReplicas", "availableReplicas")
    more = ("unavailableReplicas", "terminatingReplicas", "collisionCount")
    yield from _counts(status, ("observedGeneration", "replicas", *counts, *more), counts)
    yield from _available(status, "readyReplicas")
    yield from _collisions(status, old)


def replica_set_status(new: Obj) -> Iterator[FieldError]:
    """The broken rules of a ReplicaSet's changed status."""
    status: Mapping[str, Any] = new.get("status") or {}
    counts = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    yield from _counts(status, ("replicas", *counts, "observedGeneration", "terminatingReplicas"), counts)
    yield from _available(status, "readyReplicas")


def _collisions(status: Mapping[str, Any], old: Obj | None) -> Iterator[FieldError]:
    before = ((old or {}).get("status") or {}).get("collisionCount")
    if before is not None and (status.get("collisionCount") is None or status["collisionCount"] < before):
        yield invalid_value("status.collisionCount", status.get("collisionCount", 0), "cannot be decremented")


def _counts(status: Mapping[str, Any], all_: Sequence[str], parts: Sequence[str]) -> Iterator[FieldError]:
    for name in all_:
        if status.get(name, 0) < 0:
            yield invalid_value(f"status.{name}", status[name], _NOT_NEGATIVE)
    for name in parts:
        if status.get(name, 0) > status.get("replicas", 0):
            yield invalid_value(f"status.{name}", status.get(name, 0), "cannot be greater than status.replicas")


def _available(status: Mapping[str, Any], ready: str) -> Iterator[FieldError]:
    if status.get("availableReplicas", 0) > status.get("readyReplicas", 0):
        yield invalid_value("status.availableReplicas", status["availableReplicas"], f"cannot be greater than {ready}")


def revision(new: Obj, old: Obj | None) -> Iterator[FieldError]:
    """The broken rules of a ControllerRevision."""
    if new.get("data") is None:
        yield required("data", "data is mandatory")
    if new.get("revision", 0) < 0:
        yield invalid_value("revision", new["revision"], _NOT_NEGATIVE)
    if old is not None and new.get("data") != old.get("data"):
        yield invalid_value("data", new.get("data"), _IMMUTABLE)
