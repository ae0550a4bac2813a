"""How many groups each role is to have, and the scalers through which others say so. Pure.

Specification: 50 §11.1, §11.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lwskit.api import disaggregated_names as names
from lwskit.api.names import INT32_MAX, MAX_REPLICAS
from lwskit.disaggregated.kinds import DISAGGREGATED_SET, ROLE_SCALER
from lwskit.disaggregated.model import Child, Part
from lwskit.disaggregated.scene import Targets
from lwskit.disaggregated.spec import Role, SetSpec
from lwskit.disaggregated.subroles import tally
from lwskit.groups.model import DecisionError
from lwskit.runtime.objects import (
    Obj,
    ObjectRef,
    condition_of,
    controller_reference,
    is_controlled_by,
    is_deleting,
    key_of,
    labels_of,
    ref_of,
    uid_of,
)
from lwskit.runtime.plan import AnswerOf, AnyAction, Create, Delete, Emit, Event, OnError


@dataclass(frozen=True, slots=True)
class Scaling:
    """What to do about scalers, and what they and the set ask for once that is done.

    `held` are the scalers that are there, by part; `foreign` are parts whose scaler's name somebody else has. `faults`
    are sentences about parts that get no scaler because what they have now cannot be read.
    """

    actions: tuple[AnyAction, ...]
    targets: Targets
    held: Mapping[Part, Obj]
    foreign: tuple[Part, ...]
    faults: tuple[str, ...] = ()


def name_of(set_name: str, part: Part) -> str:
    """The name of a part's scaler."""
    return names.scaler_name(set_name, part.role, part.subrole)


def names_of(spec: SetSpec) -> dict[str, Part]:
    """The parts that have scalers, by their scaler's name; of two with the same name the first."""
    found: dict[str, Part] = {}
    for part in external(spec):
        found.setdefault(name_of(spec.name, part), part)
    return found


def external(spec: SetSpec) -> tuple[Part, ...]:
    """The parts that others scale, in spec order."""
    return tuple(part for role in spec.roles for part in role.external_parts)


def decide(ds: Obj, spec: SetSpec, children: Sequence[Child], scalers: Sequence[Obj]) -> Scaling:
    """What to do about scalers.

    `children` are those that stay, of all slices and revisions; `scalers` those with the set's name in their label and
    those with the name of one that is wanted, of any owner. A part whose scaler cannot be had has no target (50 §11.2).
    """
    wanted = names_of(spec)
    held: dict[Part, Obj] = {}
    waiting: set[Part] = set()
    foreign: set[Part] = set()
    deletions: list[AnyAction] = []
    for scaler in scalers:
        part = wanted.get(scaler["metadata"]["name"])
        is_own = is_controlled_by(scaler, DISAGGREGATED_SET, spec.uid)
        if is_own and part is not None and _is_of(scaler, part) and not is_deleting(scaler):
            held[part] = scaler
            continue
        if part is not None:
            waiting.add(part)
            if not is_own:
                foreign.add(part)
        if is_own and not is_deleting(scaler):
            deletions.append(_delete(ds, scaler))
    missing = [part for part in wanted.values() if part not in held and part not in waiting]
    counts = {part: scaler["spec"].get("replicas") or 0 for part, scaler in held.items()}
    seeds: dict[Part, int] = {}
    faults: list[str] = []
    for part in missing:
        try:
            seeds[part] = min(_seed(spec, part, children), INT32_MAX)
        except DecisionError as error:
            faults.append(f"role {part} gets no scaler: {error}")
    creations = [_create(ds, spec, part, seed) for part, seed in seeds.items()]
    taken = tuple(part for part in wanted.values() if part in foreign)
    told = [_conflict(ds, spec, part) for part in taken if not _was_told(ds, part)]
    asked = targets(spec, {**counts, **seeds})
    return Scaling((*deletions, *told, *creations), asked, held, taken, tuple(faults))


def targets(spec: SetSpec, counts: Mapping[Part, int]) -> Targets:
    """What each part and role is to have, when scalers ask for `counts` (50 §11.1)."""
    parts: dict[Part, int] = {}
    roles: dict[str, int] = {}
    unresolved: list[Part] = []
    for role in spec.roles:
        found = {part: count for part in role.parts if (count := _count(role, part, counts)) is not None}
        missing = [part for part in role.parts if part not in found]
        parts |= found
        unresolved += missing
        if not missing and (total := sum(found.values())) <= INT32_MAX:
            roles[role.name] = total
        elif not missing:
            unresolved.append(Part(role.name))
    return Targets(parts, roles, tuple(unresolved))


