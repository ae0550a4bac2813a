"""Admission webhooks in this process."""

from __future__ import annotations

import base64
from typing import Any

import orjson
import pytest

from lwskit.runtime.errors import ApiError, Forbidden, InternalError, InvalidRequest
from lwskit.runtime.kinds import (
    CONFIG_MAP,
    MUTATING_WEBHOOK_CONFIGURATION,
    NAMESPACE,
    POD,
    VALIDATING_WEBHOOK_CONFIGURATION,
)

from .serving import client, config_map, pod, server

KINDS = {"mutating": MUTATING_WEBHOOK_CONFIGURATION, "validating": VALIDATING_WEBHOOK_CONFIGURATION}


class Hook:
    """A webhook of one kind that remembers what it was asked."""

    def __init__(self, response: dict[str, Any] | None = None) -> None:
        self.response = response or {"allowed": True}
        self.requests: list[dict[str, Any]] = []

    def __call__(self, review: dict[str, Any]) -> dict[str, Any]:
        self.requests.append(review["request"])
        return {"response": {"uid": review["request"]["uid"], **self.response}}


async def install(api, c, which: str, hook: Hook, **fields: Any) -> None:
    kind = KINDS[which]
    api.register_admission("inprocess:///hook", hook)
    webhook = {
        "name": "hook.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": "inprocess:///hook"},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["*"]}],
        **fields,
    }
    await c.create(
        kind,
        {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "h"}, "webhooks": [webhook]},
    )


def patch(*operations: dict[str, Any]) -> dict[str, Any]:
    raw = base64.b64encode(orjson.dumps(list(operations))).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": raw}


async def test_a_mutating_webhook_changes_the_object():
    api = server()
    c = client(api)
    hook = Hook(patch({"op": "add", "path": "/metadata/labels", "value": {"seen": "yes"}}))
    await install(api, c, "mutating", hook)
    made = await c.create(POD, pod())
    assert made["metadata"]["labels"] == {"seen": "yes"}
    request = hook.requests[0]
    assert request["operation"] == "CREATE"
    assert request["resource"] == {"group": "", "version": "v1", "resource": "pods"}
    assert "uid" not in request["object"]["metadata"]
    assert "f:labels" not in str(made["metadata"]["managedFields"])


async def test_a_refusal_names_the_webhook():
    api = server()
    c = client(api)
    status = {"code": 403, "reason": "Forbidden", "message": "not today"}
    await install(api, c, "validating", Hook({"allowed": False, "status": status}))
    with pytest.raises(Forbidden, match=r'^admission webhook "hook.example.com" denied the request: not today$'):
        await c.create(POD, pod())
    await c.create(CONFIG_MAP, config_map())


async def test_a_webhook_that_fails():
    api = server()
    c = client(api)
    await install(api, c, "validating", Hook(), clientConfig={"url": "inprocess:///nobody"})
    with pytest.raises(InternalError, match=r'Internal error occurred: failed calling webhook "hook.example.com"'):
        await c.create(POD, pod())


async def test_a_webhook_that_may_fail():
    api = server()
    c = client(api)
    await install(api, c, "validating", Hook(), clientConfig={"url": "inprocess:///nobody"}, failurePolicy="Ignore")
    assert await c.create(POD, pod())


@pytest.mark.parametrize(
    ("fields", "asked"),
    [
        ({"objectSelector": {"matchLabels": {"a": "b"}}}, False),
        ({"objectSelector": {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}}, True),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}, False),
        ({"rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["DELETE"]}]}, False),
        (
            {"rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["pods/status"], "operations": ["*"]}]},
            False,
        ),
    ],
)
async def test_rules_and_selectors(fields: dict[str, Any], asked: bool):
    api = server()
    c = client(api)
    hook = Hook()
    await install(api, c, "validating", hook, **fields)
    await c.create(POD, pod())
    assert bool(hook.requests) is asked


async def test_updates_and_deletions_show_the_old_object():
    api = server()
    c = client(api)
    await c.create(POD, pod())
    hook = Hook()
    await install(api, c, "validating", hook)
    await c.patch(POD, "a", {"metadata": {"labels": {"x": "y"}}}, "default")
    await c.delete(POD, "a", "default")
    update, delete = hook.requests
    assert "labels" not in update["oldObject"]["metadata"]
    assert update["object"]["metadata"]["labels"] == {"x": "y"}
    assert delete["operation"] == "DELETE"
    assert delete["object"] is None
    assert delete["oldObject"]["metadata"]["name"] == "a"


async def test_a_dry_run_does_not_reach_a_webhook_with_side_effects():
    api = server()
    c = client(api)
    hook = Hook()
    await install(api, c, "validating", hook, sideEffects="NoneOnDryRun")
    await c.create(POD, pod(), dry_run=True)
    assert hook.requests[0]["dryRun"] is True
    configuration = await c.get(VALIDATING_WEBHOOK_CONFIGURATION, "h")
    entry = api.store.get("admissionregistration.k8s.io/validatingwebhookconfigurations", "h")
    changed = {**configuration, "webhooks": [{**configuration["webhooks"][0], "sideEffects": "Some"}]}
    api.store.update("admissionregistration.k8s.io/validatingwebhookconfigurations", "h", changed, entry)
    with pytest.raises(InvalidRequest, match="does not support dry run"):
        await c.create(POD, pod("b"), dry_run=True)


async def test_a_patch_that_does_not_fit():
    api = server()
    c = client(api)
    await install(api, c, "mutating", Hook(patch({"op": "remove", "path": "/nope"})))
    with pytest.raises(
        ApiError, match=r"error in remove for path: ./nope.: Unable to remove nonexistent key: nope: missing value"
    ):
        await c.create(POD, pod())


async def test_labels_of_the_namespace_object_itself_count():
    api = server()
    c = client(api)
    hook = Hook()
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["namespaces"], "operations": ["CREATE"]}
    await install(api, c, "validating", hook, rules=[rule], namespaceSelector={"matchLabels": {"team": "x"}})
    for name, labels in (("one", {"team": "x"}), ("two", {})):
        meta = {"name": name, "labels": labels}
        await c.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    assert [r["name"] for r in hook.requests] == ["one"]
