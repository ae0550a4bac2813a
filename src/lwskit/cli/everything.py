"""Everything of a cluster's namespaces that has to do with sets: what `doctor`, and for DisaggregatedSets `plan` and
`explain`, look at."""

from __future__ import annotations

from dataclasses import dataclass, field

from lwskit.api import disaggregated_names, names
from lwskit.disaggregated.kinds import DISAGGREGATED_SET, ROLE_SCALER
from lwskit.doctor.ward import KINDS
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.client.client import Client
from lwskit.runtime.errors import ConfigurationError, Forbidden, NotFound
from lwskit.runtime.kinds import EVENT, NODE, SERVICE, Kind
from lwskit.runtime.objects import Obj, uid_of

OWN = (LEADER_WORKER_SET, DISAGGREGATED_SET, ROLE_SCALER)
"""Kinds all of whose objects are looked at; of others those with a set's label."""


@dataclass(slots=True)
class Read:
    """What was read. `unread` are the kinds that may not be, with why; `blind` is why events are not known."""

    objects: list[Obj] = field(default_factory=list)
    unread: dict[Kind, Forbidden] = field(default_factory=dict)
    blind: str = ""

    @property
    def told(self) -> tuple[str, ...]:
        """What could not be read, in sentences."""
        kinds = (f"{kind.plural} could not be read ({error})" for kind, error in self.unread.items())
        return tuple(filter(None, (self.blind, *kinds)))


async def read(client: Client, namespace: str | None) -> Read:
    """All of a namespace, or of every one. Dependents are read before their owners.

    Raises ConfigurationError where the cluster does not know LeaderWorkerSets, Forbidden where these may not be read,
    ApiError and ConnectionFailed. Cancelled, it reads no more.
    """
    found = Read()
    try:
        found.objects += await client.list_all(EVENT, namespace)
    except Forbidden as error:
        found.blind = f"events could not be read ({error})"
    for kind in KINDS:
        try:
            found.objects += await _listed(client, kind, namespace)
        except Forbidden as error:
            if kind == LEADER_WORKER_SET:
                raise
            found.unread[kind] = error
        except NotFound:
            # Without the API of DisaggregatedSets there are none; without the other there is nothing to look at.
            if kind == LEADER_WORKER_SET:
                raise ConfigurationError(
                    f"the cluster has no {kind.qualified}; is its CustomResourceDefinition installed?"
                ) from None
    try:
        found.objects += await client.list_all(NODE)
    except Forbidden:
        # An explanation without them says a little less.
        pass
    return found


async def _listed(client: Client, kind: Kind, namespace: str | None) -> list[Obj]:
    """The objects of a kind that have to do with sets."""
    if kind in OWN:
        return await client.list_all(kind, namespace)
    found = await client.list_all(kind, namespace, label_selector=names.NAME_LABEL)
    if kind != SERVICE:
        return found
    known = {uid_of(service) for service in found}
    of_roles = await client.list_all(kind, namespace, label_selector=disaggregated_names.NAME_LABEL)
    return [*found, *(service for service in of_roles if uid_of(service) not in known)]
