"""Admission reviews as bytes: asking a handler as an API server would."""

from __future__ import annotations

import base64
import copy
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from lwskit.admission import webhooks
from lwskit.embedded.patch import json_patch
from lwskit.runtime.objects import Obj
from lwskit.runtime.webhook import Handler, review

HANDLERS = webhooks.handlers(random.Random(1))


@dataclass(frozen=True)
class Answer:
    """What a webhook said: whether, with which code and text, and the object with its patch applied."""

    allowed: bool
    code: int
    message: str
    obj: Any
    patch: list[Obj]
    warnings: list[str]


def ask(
    path: str,
    obj: Any,
    old: Any = None,
    *,
    operation: str = "",
    namespace: str = "ns",
    handlers: Mapping[str, Handler] = HANDLERS,
    **request: Any,
) -> Answer:
    """Ask the webhook at `path` about an object; the operation is UPDATE when there is an old one."""
    body: Obj = {
        "uid": "review-uid",
        "operation": operation or ("UPDATE" if old is not None else "CREATE"),
        "namespace": namespace,
        "object": obj,
        **({"oldObject": old} if old is not None else {}),
        **request,
    }
    document = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": body}
    status, answer = review(handlers[path], orjson.dumps(document), "application/json")
    assert status == 200
    decoded = orjson.loads(answer)
    assert (decoded["apiVersion"], decoded["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response = decoded["response"]
    assert response["uid"] == "review-uid"
    patch: list[Obj] = []
    if "patch" in response:
        assert response["patchType"] == "JSONPatch"
        patch = orjson.loads(base64.b64decode(response["patch"]))
    return Answer(
        response["allowed"],
        response["status"]["code"],
        response["status"].get("message", ""),
        json_patch(copy.deepcopy(obj), patch) if patch else obj,
        patch,
        response.get("warnings", []),
    )
