"""What does not serve: roles and sets without a ready group, sets that go on only if somebody does something. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lwskit.api import disaggregated_names, names
from lwskit.backends.registry import Backends
from lwskit.disaggregated import scaling
from lwskit.disaggregated.children import name_of, refusal
from lwskit.disaggregated.kinds import DISAGGREGATED_SET
from lwskit.doctor import findings
from lwskit.doctor.findings import Finding, found
from lwskit.doctor.sets import Facts
from lwskit.doctor.ward import Owner, Ward
from lwskit.groups import scene, spec
from lwskit.groups.explain import explain
from lwskit.groups.explanation import Explanation, State
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import POD, REPLICA_SET, Kind
from lwskit.runtime.objects import Obj, generation_of, is_deleting, uid_of


class Serving:
    """A look at which sets and roles serve. Each LeaderWorkerSet is explained once, and only if it does not."""

    def __init__(self, ward: Ward, backends: Backends) -> None:
        self._ward, self._backends = ward, backends
        self._told: set[str] = set()

    def findings(self, facts: dict[tuple[str, str], Facts]) -> Iterator[Finding]:
        """Roles first, then the sets that no role has been told for."""
        for known in facts.values():
            if not is_deleting(known.ds):
                yield from self._of_set(known)
        for lws in self._ward.of(LEADER_WORKER_SET):
            if not is_deleting(lws) and uid_of(lws) not in self._told:
                yield from self._alone(lws)

    # DisaggregatedSets ------------------------------------------------------------------------------------------------

    def _of_set(self, known: Facts) -> Iterator[Finding]:
        seen, wanted = (known.ds.get("status") or {}).get("observedGeneration", 0), generation_of(known.ds)
        if known.error:
            hint = "put the set right; `lwskit lint` says what it may be"
            yield found(findings.UNDECIDABLE, DISAGGREGATED_SET, known.ds, f"cannot be acted on: {known.error}", hint)
            return
        if seen < wanted:
            text = f"is at generation {wanted}, of which the manager has acted on {seen or 'none'}"
            hint = "see whether the manager runs, and what it logs of the set"
            yield found(findings.NOT_OBSERVED, DISAGGREGATED_SET, known.ds, text, hint, passes=True)
        for role in known.too_large.items():
            text = f"cannot be acted on: {scaling.said_of_sum(role)}, so that the manager changes no group of it"
            hint = f"ask for fewer in role {role[0]}"
            yield found(findings.UNDECIDABLE, DISAGGREGATED_SET, known.ds, text, hint, about=role[0])
        missing = (part for part in known.unresolved if part.role not in known.too_large)
        waiting = [str(part) for part in missing if part not in known.conflicts]
        if waiting:
            text = f"has no scaler for {', '.join(waiting)}, so that the manager changes no group of it"
            hint = f"see what keeps the scaler: `kubectl -n {known.ds['metadata']['namespace']} get {_SCALERS}`"
            yield found(findings.UNDECIDABLE, DISAGGREGATED_SET, known.ds, text, hint, passes=True, about="scalers")
        for index in range(known.slices):
            for role, count in known.wanted.items():
                yield from self._role(known, index, role, count)

    def _role(self, known: Facts, index: int, role: str, wanted: int) -> Iterator[Finding]:
        """Whether a role that should have groups in a slice has one that is ready, of any revision, and gets others."""
        mine = [c for c in known.children if (c.slice, c.role) == (index, role) and not c.is_terminating]
        serves = wanted == 0 or any(_ready(c.obj) for c in mine)
        where = f" in slice {index}" if known.slices > 1 else ""
        about, hint = f"{index}/{role}", _ask(f"ds/{known.name}", known.ds)
        text = f"has no ready group of role {role}{where}, which should have {wanted}"
        said = self._unmade(known, index, role)
        if said and not any(c.revision == known.revision for c in mine):
            code = findings.BLOCKED if serves else findings.ROLE_NOT_READY
            text = f"goes no further with role {role}{where}" if serves else text
            yield found(code, DISAGGREGATED_SET, known.ds, f"{text}: {said}", hint, about=about)
            return
        if serves:
            return
        newest = max(mine, key=lambda c: (c.revision == known.revision, c.replicas > 0, c.created), default=None)
        if newest is None:
            text += f": there is no {names.KIND} for it"
            yield found(findings.ROLE_NOT_READY, DISAGGREGATED_SET, known.ds, text, hint, passes=True, about=about)
            return
        self._told |= {c.uid for c in mine}
        why = self._explained(newest.obj)
        yield self._finding(findings.ROLE_NOT_READY, known.ds, text, why, newest.obj, DISAGGREGATED_SET.kind, about)

    def _unmade(self, known: Facts, index: int, role: str) -> str:
        """Why the LeaderWorkerSet of a role could not be made, if an event of the set says so."""
        told = self._ward.events.get((known.ds["metadata"]["namespace"], known.name), ())
        return refusal(told, name_of(known.name, index, known.revision, role))

    # LeaderWorkerSets -------------------------------------------------------------------------------------------------

    def _alone(self, lws: Obj) -> Iterator[Finding]:
        wanted = spec.replicas(lws)
        state, owner, _ = self._ward.owner(lws)
        if state in (Owner.GONE, Owner.REPLACED):
            return
        # While its role is served by others, a child that starts is a rollout on its way.
        is_child = state is Owner.THERE and owner == DISAGGREGATED_SET
        if wanted and not _ready(lws) and not is_child:
            text = f"has no ready group, and should have {wanted}"
            yield self._finding(findings.SET_NOT_READY, lws, text, self._explained(lws), lws, names.KIND)
            return
        if (lws.get("status") or {}).get("observedGeneration") == generation_of(lws) and _all_ready(lws, wanted):
            return
        why = self._explained(lws)
        if why is not None and why.state is State.BLOCKED:
            yield self._finding(findings.BLOCKED, lws, f"is blocked ({why.cause})", why, lws, names.KIND)

    def _finding(
        self, code: str, obj: Obj, text: str, why: Explanation | None, lws: Obj, kind: str, about: str = ""
    ) -> Finding:
        meta, blocked = obj["metadata"], why is not None and why.state is State.BLOCKED
        cause = _cause(why) if why is not None else ""
        if cause and obj is not lws:
            cause = f"{names.KIND} {lws['metadata']['name']}: {cause}"
        advice = why.advice[0] if why is not None and why.advice else ""
        hint = advice or _ask(lws["metadata"]["name"], lws)
        message = f"{text}: {cause}" if cause else text
        return Finding(code, kind, meta["namespace"], meta["name"], message, hint, passes=not blocked, about=about)

    def _explained(self, lws: Obj) -> Explanation | None:
        """Why a set is where it is; None where what would tell was not read."""
        if needed(lws, self._backends) & self._ward.unread:
            return None
        leaders = self._backends.leaders_of(lws)
        namespace, name = lws["metadata"]["namespace"], lws["metadata"]["name"]
        found = scene.of(self._ward.belongings.of(lws), namespace, name, leaders, self._backends.workers)
        return explain(replace(found, blind=self._ward.blind), leaders, self._backends.workers, self._ward.now)


def needed(lws: Obj, backends: Backends) -> frozenset[Kind]:
    """The kinds without which there is no telling why a set is where it is."""
    between = (REPLICA_SET,) if spec.is_hashed(lws) else ()
    return frozenset((backends.leaders_of(lws).kind, POD, *between))


_SCALERS = f"{disaggregated_names.SCALER_PLURAL}.{disaggregated_names.GROUP}"


def _ready(lws: Obj) -> int:
    return (lws.get("status") or {}).get("readyReplicas", 0)


def _all_ready(lws: Obj, wanted: int) -> bool:
    """Whether a status says that all groups are there, ready and updated, so that nothing can hold the set."""
    status = lws.get("status") or {}
    return all(status.get(field, 0) == wanted for field in ("replicas", "readyReplicas", "updatedReplicas"))


def _cause(why: Explanation) -> str:
    """What an explanation adds to the counts that it begins with, as a part of a sentence."""
    rest = why.sentences[1:] or why.sentences
    return " ".join(rest).rstrip(".")


def _ask(name: str, obj: Obj) -> str:
    return f"`lwskit explain {name} -n {obj['metadata']['namespace']}` says more"