def said_of_sum(too_large: tuple[str, int]) -> str:
    """Why a role of `Targets.too_large` has no count."""
    role, count = too_large
    return f"the sub-roles of role {role} ask for {count} groups, and a LeaderWorkerSet may have {MAX_REPLICAS} at most"


def _count(role: Role, part: Part, counts: Mapping[Part, int]) -> int | None:
    if part in role.external_parts:
        return counts.get(part)
    return next((sub.replicas for sub in role.subroles if sub.name == part.subrole), role.replicas)


def _is_of(scaler: Obj, part: Part) -> bool:
    """Whether a scaler was made for that part; one that has lost both labels is known by its name."""
    labels = labels_of(scaler)
    said = Part(labels.get(names.ROLE_LABEL, ""), labels.get(names.SUBROLE_LABEL, ""))
    return said in (part, Part("", ""))


def _seed(spec: SetSpec, part: Part, children: Sequence[Child]) -> int:
    """What a new scaler asks for: what there is, so that nothing changes when a role begins to be scaled by others."""
    there = [child for child in children if child.role == part.role]
    if not there:
        return names.SCALER_SEED
    if not part.subrole:
        return sum(child.replicas for child in there)
    issued = [tally.issued(child) for child in there]
    if any(part.subrole in (found or ()) for found in issued):
        return sum((found or {}).get(part.subrole, 0) for found in issued)
    role = spec.role(part.role)
    others = [] if role is None else role.subroles
    if any(issued) or part.subrole != min(sub.name for sub in others if sub.is_external):
        return names.SCALER_SEED
    # The role is divided for the first time: the first one that is scaled from outside has what the others leave.
    left = sum(child.replicas for child in there) - sum(sub.replicas for sub in others if not sub.is_external)
    return max(names.SCALER_SEED, left)


def _create(ds: Obj, spec: SetSpec, part: Part, seed: int) -> Create:
    name = name_of(spec.name, part)
    labels = {names.NAME_LABEL: spec.name, names.ROLE_LABEL: part.role}
    if part.subrole:
        labels[names.SUBROLE_LABEL] = part.subrole
    note = f"Created scaler {name} for role {part}"
    return Create(
        kind=ROLE_SCALER,
        obj={
            "apiVersion": names.API_VERSION,
            "kind": names.SCALER_KIND,
            "metadata": {
                "name": name,
                "namespace": spec.key.namespace,
                "labels": labels,
                "ownerReferences": [controller_reference(ds, DISAGGREGATED_SET)],
            },
            "spec": {"replicas": seed},
        },
        why=f"role {part} is scaled from outside and has no scaler",
        name=name,
        on_success=_event(ds, names.EVENT_SCALER_CREATED, names.ACTION_CREATE, note, AnswerOf(name, ROLE_SCALER)),
        errors={"AlreadyExists": OnError.LOOK},
    )


def _delete(ds: Obj, scaler: Obj) -> Delete:
    labels, name = labels_of(scaler), scaler["metadata"]["name"]
    part = Part(labels.get(names.ROLE_LABEL, ""), labels.get(names.SUBROLE_LABEL, ""))
    note = f"Deleted scaler {name} (role {part} is no longer External)"
    return Delete(
        kind=ROLE_SCALER,
        key=key_of(scaler),
        uid=uid_of(scaler),
        why=f"role {part} is not scaled from outside",
        on_success=_event(ds, names.EVENT_SCALER_DELETED, names.ACTION_DELETE, note, ref_of(scaler, ROLE_SCALER)),
        errors={"NotFound": OnError.IGNORE, "Conflict": OnError.LOOK},
    )


def _conflict(ds: Obj, spec: SetSpec, part: Part) -> Emit:
    name = name_of(spec.name, part)
    note = f"Scaler {name} exists but is not controlled by this DisaggregatedSet; not adopting"
    related = ObjectRef(names.API_VERSION, names.SCALER_KIND, spec.key.namespace, name)
    event = _event(ds, names.EVENT_SCALER_CONFLICT, names.ACTION_CONFLICT, note, related, "Warning")
    return Emit(event=event, why=f"somebody else has a scaler of the name that role {part} needs")


def _was_told(ds: Obj, part: Part) -> bool:
    """Whether the status says already that this part has no scaler: the event about it is recorded once."""
    found = condition_of(ds, names.CONDITION_PROGRESSING) or {}
    if found.get("status") != "True" or found.get("reason") != names.REASON_TARGETS_UNRESOLVED:
        return False
    _, _, listed = found.get("message", "").partition(": ")
    return str(part) in listed.split(", ")


def _event(ds: Obj, reason: str, action: str, note: str, related: ObjectRef | AnswerOf, type: str = "Normal") -> Event:
    return Event(ref_of(ds, DISAGGREGATED_SET), reason, action, note, type, related)
