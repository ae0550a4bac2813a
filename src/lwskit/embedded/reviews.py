"""Reviews of tokens and access: everybody who got in may do everything.

Source: API reference, authentication.k8s.io/v1 and authorization.k8s.io/v1.
"""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any

from lwskit.embedded.backend import Backend
from lwskit.embedded.call import Call
from lwskit.runtime.clock import rfc3339
from lwskit.runtime.objects import Obj

_GROUPS = ["system:masters", "system:authenticated"]


def answer(b: Backend, call: Call, body: Obj) -> Obj:
    """The review with its status filled in."""
    kind = call.resource.kind
    obj: Obj = {"kind": kind, "apiVersion": call.resource.api_version, "metadata": body.get("metadata") or {}}
    obj["spec"] = body.get("spec") or {}
    match kind:
        case "TokenReview":
            obj["status"] = _token_status(b, obj["spec"])
        case "SelfSubjectReview":
            obj.pop("spec")
            obj["status"] = {"userInfo": {"username": call.user, "groups": list(_GROUPS)}}
        case "SelfSubjectRulesReview":
            obj["status"] = {
                "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                "incomplete": False,
            }
        case "Binding":
            obj["status"] = {}
        case _:
            obj["status"] = {"allowed": True}
    return obj


def _token_status(b: Backend, spec: dict[str, Any]) -> Obj:
    user = b.tokens.get(spec.get("token", ""))
    if user is None:
        return {"user": {}, "error": "invalid bearer token"}
    return {"authenticated": True, "user": {"username": user, "groups": list(_GROUPS)}}


def token_request(b: Backend, call: Call) -> Obj:
    """A token for a service account; it is good for this server only."""
    token = base64.urlsafe_b64encode(b.rng.randbytes(32)).decode().rstrip("=")
    b.tokens[token] = f"system:serviceaccount:{call.namespace}:{call.name}"
    expires = rfc3339(b.clock.now() + timedelta(hours=1))
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": call.name, "namespace": call.namespace, "creationTimestamp": b.now()},
        "spec": {"audiences": ["https://kubernetes.default.svc"], "expirationSeconds": 3600},
        "status": {"token": token, "expirationTimestamp": expires},
    }
