"""Linting a text: what is found, as codes and places."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import yaml

from lwskit.api.validation import SchedulingSupport
from lwskit.lint.check import Report, Source, lint, stored
from lwskit.lint.findings import Finding
from lwskit.lint.server import Server
from lwskit.runtime.objects import Obj
from tests.dsobjects import ds, role

NAME = "set.yaml"


@lru_cache(maxsize=1)
def server() -> Server:
    """The one server of all tests: it keeps nothing of what it is asked."""
    return Server()


@lru_cache(maxsize=1)
def gated() -> Server:
    """A server whose manager has the gate for sets with `spec.scheduling`."""
    return Server(SchedulingSupport(gate=True, provider="kubernetes"))


def report(text: str, old: str = "") -> Report:
    """The report on one file, with the sets of another as those that are there."""
    known = stored([Source("old.yaml", old)], server(), "default") if old else {}
    return lint([Source(NAME, text)], server(), known, "default")


def findings(text: str, old: str = "") -> list[Finding]:
    """What is found in one file."""
    return report(text, old).findings


def codes(text: str, old: str = "") -> list[str]:
    """The codes of what is found."""
    return [f.fault.code.code for f in findings(text, old)]


def only(code: str, text: str, old: str = "") -> Finding:
    """The one finding of a code."""
    (found,) = (f for f in findings(text, old) if f.fault.code.code == code)
    return found


def of_kind(code: str, text: str, old: str = "") -> list[str]:
    """The paths of the findings of a code."""
    return [f.fault.path for f in findings(text, old) if f.fault.code.code == code]


def lws(
    name: str = "llm",
    *,
    meta: Obj | None = None,
    worker: Obj | None = None,
    worker_meta: Obj | None = None,
    leader: Obj | None = None,
    leader_meta: Obj | None = None,
    container: Obj | None = None,
    rolling: Obj | None = None,
    template: Obj | None = None,
    **spec: object,
) -> str:
    """A set as YAML that nothing is found in, unless an argument changes that: 2 groups of 3 pods."""
    pod = {"containers": [{"name": "main", "image": "img:v1", **(container or {})}]}
    leader_worker: Obj = {"size": 3, "workerTemplate": {"spec": {**pod, **(worker or {})}}, **(template or {})}
    if worker_meta:
        leader_worker["workerTemplate"]["metadata"] = worker_meta
    if leader is not None or leader_meta:
        leader_worker["leaderTemplate"] = {"spec": {**pod, **(leader or {})}}
        if leader_meta:
            leader_worker["leaderTemplate"]["metadata"] = leader_meta
    document = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name, **(meta or {})},
        "spec": {"replicas": 2, "leaderWorkerTemplate": leader_worker, **spec},
    }
    if rolling is not None:
        document["spec"]["rolloutStrategy"] = {"type": "RollingUpdate", "rollingUpdateConfiguration": rolling}
    return yaml.safe_dump(document, sort_keys=False)


def disaggregated(*roles: Obj, name: str = "chat", **spec: Any) -> str:
    """A DisaggregatedSet as YAML that nothing is found in, unless an argument changes that: two roles of two groups."""
    return yaml.safe_dump(ds(*(roles or (role(replicas=2), role("decode", replicas=2))), name=name, **spec))
