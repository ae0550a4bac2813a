"""One look at a cluster: everything that is found, in the order of the report. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lwskit.backends.registry import Backends
from lwskit.disaggregated.kinds import DISAGGREGATED_SET
from lwskit.doctor import children, owners, sets
from lwskit.doctor.findings import CODES, NO_OWNER, SCALER_CONFLICT, Finding
from lwskit.doctor.serving import Serving
from lwskit.doctor.ward import Ward
from lwskit.groups.kinds import LEADER_WORKER_SET


@dataclass(frozen=True, slots=True)
class Report:
    """What was found, and how much was looked at; `unread` are sentences about what could not be."""

    findings: tuple[Finding, ...]
    disaggregated: int
    sets: int
    unread: tuple[str, ...] = ()

    def lasting(self, later: Report) -> Report:
        """A later report without what passes by itself and was not there before."""
        known = {finding.identity for finding in self.findings}
        kept = (f for f in later.findings if not f.passes or f.identity in known)
        return replace(later, findings=tuple(kept))


def examine(ward: Ward, backends: Backends, unread: tuple[str, ...] = ()) -> Report:
    """Everything that a person should know of a cluster's sets."""
    facts = sets.facts(ward)
    found = [
        *children.unwanted(ward, facts),
        *children.scalers(ward, facts),
        *owners.without_owner(ward),
        *owners.not_deleted(ward),
        *Serving(ward, backends).findings(facts),
    ]
    # What stands in the way of a set is told once, with what it is in the way of.
    taken = {(f.kind, f.namespace, f.name) for f in found if f.code == SCALER_CONFLICT}
    found = [f for f in found if f.code != NO_OWNER or (f.kind, f.namespace, f.name) not in taken]
    found.sort(key=lambda f: (CODES.index(f.code), f.namespace, f.name, f.about))
    return Report(tuple(found), len(ward.of(DISAGGREGATED_SET)), len(ward.of(LEADER_WORKER_SET)), unread)
