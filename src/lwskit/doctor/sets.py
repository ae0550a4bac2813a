"""What is known of each DisaggregatedSet, and of the children that it owns. Pure.

Specification: 50 §3, §4, §11.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated import children, revision, scaling, spec
from lwskit.disaggregated.kinds import DISAGGREGATED_SET, ROLE_SCALER
from lwskit.disaggregated.model import Child, Part
from lwskit.disaggregated.spec import SetSpec
from lwskit.doctor.ward import Ward
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.model import DecisionError
from lwskit.runtime.objects import Obj, controller_of, generation_of, is_deleting, is_of, is_true, key_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a set asks for; `error` says why that cannot be told, and then there is nothing else but its children."""

    ds: Obj
    children: tuple[Child, ...] = ()
    spec: SetSpec | None = None
    revision: str = ""
    wanted: Mapping[str, int] = field(default_factory=dict)
    """Groups of each role in a slice, without those roles of which that is not known."""
    unresolved: tuple[Part, ...] = ()
    too_large: Mapping[str, int] = field(default_factory=dict)
    """The roles among those whose sub-roles ask for more groups than there may be, and for how many."""
    scalers: Mapping[str, Part] = field(default_factory=dict)
    """The parts that have scalers, by their scaler's name."""
    conflicts: tuple[Part, ...] = ()
    """The parts whose scaler's name somebody else has."""
    error: str = ""

    @property
    def name(self) -> str:
        """Name of the set."""
        return self.ds["metadata"]["name"]

    @property
    def slices(self) -> int:
        """How many slices the set is to have."""
        return self.spec.slices if self.spec is not None else 0

    @property
    def roles(self) -> frozenset[str]:
        """The names of its roles."""
        return frozenset(role.name for role in self.spec.roles) if self.spec is not None else frozenset()

    @property
    def wanted_names(self) -> frozenset[str]:
        """The names of the children that it is to have."""
        if self.spec is None or not self.revision:
            return frozenset()
        return frozenset(children.names_of(self.spec, self.revision))

    @property
    def at_rest(self) -> bool:
        """Whether it says of its present generation that all is as it should be, so that no rollout is on its way."""
        seen = (self.ds.get("status") or {}).get("observedGeneration", 0)
        return seen >= generation_of(self.ds) and is_true(self.ds, names.CONDITION_AVAILABLE)


def facts(ward: Ward) -> dict[tuple[str, str], Facts]:
    """The facts of every set, by namespace and name."""
    owned: dict[str, list[Child]] = {}
    for lws in ward.of(LEADER_WORKER_SET):
        owner = controller_of(lws)
        if owner is not None and is_of(owner, DISAGGREGATED_SET):
            owned.setdefault(owner["uid"], []).append(Child.of(lws))
    known = {}
    for ds in ward.of(DISAGGREGATED_SET):
        key = key_of(ds)
        known[key.namespace, key.name] = _of(ward, ds, tuple(owned.get(ds["metadata"]["uid"], ())))
    return known


def _of(ward: Ward, ds: Obj, mine: tuple[Child, ...]) -> Facts:
    try:
        read = spec.read(ds)
        staying = [child for child in mine if not child.is_terminating]
    except DecisionError as error:
        return Facts(ds=ds, children=mine, error=str(error))
    current = revision.resolve(ds, mine)
    if current.error:
        return Facts(ds=ds, children=mine, error=current.error)
    wanted = scaling.names_of(read)
    scalers = [s for name in wanted if (s := ward.at(ROLE_SCALER, read.key.namespace, name)) is not None]
    found = scaling.decide(ds, read, staying, scalers)
    if ROLE_SCALER in ward.unread:
        # Then nothing is said of those parts, nor of what they are to have.
        found = scaling.Scaling((), scaling.targets(read, {}), {}, ())
    return Facts(
        ds=ds,
        children=mine,
        spec=read,
        revision=current.revision,
        wanted=found.targets.roles,
        unresolved=() if ROLE_SCALER in ward.unread or is_deleting(ds) else found.targets.unresolved,
        too_large=found.targets.too_large,
        scalers=wanted,
        conflicts=found.foreign,
    )
