"""An admission review answered, against decoding and encoding it alone."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import orjson

from lwskit.admission.webhooks import handlers
from lwskit.api import names
from lwskit.runtime.webhook import Handler, review
from tests.bench import samples
from tests.bench.rounds import Report, medians

REVIEWS = 1000
UID = "705ab4f5-6393-11e8-b7cc-42010a800002"


def leader_worker_set() -> dict[str, Any]:
    """A set whose templates are the sample pod's."""
    template = {"spec": samples.pod(0, 1)["spec"]}
    for field in ("nodeName", "hostname", "subdomain", "priority", "preemptionPolicy"):
        template["spec"].pop(field)
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "sample", "namespace": "team-1", "uid": UID},
        "spec": {
            "replicas": 3,
            "leaderWorkerTemplate": {"size": 4, "leaderTemplate": template, "workerTemplate": template},
        },
    }


def body(obj: dict[str, Any]) -> bytes:
    """The review of an object's creation."""
    group, _, version = obj["apiVersion"].rpartition("/")
    request = {
        "uid": UID,
        "kind": {"group": group, "version": version, "kind": obj["kind"]},
        "resource": {"group": group, "version": version, "resource": f"{obj['kind'].lower()}s"},
        "name": obj["metadata"]["name"],
        "namespace": obj["metadata"]["namespace"],
        "operation": "CREATE",
        "userInfo": {
            "username": "system:serviceaccount:kube-system:statefulset-controller",
            "groups": ["system:masters"],
        },
        "object": obj,
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    return orjson.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request})


def answered(handler: Handler, sent: bytes) -> float:
    """Seconds for answering, decoding and encoding included."""
    began = time.process_time()
    for _ in range(REVIEWS):
        review(handler, sent, "application/json")
    return time.process_time() - began


def turned(sent: bytes) -> float:
    """Seconds for decoding and encoding alone."""
    began = time.process_time()
    for _ in range(REVIEWS):
        orjson.dumps(orjson.loads(sent))
    return time.process_time() - began


def measure(report: Report, rounds: int) -> None:
    """Measure the four webhooks."""
    found = handlers(random.Random(1))
    report.say("admission reviews")
    pod = samples.pod(0, 1)
    del pod["status"], pod["metadata"]["managedFields"], pod["spec"]["nodeName"]
    for text, obj, path in (
        ("defaulting of a set", leader_worker_set(), names.MUTATE_LWS_PATH),
        ("validation of a set", leader_worker_set(), names.VALIDATE_LWS_PATH),
        ("mutation of a pod", pod, names.MUTATE_POD_PATH),
        ("validation of a pod", pod, names.VALIDATE_POD_PATH),
    ):
        sent = body(obj)
        answer = orjson.loads(review(found[path], sent, "application/json")[1])
        assert answer["response"]["allowed"], answer
        measures: dict[str, Callable[[], float]] = {
            "answered": partial(answered, found[path], sent),
            "turned": partial(turned, sent),
        }
        seconds = medians(measures, rounds)
        ratio = seconds["answered"] / seconds["turned"]
        report.ratio(f"{text} ({len(sent)} bytes), per decoding and encoding it with orjson", ratio)


if __name__ == "__main__":
    measure(Report(), 7)
