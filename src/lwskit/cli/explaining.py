"""Explanations of sets in a dump or on a cluster."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from lwskit.backends import registry
from lwskit.cli import observed
from lwskit.groups.explain import Explanation, State, explain
from lwskit.runtime.client.client import Client
from lwskit.runtime.clock import RealClock


def from_dump(path: str, namespace: str, name: str) -> Explanation:
    """The explanation of a set in a saved dump. Raises ConfigurationError if it is not there or cannot be read."""
    objects, backends = observed.read_dump(path), registry.find()
    scene = observed.scene_in_dump(objects, path, namespace, name, backends)
    if scene.lws is None:
        raise observed.unknown(name, namespace, observed.names_in(objects, namespace), path)
    now = observed.time_of(objects) or RealClock().now()
    if scene.partial and scene.workload is None:
        return Explanation(
            namespace=namespace,
            name=name,
            state=State.BLOCKED,
            cause="partial-dump",
            sentences=(f"{scene.partial}, so there is no telling how it stands.",),
            advice=(observed.save_again(namespace),),
        )
    return explain(scene, backends.leaders_of(scene.lws), backends.workers, now)


async def from_cluster(
    namespace: str, name: str, kubeconfig: str | None, context: str | None, found: list[Explanation]
) -> None:
    """Add the explanation of a set on a cluster to `found`. Raises ConfigurationError, ApiError, ConnectionFailed.

    When cancelled, the connection is closed.
    """
    async with observed.connected(kubeconfig, context) as client:
        found.append(await on_cluster(client, namespace, name, client.clock.now()))


async def on_cluster(client: Client, namespace: str, name: str, now: datetime) -> Explanation:
    """The explanation of a set on a cluster. Raises ConfigurationError if there is none; ApiError, ConnectionFailed."""
    backends = registry.find()
    scene = await observed.look(client, namespace, name, backends, events=True)
    if scene.lws is None:
        raise observed.unknown(name, namespace, await observed.names_on(client, namespace), "the cluster")
    return explain(scene, backends.leaders_of(scene.lws), backends.workers, now)


def as_data(found: Explanation) -> dict[str, Any]:
    """What the JSON output has of an explanation."""
    return {
        "namespace": found.namespace,
        "name": found.name,
        "state": found.state.value,
        "cause": found.cause,
        "paragraph": found.paragraph,
        "group": found.group,
        "pod": found.pod,
        "waitsFor": found.waits_for,
        "advice": list(found.advice),
        "scaleDown": [{"pod": victim.name, "why": victim.why} for victim in found.next_to_go],
    }
