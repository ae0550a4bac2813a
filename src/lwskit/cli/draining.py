"""Draining one group on a cluster: look, mark, look again, scale; and take the mark away where that fails."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from lwskit.api import names
from lwskit.backends import registry
from lwskit.cli import observed
from lwskit.groups import drain as drains
from lwskit.groups import ownership
from lwskit.groups.drain import Drain
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.model import DecisionError
from lwskit.groups.scene import Scene
from lwskit.runtime.client.client import Client
from lwskit.runtime.errors import ConfigurationError, Conflict, LwskitError, NotFound, another_uid_conflicts
from lwskit.runtime.kinds import POD
from lwskit.runtime.objects import version_of

_ATTEMPTS = 5
"""How often scaling is tried when the set is written by others at the same time."""


async def found_on(
    namespace: str, name: str, kubeconfig: str | None, context: str | None, found: list[tuple[str, Drain]]
) -> None:
    """Add the set's name, and how to drain the group that is called `name`, to `found`.

    Raises DecisionError where it cannot be; ConfigurationError, ApiError, ConnectionFailed. When cancelled, the
    connection is closed.
    """
    async with observed.connected(kubeconfig, context) as client:
        found.append(await look(client, namespace, name, client.clock.now()))


async def carried_out_on(
    namespace: str, of_set: str, drain: Drain, kubeconfig: str | None, context: str | None
) -> None:
    """Drain a group on a cluster; see `carry_out`. When cancelled, the mark is taken away and the connection closed."""
    async with observed.connected(kubeconfig, context) as client:
        await carry_out(client, namespace, of_set, drain, client.clock.now)


async def look(client: Client, namespace: str, name: str, now: datetime) -> tuple[str, Drain]:
    """The set of the group that is called `name`, and how to drain it.

    Raises DecisionError where it cannot be drained, ConfigurationError, ApiError and ConnectionFailed.
    """
    leader = drains.find(await observed.leaders_on(client, namespace), name)
    of_set = ownership.set_name(leader)
    return of_set, drains.decide(await _scene(client, namespace, of_set), leader, now)


async def carry_out(client: Client, namespace: str, of_set: str, drain: Drain, now: Callable[[], datetime]) -> None:
    """Mark the group, make sure that it is the one to go, and scale the set down by one.

    Raises DecisionError where it is not any more, ConfigurationError, ApiError and ConnectionFailed. Whatever ends this
    before the set is scaled, cancellation too, takes the mark away first.
    """
    if drain.cost is not None:
        try:
            with another_uid_conflicts():
                await client.patch(POD, drain.name, drain.marking(str(drain.cost)), namespace)
        except (NotFound, Conflict) as error:
            raise DecisionError(f"leader pod {drain.name} is gone") from error
    try:
        await _scale(client, namespace, of_set, drain, now)
    except BaseException as failure:
        if drain.cost is not None:
            await _unmark(client, namespace, drain, failure)
        raise


async def _scale(client: Client, namespace: str, of_set: str, drain: Drain, now: Callable[[], datetime]) -> None:
    for attempt in range(_ATTEMPTS):
        scene = await _scene(client, namespace, of_set)
        drains.check(drain, scene, now())
        assert scene.lws is not None
        body: dict[str, Any] = {
            "metadata": {"resourceVersion": version_of(scene.lws)},
            "spec": {"replicas": drain.after},
        }
        try:
            await client.patch(LEADER_WORKER_SET, of_set, body, namespace, subresource="scale")
        except Conflict:
            # Somebody wrote the set, perhaps only its status: what is decided has to be looked at again.
            if attempt == _ATTEMPTS - 1:
                raise
        else:
            return


async def _unmark(client: Client, namespace: str, drain: Drain, failure: BaseException) -> None:
    """Take the mark away again. Raises ConfigurationError with the command that does it where that fails too."""
    try:
        with another_uid_conflicts():
            await client.patch(POD, drain.name, drain.unmarking, namespace)
    except (NotFound, Conflict):
        # The pod is gone, or another one of its name is there.
        return
    except LwskitError as error:
        command = f"kubectl -n {namespace} annotate pod {drain.name} {names.POD_DELETION_COST_ANNOTATION}-"
        raise ConfigurationError(
            f"{failure}; and the deletion cost of pod {drain.name} could not be taken away ({error}): `{command}`"
        ) from failure


async def _scene(client: Client, namespace: str, of_set: str) -> Scene:
    return await observed.look(client, namespace, of_set, registry.find())


def told(namespace: str, of_set: str, drain: Drain) -> str:
    """What draining does, in one sentence."""
    mark = f"mark pod {drain.name} with deletion cost {drain.cost}, and " if drain.cost is not None else ""
    scale = f"scale {namespace}/{of_set} from {drain.before} to {drain.after}"
    return f"{mark}{scale}: the group of {drain.name} goes ({drain.why})"
