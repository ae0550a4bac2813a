"""What autoscalers read of a scaler: how many groups there are, and which pods stand for them. Pure.

Specification: 50 §11.3.
"""

from __future__ import annotations

from collections.abc import Mapping

from lwskit.api import disaggregated_names as names
from lwskit.api.names import LEADER_INDEX, WORKER_INDEX_LABEL
from lwskit.disaggregated.kinds import ROLE_SCALER
from lwskit.disaggregated.model import Part
from lwskit.runtime.objects import Obj, generation_of, key_of, uid_of
from lwskit.runtime.plan import AnyAction, OnError, Patch


def selector_of(set_name: str, part: Part) -> str:
    """The leaders of a part: one pod for each group, so that averages over pods are averages over groups."""
    labels = [
        f"{names.NAME_LABEL}={set_name}",
        f"{names.ROLE_LABEL}={part.role}",
        f"{WORKER_INDEX_LABEL}={LEADER_INDEX}",
    ]
    return ",".join([*labels, f"{names.SUBROLE_LABEL}={part.subrole}"] if part.subrole else labels)


def actions(set_name: str, held: Mapping[Part, Obj], replicas: Mapping[Part, int], now: str) -> tuple[AnyAction, ...]:
    """The writes that bring the scalers' statuses up to date.

    `replicas` are the groups that there are; of a part that is not in it nothing is known, and what was told of it
    stays. `now` is the time of a transition as objects carry it.
    """
    return tuple(
        _patch(part, scaler, status)
        for part, scaler in held.items()
        if (status := _status(set_name, part, scaler, replicas.get(part), now)) != (scaler.get("status") or {})
    )


def _status(set_name: str, part: Part, scaler: Obj, replicas: int | None, now: str) -> Obj:
    old = scaler.get("status") or {}
    return {
        **old,
        "replicas": old.get("replicas", 0) if replicas is None else replicas,
        "selector": selector_of(set_name, part),
        "observedGeneration": generation_of(scaler),
        "conditions": _conditions(old.get("conditions") or [], generation_of(scaler), now),
    }


def _conditions(stored: list[Obj], generation: int, now: str) -> list[Obj]:
    old = next((c for c in stored if c.get("type") == names.CONDITION_READY), {})
    ready = {
        "type": names.CONDITION_READY,
        "status": "True",
        "reason": names.REASON_BOUND,
        "message": names.MESSAGE_BOUND,
        "observedGeneration": generation,
        "lastTransitionTime": old.get("lastTransitionTime", now) if old.get("status") == "True" else now,
    }
    if not old:
        return [*stored, ready]
    return [ready if c.get("type") == names.CONDITION_READY else c for c in stored]


def _patch(part: Part, scaler: Obj, status: Obj) -> Patch:
    return Patch(
        kind=ROLE_SCALER,
        key=key_of(scaler),
        uid=uid_of(scaler),
        subresource="status",
        body={"status": status},
        why=f"the status of the scaler of role {part} has changed",
        errors={"NotFound": OnError.IGNORE, "Conflict": OnError.REQUEUE},
    )
