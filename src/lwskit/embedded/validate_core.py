"""Rules of config maps, secrets, leases, events and webhook configurations. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lwskit.embedded import names, validate_meta
from lwskit.embedded.failures import FieldError, forbidden_field, invalid_value, not_supported, required
from lwskit.runtime.objects import Obj

_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_IMMUTABLE = "field is immutable"


def data(obj: Obj, old: Obj | None) -> Iterator[FieldError]:
    """The broken rules of a config map or a secret."""
    if old is not None:
        yield from _data_update(obj, old)
    for field in ("data", "binaryData"):
        for key in obj.get(field) or {}:
            for text in names.config_key(key):
                yield invalid_value(f"{field}[{key}]", key, text)
            if field == "data" and key in (obj.get("binaryData") or {}) and obj["kind"] == "ConfigMap":
                yield invalid_value(f"data[{key}]", key, "duplicate of key present in binaryData")


def _data_update(obj: Obj, old: Obj) -> Iterator[FieldError]:
    if obj["kind"] == "Secret" and obj.get("type") != old.get("type"):
        yield invalid_value("type", obj.get("type"), _IMMUTABLE)
    if old.get("immutable"):
        if not obj.get("immutable"):
            yield forbidden_field("immutable", "field is immutable when `immutable` is set")
        for field in ("data", "binaryData"):
            if obj.get(field) != old.get(field):
                yield forbidden_field(field, "field is immutable when `immutable` is set")


def lease(obj: Obj) -> Iterator[FieldError]:
    """The broken rules of a lease."""
    spec = obj.get("spec") or {}
    seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if seconds is not None and seconds <= 0:
        yield invalid_value("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    if transitions is not None and transitions < 0:
        yield invalid_value("spec.leaseTransitions", transitions, "must be greater than or equal to 0")


def event(obj: Obj) -> Iterator[FieldError]:
    """The broken rules of an event, in the form of its own group."""
    if obj["apiVersion"] == "v1":
        place = (obj.get("involvedObject") or {}).get("namespace", "")
        own = obj["metadata"].get("namespace", "")
        if place != own and not (place == "" and own == "default"):
            yield invalid_value("involvedObject.namespace", place, "does not match event.namespace")
        return
    if not obj.get("eventTime"):
        yield required("eventTime")
        if obj.get("type") not in ("Normal", "Warning"):
            yield invalid_value("type", "", f"has invalid value: {obj.get('type', '')}")
        return
    controller = obj.get("reportingController", "")
    if not controller:
        yield required("reportingController")
    for text in names.qualified(controller) if controller else ():
        yield invalid_value("reportingController", controller, text)
    for name in ("reportingInstance", "action", "reason"):
        if not obj.get(name):
            yield required(name)
    if obj.get("type") not in ("Normal", "Warning"):
        yield invalid_value("type", "", f"has invalid value: {obj.get('type', '')}")


def webhooks(obj: Obj) -> Iterator[FieldError]:
    """The broken rules of a webhook configuration."""
    for i, webhook in enumerate(obj.get("webhooks") or ()):
        where = f"webhooks[{i}]"
        name = webhook.get("name", "")
        if name.count(".") < 2:
            text = "should be a domain with at least three segments separated by dots"
            yield invalid_value(f"{where}.name", name, text)
        for j, rule in enumerate(webhook.get("rules") or ()):
            yield from _rule(rule, f"{where}.rules[{j}]")
        effects = webhook.get("sideEffects")
        if effects is None:
            yield required(f"{where}.sideEffects", "must specify one of None, NoneOnDryRun")
        elif effects not in ("None", "NoneOnDryRun"):
            yield not_supported(f"{where}.sideEffects", effects, ("None", "NoneOnDryRun"))
        seconds = webhook.get("timeoutSeconds")
        if seconds is not None and not 1 <= seconds <= 30:
            text = "the timeout value must be between 1 and 30 seconds"
            yield invalid_value(f"{where}.timeoutSeconds", seconds, text)
        yield from validate_meta.labels(
            (webhook.get("objectSelector") or {}).get("matchLabels"), f"{where}.objectSelector.matchLabels"
        )
        yield from _client(webhook.get("clientConfig") or {}, f"{where}.clientConfig")
        versions = webhook.get("admissionReviewVersions") or []
        if not versions:
            yield required(f"{where}.admissionReviewVersions", "must specify one of v1, v1beta1")
        elif not set(versions) & {"v1", "v1beta1"}:
            text = "must include at least one of v1, v1beta1"
            yield invalid_value(f"{where}.admissionReviewVersions", versions, text)


def _rule(rule: Mapping[str, Any], where: str) -> Iterator[FieldError]:
    for i, operation in enumerate(rule.get("operations") or ()):
        if operation not in _OPERATIONS:
            yield not_supported(f"{where}.operations[{i}]", operation, _OPERATIONS)
    for name in ("apiGroups", "apiVersions", "resources"):
        if not rule.get(name):
            yield required(f"{where}.{name}")


def _client(config: Mapping[str, Any], where: str) -> Iterator[FieldError]:
    url, target = config.get("url"), config.get("service")
    if (url is None) == (target is None):
        yield required(where, "exactly one of url or service is required")
    elif url is not None:
        scheme = url.partition("://")[0]
        # `inprocess` names a handler of this process, which no other server has.
        if scheme not in ("https", "inprocess"):
            text = "'https' is the only allowed URL scheme; desired format: https://host[/path]"
            yield invalid_value(f"{where}.url", scheme, text)
