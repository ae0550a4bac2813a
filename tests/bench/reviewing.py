"""Admission reviews answered, against decoding and encoding them alone; our JSON patches against jsonpatch's."""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import jsonpatch
import orjson

from lwskit.admission.sets import defaulted
from lwskit.admission.webhooks import handlers
from lwskit.api import names
from lwskit.runtime.patch import json_patch
from lwskit.runtime.webhook import Handler, review
from tests.bench import samples
from tests.bench.rounds import Report, medians

REVIEWS = 1000
MOST = 6
"""Times that answering a review may take as long as decoding and encoding it."""
UID = "705ab4f5-6393-11e8-b7cc-42010a800002"
Object = dict[str, Any]


def leader_worker_set() -> Object:
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


def smallest_set() -> Object:
    """A set with nothing that could be left out."""
    template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "s", "namespace": "n"},
        "spec": {"leaderWorkerTemplate": {"workerTemplate": template}},
    }


def misspelled_set() -> Object:
    """The sample set with quantities that are not as the API writes them."""
    lws = copy.deepcopy(leader_worker_set())
    for template in ("leaderTemplate", "workerTemplate"):
        for container in lws["spec"]["leaderWorkerTemplate"][template]["spec"]["containers"]:
            container["resources"] = {"limits": {"cpu": "8000m", "memory": "65536Mi"}, "requests": {"cpu": "0.5"}}
    return lws


def new_pod(number: int, *, exclusive: bool) -> Object:
    """A pod as a StatefulSet makes it; number 0 is a leader, others are workers."""
    pod = samples.pod(number, 1)
    del pod["status"], pod["metadata"]["managedFields"], pod["spec"]["nodeName"]
    for container in pod["spec"]["containers"]:
        container["env"] = [entry for entry in container["env"] if not entry["name"].startswith("LWS_")]
    labels, notes = pod["metadata"]["labels"], pod["metadata"]["annotations"]
    if number == 0:
        del labels[names.GROUP_INDEX_LABEL], labels[names.GROUP_KEY_LABEL]
    else:
        del labels[names.WORKER_INDEX_LABEL]
        notes[names.LEADER_NAME_ANNOTATION] = "set-0-0"
    if exclusive:
        notes[names.EXCLUSIVE_TOPOLOGY_ANNOTATION] = "rack"
        notes[names.SUBGROUP_SIZE_ANNOTATION] = "2"
        notes[names.SUBGROUP_EXCLUSIVE_TOPOLOGY_ANNOTATION] = "host"
    return pod


def body(obj: Object, old: Object | None = None) -> bytes:
    """The review of an object's creation, or of a change of `old`."""
    group, _, version = obj["apiVersion"].rpartition("/")
    request = {
        "uid": UID,
        "kind": {"group": group, "version": version, "kind": obj["kind"]},
        "resource": {"group": group, "version": version, "resource": f"{obj['kind'].lower()}s"},
        "name": obj["metadata"]["name"],
        "namespace": obj["metadata"]["namespace"],
        "operation": "UPDATE" if old else "CREATE",
        "userInfo": {
            "username": "system:serviceaccount:kube-system:statefulset-controller",
            "groups": ["system:masters"],
        },
        "object": obj,
        "oldObject": old,
        "dryRun": False,
        "options": {"kind": "UpdateOptions" if old else "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    return orjson.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request})


def timed(work: Callable[[], Any]) -> float:
    """Seconds for so many times of some work."""
    began = time.process_time()
    for _ in range(REVIEWS):
        work()
    return time.process_time() - began


def answered(handler: Handler, sent: bytes) -> float:
    """Seconds for answering, decoding and encoding included."""
    return timed(lambda: review(handler, sent, "application/json"))


def turned(sent: bytes) -> float:
    """Seconds for decoding and encoding alone."""
    return timed(lambda: orjson.dumps(orjson.loads(sent)))


def cases() -> list[tuple[str, str, bytes]]:
    """What is measured: its description, the webhook's path and the review."""
    found: list[tuple[str, str, bytes]] = []
    for text, lws in (("a set", leader_worker_set()), ("the smallest set", smallest_set())):
        stored = defaulted(lws)
        scaled = {**stored, "spec": {**stored["spec"], "replicas": 5}}
        for what, path in (("defaulting", names.MUTATE_LWS_PATH), ("validation", names.VALIDATE_LWS_PATH)):
            found.append((f"{what} of {text}", path, body(lws)))
            found.append((f"{what} of a change of {text}", path, body(scaled, stored)))
    lws = misspelled_set()
    found.append(("defaulting of a set with quantities to respell", names.MUTATE_LWS_PATH, body(lws)))
    found.append(("… of a change to such", names.MUTATE_LWS_PATH, body(lws, defaulted(leader_worker_set()))))
    for text, number, exclusive in (
        ("a leader", 0, False),
        ("a worker", 1, False),
        ("a leader with sub-groups, exclusively placed", 0, True),
        ("a worker with sub-groups, exclusively placed", 1, True),
    ):
        found.append((f"mutation of {text}", names.MUTATE_POD_PATH, body(new_pod(number, exclusive=exclusive))))
    pod = samples.pod(0, 1)
    found.append(("validation of a pod", names.VALIDATE_POD_PATH, body(pod)))
    found.append(("validation of a change of a pod", names.VALIDATE_POD_PATH, body(pod, samples.pod(0, 2))))
    return found


def differences(report: Report, rounds: int) -> None:
    """Our JSON patch against that of jsonpatch, for objects that share what stays, and for copies."""
    changes = {"a set": (leader_worker_set(), defaulted(leader_worker_set()))}
    pod = samples.pod(0, 1)
    changed = copy.deepcopy(pod)
    changed["metadata"]["labels"]["example.com/more"] = "1"
    changed["spec"]["containers"][0]["env"].insert(0, {"name": "FIRST", "value": "1"})
    changes["a copied pod"] = (pod, changed)
    for text, (old, new) in changes.items():
        assert jsonpatch.apply_patch(old, json_patch(old, new)) == new
        theirs = partial(timed, lambda old=old, new=new: jsonpatch.make_patch(old, new).patch)
        ours = partial(timed, lambda old=old, new=new: json_patch(old, new))
        seconds = medians({"theirs": theirs, "ours": ours}, rounds)
        report.ratio(f"jsonpatch's difference of {text}, per ours", seconds["theirs"] / seconds["ours"], least=2)


def measure(report: Report, rounds: int) -> None:
    """Measure the four webhooks and the patches that they answer with."""
    found = handlers(random.Random(1))
    report.say("admission reviews, per decoding and encoding them with orjson")
    for text, path, sent in cases():
        answer = orjson.loads(review(found[path], sent, "application/json")[1])
        assert answer["response"]["allowed"], answer
        measures = {"answered": partial(answered, found[path], sent), "turned": partial(turned, sent)}
        seconds = medians(measures, rounds)
        report.ratio(f"{text} ({len(sent)} bytes)", seconds["answered"] / seconds["turned"], most=MOST)
    differences(report, rounds)


if __name__ == "__main__":
    measure(Report(), 7)
