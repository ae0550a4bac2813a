"""Admission webhooks: asks those that the stored configurations name, mutating ones first.

Source: Kubernetes documentation, "Dynamic Admission Control".
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from lwskit.embedded import patch as patches
from lwskit.embedded.resources import Registry, Resource
from lwskit.embedded.store import Store, key
from lwskit.embedded.webhook_call import Caller, CallError, Handler, read_patch
from lwskit.embedded.webhook_rules import Attributes, matching_version, review, selected
from lwskit.runtime.clock import random_uuid
from lwskit.runtime.errors import ApiError, InternalError, InvalidRequest, error_from_status
from lwskit.runtime.objects import Obj

GROUP = "admissionregistration.k8s.io"
MUTATING = f"{GROUP}/mutatingwebhookconfigurations"
VALIDATING = f"{GROUP}/validatingwebhookconfigurations"
_TIMEOUT = 10

__all__ = ["Admission", "Attributes", "Handler"]


class Admission:
    """Calls the webhooks that the stored configurations name."""

    def __init__(self, store: Store, registry: Registry, rng: random.Random) -> None:
        self._store = store
        self._registry = registry
        self._rng = rng
        self._caller = Caller(lambda namespace, name: store.get("/services", key(namespace, name)) is not None)

    def register(self, target: str, handler: Handler) -> None:
        """Answer calls to a URL, or to `namespace/name/path` of a service, by a function in this process."""
        self._caller.register(target, handler)

    async def close(self) -> None:
        """Close connections to webhook servers."""
        await self._caller.close()

    def _webhooks(
        self, table: str, attributes: Attributes, obj: Obj | None, old: Obj | None
    ) -> Iterator[tuple[Mapping[str, Any], Resource]]:
        """The webhooks that want this request, in order, and the version that each wants to see."""
        if attributes.resource.group == GROUP or not attributes.resource.stored:
            return
        entries = self._store.list(table)
        if not entries:
            return
        labels = self._namespace_labels(attributes, obj, old)
        resource = attributes.resource
        versions = self._registry.versions_of(resource.group, resource.plural)
        for entry in entries:
            for webhook in entry.obj.get("webhooks") or ():
                seen = matching_version(webhook, attributes, versions)
                if seen is not None and selected(webhook, attributes, labels, (obj, old)):
                    yield webhook, seen

    def _namespace_labels(self, attributes: Attributes, obj: Obj | None, old: Obj | None) -> Mapping[str, str] | None:
        if attributes.resource.storage == "/namespaces":
            return ((obj or old or {}).get("metadata") or {}).get("labels") or {}
        if not attributes.resource.namespaced:
            return None
        entry = self._store.get("/namespaces", attributes.namespace)
        return {} if entry is None else entry.obj["metadata"].get("labels") or {}

    async def mutate(self, attributes: Attributes, obj: Obj | None, old: Obj | None) -> Obj | None:
        """The object after all mutating webhooks; the same object when none changed it.

        Raises the ApiError of a refusal or of a webhook that failed and must not.
        """
        for webhook, seen in self._webhooks(MUTATING, attributes, obj, old):
            response = await self._ask(webhook, seen, attributes, obj, old)
            if response is None or obj is None:
                continue
            try:
                operations = read_patch(response)
                if operations:
                    version = obj["apiVersion"]
                    copy = orjson.loads(orjson.dumps(_as_version(obj, seen)))
                    obj = {**patches.json_patch(copy, operations), "apiVersion": version}
            except patches.PatchError as e:
                raise InternalError(f"Internal error occurred: {e}", details={"causes": [{"message": str(e)}]}) from e
            except CallError as e:
                if webhook.get("failurePolicy") != "Ignore":
                    raise _failed(webhook["name"], str(e)) from e
        return obj

    async def validate(self, attributes: Attributes, obj: Obj | None, old: Obj | None) -> None:
        """Ask the validating webhooks. Raises the ApiError of a refusal or of a webhook that failed and must not."""
        for webhook, seen in self._webhooks(VALIDATING, attributes, obj, old):
            await self._ask(webhook, seen, attributes, obj, old)

    async def _ask(
        self, webhook: Mapping[str, Any], seen: Resource, attributes: Attributes, obj: Obj | None, old: Obj | None
    ) -> dict[str, Any] | None:
        """The webhook's response; None when it failed and may."""
        name = webhook["name"]
        if attributes.dry_run and webhook.get("sideEffects") not in ("None", "NoneOnDryRun"):
            raise InvalidRequest(f'admission webhook "{name}" does not support dry run')
        body = review(random_uuid(self._rng), attributes, seen, _as_version(obj, seen), _as_version(old, seen))
        try:
            response = await self._caller.call(
                webhook.get("clientConfig") or {}, body, webhook.get("timeoutSeconds") or _TIMEOUT
            )
        except CallError as e:
            if webhook.get("failurePolicy") == "Ignore":
                return None
            raise _failed(name, str(e)) from e
        attributes.warnings.extend(response.get("warnings") or ())
        if not response.get("allowed"):
            raise denial(name, response.get("status") or {})
        return response


def _as_version(obj: Obj | None, seen: Resource) -> Obj | None:
    if obj is None or obj.get("apiVersion") == seen.api_version:
        return obj
    return {**obj, "apiVersion": seen.api_version}


def _failed(name: str, text: str) -> InternalError:
    message = f'failed calling webhook "{name}": {text}'
    return InternalError(f"Internal error occurred: {message}", details={"causes": [{"message": message}]})


def denial(name: str, status: Mapping[str, Any]) -> ApiError:
    """The refusal that a webhook's status is, with the webhook's name before its text."""
    denied = f'admission webhook "{name}" denied the request'
    text = status.get("message") or status.get("reason")
    code = int(status.get("code") or 0)
    code = code if code >= 400 else 400
    message = f"{denied}: {text}" if text else f"{denied} without explanation"
    error = error_from_status({**status, "message": message, "code": code}, code)
    # What the webhook did not say is not made up.
    error.reason = status.get("reason") or ""
    return error
