"""Admission reviews from a seed: valid ones, changed ones, ones about something else, and bytes that are none."""

from __future__ import annotations

import json
import random
import sys
from dataclasses import dataclass
from typing import Any

from lwskit.admission.sets import defaulted
from lwskit.api import disaggregated_names, names
from tests.fuzz import objects
from tests.fuzz.mutations import TEXTS, mutate, odd

JSON = "application/json"
SETS = (names.MUTATE_LWS_PATH, names.VALIDATE_LWS_PATH)
PODS = (names.MUTATE_POD_PATH, names.VALIDATE_POD_PATH)
PATHS = (*SETS, *PODS, disaggregated_names.VALIDATE_PATH)
OPERATIONS = ("CREATE", "UPDATE", "DELETE", "CONNECT", "", "PATCH", "create")
BROKEN = (
    b"\xff",
    b"NaN",
    b"1e400",
    b'"\\ud800"',
    b"-",
    b"\x00",
    b"[" * 1100,
    b"1" * 400,
    b'{"a":1,"a":2}',
    b"\xef\xbb\xbf",
)

_SETS = [json.dumps(obj) for obj in (*objects.sets(), *(defaulted(lws) for lws in objects.sets()))]
_SET_KIND = (names.GROUP, names.VERSION, names.PLURAL, names.KIND)
_POD_KIND = ("", "v1", "pods", "Pod")
_DISAGGREGATED_KIND = (
    disaggregated_names.GROUP,
    disaggregated_names.VERSION,
    disaggregated_names.PLURAL,
    disaggregated_names.KIND,
)
_SUBJECTS = {
    _SET_KIND: _SETS,
    _POD_KIND: [json.dumps(obj) for obj in objects.pods()],
    _DISAGGREGATED_KIND: [json.dumps(obj) for obj in objects.disaggregated_sets()],
}
"""What can be asked about, by its kind."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request to a webhook."""

    path: str
    body: bytes
    content_type: str = JSON


def review(seed: int, number: int) -> Asked:
    """Review `number` of a seed: always the same."""
    rng = random.Random(f"{seed}/{number}")
    path = rng.choice(PATHS)
    document = _document(rng, path)
    body = _encoded(document, ascii_only=rng.random() < 0.5)
    match rng.randrange(50):
        case 0:
            at = rng.randrange(len(body))
            return Asked(path, body[:at])
        case 1:
            at = rng.randrange(len(body))
            return Asked(path, body[:at] + rng.choice(BROKEN) + body[at + rng.randrange(3) :])
        case 2:
            return Asked(
                path, body, rng.choice(("", "text/plain", "application/json; charset=utf-8", "APPLICATION/JSON"))
            )
        case 3:
            return Asked(path, json.dumps(odd(rng)).encode())
    return Asked(path, body)


def _encoded(document: Any, *, ascii_only: bool) -> bytes:
    """JSON, deeper than Python otherwise goes: changes nest within each other."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    try:
        return json.dumps(document, ensure_ascii=ascii_only, separators=(",", ":")).encode()
    finally:
        sys.setrecursionlimit(limit)


def _document(rng: random.Random, path: str) -> Any:
    subject = _SET_KIND if path in SETS else _POD_KIND if path in PODS else _DISAGGREGATED_KIND
    if rng.random() < 0.03:
        subject = rng.choice([*_SUBJECTS])
    chosen = _SUBJECTS[subject]
    text = rng.choice(chosen)
    obj, old = json.loads(text), None
    operation = "CREATE"
    if rng.random() < 0.45:
        operation = "UPDATE"
        old = json.loads(text if rng.random() < 0.7 else rng.choice(chosen))
        mutate(rng, old, rng.choice((0, 0, 0, 1, 2)))
    mutate(rng, obj, rng.choice((0, 1, 1, 2, 3, 6)))
    group, version, plural, kind = subject
    request = {
        "uid": f"{rng.getrandbits(64):x}",
        "kind": {"group": group, "version": version, "kind": kind},
        "resource": {"group": group, "version": version, "resource": plural},
        "name": "llm",
        "namespace": "ns",
        "operation": operation,
        "userInfo": {"username": "kubernetes-admin", "groups": ["system:masters"]},
        "object": obj,
        "oldObject": old,
        "dryRun": False,
        "options": None,
    }
    document: dict[str, Any] = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    match rng.randrange(25):
        case 0:
            request["operation"] = rng.choice(OPERATIONS)
            if rng.random() < 0.5:
                request["object"], request["oldObject"] = old, obj
        case 1:
            request[rng.choice(list(request))] = odd(rng)
        case 2:
            del request[rng.choice(list(request))]
        case 3:
            document[rng.choice(list(document))] = rng.choice((odd(rng), "admission.k8s.io/v1beta1", rng.choice(TEXTS)))
        case 4:
            del document[rng.choice(list(document))]
    return document
