"""Children of DisaggregatedSets that no spec asks for: whose owner is gone, whose role, slice or revision is. Pure.

Specification: 50 §3, §5, §7.7, §12, §18.
"""

from __future__ import annotations

from collections.abc import Iterator

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated import children, scaling
from lwskit.disaggregated.kinds import DISAGGREGATED_SET, ROLE_SCALER
from lwskit.disaggregated.model import Child
from lwskit.doctor import findings
from lwskit.doctor.findings import Finding, delete, found
from lwskit.doctor.owners import COLLECTED
from lwskit.doctor.sets import Facts
from lwskit.doctor.ward import Owner, Ward, disaggregated_name, kind_named
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.objects import Obj, controller_of, is_deleting, is_of, labels_of

_MANAGER = "the manager deletes it, unless it does not run"


def unwanted(ward: Ward, facts: dict[tuple[str, str], Facts]) -> Iterator[Finding]:
    """Children that are outside of the current spec of their set; `facts` are those of each set by its place."""
    needed = {(place[0], name): place[1] for place, known in facts.items() for name in known.wanted_names}
    for lws in ward.of(LEADER_WORKER_SET):
        owner = controller_of(lws)
        if is_deleting(lws):
            continue
        if owner is None or not is_of(owner, DISAGGREGATED_SET):
            yield from _foreign(ward, facts, needed.get((lws["metadata"]["namespace"], lws["metadata"]["name"])), lws)
            continue
        state, _, name = ward.owner(lws)
        what = f"{names.KIND} {name}"
        if state is Owner.GONE:
            yield _collected(findings.OWNER_GONE, lws, f"belongs to {what}, which does not exist any more")
        elif state is Owner.REPLACED:
            text = f"belongs to an earlier {what}, not to the one that there is, which takes no notice of it"
            yield _collected(findings.OWNER_REPLACED, lws, text)
        elif state is Owner.THERE:
            known = facts.get((lws["metadata"]["namespace"], name))
            if known is not None and not known.error and not is_deleting(known.ds):
                yield from _outside(known, lws)


def _collected(code: str, lws: Obj, message: str) -> Finding:
    return found(code, LEADER_WORKER_SET, lws, message, f"{COLLECTED}: {delete(LEADER_WORKER_SET, lws)}", passes=True)


def _foreign(ward: Ward, facts: dict[tuple[str, str], Facts], needed_by: str | None, lws: Obj) -> Iterator[Finding]:
    """A LeaderWorkerSet that is labelled like a child, or has the name of one of `needed_by`, and is none."""
    of, owner = disaggregated_name(lws), controller_of(lws)
    whose = f"belongs to {kind_named(owner)} {owner['name']}" if owner is not None else "has no owner"
    if needed_by is not None:
        yield found(
            findings.FOREIGN_CHILD,
            LEADER_WORKER_SET,
            lws,
            f"{whose}, and {names.KIND} {needed_by} needs its name: the manager refuses to adopt it and waits",
            f"if nothing uses it, {delete(LEADER_WORKER_SET, lws)}",
        )
        return
    if not of:
        return
    known = facts.get((lws["metadata"]["namespace"], of))
    exists = "which takes no notice of it" if known is not None else "which does not exist"
    if known is None and DISAGGREGATED_SET in ward.unread:
        return
    yield found(
        findings.NO_OWNER,
        LEADER_WORKER_SET,
        lws,
        f"is labelled as a child of {names.KIND} {of}, {exists}, and {whose}",
        f"if nothing uses it, {delete(LEADER_WORKER_SET, lws)}",
    )


def _outside(facts: Facts, lws: Obj) -> Iterator[Finding]:
    """A child of a set that is there: whether it is what its labels say, and whether the spec asks for it."""
    child, ds = Child.of(lws), facts.ds["metadata"]["name"]
    wrong = _mislabelled(child, ds)
    if wrong:
        yield found(
            findings.CHILD_MISLABELLED,
            LEADER_WORKER_SET,
            lws,
            f"belongs to {names.KIND} {ds} and {wrong}: the manager takes no notice of it",
            f"put its labels right, or {delete(LEADER_WORKER_SET, lws)}",
        )
        return
    named = children.name_of(ds, child.slice or 0, child.revision, child.role)
    if child.name != named:
        yield found(
            findings.CHILD_MISNAMED,
            LEADER_WORKER_SET,
            lws,
            f"is labelled as {named} is, which is the only one that {names.KIND} {ds} has for these labels",
            f"if nothing uses it, {delete(LEADER_WORKER_SET, lws)}",
        )
    elif child.slice is not None and child.slice >= facts.slices:
        yield _left(
            findings.REMOVED_SLICE,
            lws,
            f"is of slice {child.slice}, and {names.KIND} {ds} has {facts.slices} slice{'s' * (facts.slices != 1)}",
        )
    elif facts.revision and child.revision != facts.revision:
        if facts.at_rest:
            yield _old(facts, child)
    elif facts.revision and child.role not in facts.roles:
        yield _left(findings.REMOVED_ROLE, lws, f"is of role {child.role}, which {names.KIND} {ds} has not")


def _mislabelled(child: Child, ds: str) -> str:
    labels = labels_of(child.obj)
    if labels.get(names.NAME_LABEL) != ds:
        return f"its label {names.NAME_LABEL} is {labels.get(names.NAME_LABEL)!r}"
    if child.slice is None:
        return f"its label {names.SLICE_LABEL} is {labels.get(names.SLICE_LABEL)!r}, no number"
    missing = [key for key in (names.ROLE_LABEL, names.REVISION_LABEL) if not labels.get(key)]
    return f"has no label {' and no label '.join(missing)}" if missing else ""


def _left(code: str, lws: Obj, message: str) -> Finding:
    return found(code, LEADER_WORKER_SET, lws, message, f"{_MANAGER}: {delete(LEADER_WORKER_SET, lws)}", passes=True)


def _old(facts: Facts, child: Child) -> Finding:
    ds = facts.ds["metadata"]["name"]
    gone = f" of role {child.role}, which {names.KIND} {ds} has not," if child.role not in facts.roles else ""
    code = findings.REMOVED_ROLE if gone else findings.OLD_REVISION
    text = f"is{gone} of revision {child.revision}, and {names.KIND} {ds} is available at {facts.revision}: no rollout"
    return _left(code, child.obj, f"{text} is on its way that would end it")


def scalers(ward: Ward, facts: dict[tuple[str, str], Facts]) -> Iterator[Finding]:
    """Scalers that no role asks for, and roles whose scaler is somebody else's."""
    for scaler in ward.of(ROLE_SCALER):
        if is_deleting(scaler) or ward.owner(scaler)[0] is not Owner.THERE:
            continue
        known = facts.get((scaler["metadata"]["namespace"], disaggregated_name(scaler)))
        if known is not None and scaler["metadata"]["name"] not in known.scalers:
            text = f"is for no role or sub-role of {names.KIND} {known.ds['metadata']['name']} that is External"
            hint = f"{_MANAGER}: {delete(ROLE_SCALER, scaler)}"
            yield found(findings.SCALER_NOT_WANTED, ROLE_SCALER, scaler, text, hint, passes=True)
    for (namespace, name), known in facts.items():
        for part in known.conflicts:
            there = ward.at(ROLE_SCALER, namespace, scaling.name_of(name, part))
            assert there is not None
            yield found(
                findings.SCALER_CONFLICT,
                ROLE_SCALER,
                there,
                f"has the name that role {part} of {names.KIND} {name} needs, and is not its: the set changes nothing",
                f"if nothing uses it, {delete(ROLE_SCALER, there)}",
            )
