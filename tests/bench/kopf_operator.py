"""An operator on kopf that does what the benchmark's controller does, run by a Python that has kopf.

python kopf_operator.py SERVER EVENTS: three indexes and a handler of pods' events; prints the processor seconds from
the first call of the handler to the last, and how many events lay between them.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from typing import Any

import kopf  # type: ignore[import-not-found]

SERVER, EVENTS = sys.argv[1], int(sys.argv[2])
OPERATOR = kopf.OperatorRegistry()
asked: set[tuple[str, str]] = set()
progress: dict[str, Any] = {"seen": 0, "began": 0.0}


@kopf.on.login(registry=OPERATOR)
def login(**_: Any) -> Any:
    return kopf.ConnectionInfo(server=SERVER)


@kopf.on.startup(registry=OPERATOR)
def configure(settings: Any, **_: Any) -> None:
    settings.posting.enabled = False
    settings.scanning.disabled = True


@kopf.index("pods", registry=OPERATOR)
async def by_node(spec: Any, name: str, **_: Any) -> Any:
    return {spec.get("nodeName"): name}


@kopf.index("pods", registry=OPERATOR)
async def by_set(labels: Any, name: str, **_: Any) -> Any:
    return {labels.get("leaderworkerset.sigs.k8s.io/name"): name}


@kopf.index("pods", registry=OPERATOR)
async def by_group(labels: Any, name: str, **_: Any) -> Any:
    return {labels.get("leaderworkerset.sigs.k8s.io/group-key"): name}


@kopf.on.event("pods", registry=OPERATOR)
async def changed(meta: Any, namespace: str, **_: Any) -> None:
    if not progress["seen"]:
        progress["began"] = time.process_time()
    progress["seen"] += 1
    for owner in meta.get("ownerReferences", ()):
        if owner.get("controller"):
            asked.add((namespace, owner["name"]))
    if progress["seen"] == EVENTS:
        print(json.dumps({"seconds": time.process_time() - progress["began"], "events": EVENTS - 1}), flush=True)
        os._exit(0)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    kopf.run(registry=OPERATOR, standalone=True, clusterwide=True)
