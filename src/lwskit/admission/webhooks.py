"""The webhooks by their paths, as handlers of admission requests (specification: 10 §5, §6, §8, §11, 50 §19)."""

from __future__ import annotations

import random
from collections.abc import Mapping

from lwskit.admission import disaggregatedsets
from lwskit.admission.pod import admitted
from lwskit.admission.sets import defaulted, faults
from lwskit.api import disaggregated_names, names
from lwskit.api.validation import NO_SCHEDULING, FieldError, SchedulingSupport, aggregate
from lwskit.disaggregated.kinds import DISAGGREGATED_SET
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.groups.ports import PodScheduler
from lwskit.runtime.objects import Obj
from lwskit.runtime.webhook import AdmissionDenied, Handler, Warn, allowed, defaulter, validator


def handlers(
    rng: random.Random, scheduler: PodScheduler | None = None, support: SchedulingSupport = NO_SCHEDULING
) -> Mapping[str, Handler]:
    """Every webhook that the configurations name, by its path.

    `rng` gives the characters of new group keys; `scheduler` adds what a gang scheduler needs to know of pods, and
    `support` says which gangs a set may ask for.
    """

    def draw(count: int) -> str:
        return "".join(rng.choices(names.SAFE_ALPHABET, k=count))

    def admit_pod(pod: Obj, request: Obj) -> Obj:
        if request.get("operation") == "UPDATE":
            return pod
        return admitted(pod, request.get("namespace") or "", draw, scheduler)

    def check_new_set(lws: Obj, warn: Warn) -> None:
        _refuse(faults(lws, None, support))

    def check_changed_set(new: Obj, old: Obj, warn: Warn) -> None:
        _refuse(faults(new, old, support))

    return {
        names.MUTATE_LWS_PATH: defaulter(_default_set, LEADER_WORKER_SET, pure=True),
        names.VALIDATE_LWS_PATH: validator(check_new_set, check_changed_set, kind=LEADER_WORKER_SET),
        names.MUTATE_POD_PATH: defaulter(admit_pod, pure=True),
        names.VALIDATE_POD_PATH: lambda request: allowed(),
        disaggregated_names.VALIDATE_PATH: validator(
            lambda new, warn: _judge_disaggregated(new, None, warn), _judge_disaggregated, kind=DISAGGREGATED_SET
        ),
    }


def _default_set(lws: Obj, request: Obj) -> Obj:
    return defaulted(lws)


def _judge_disaggregated(new: Obj, old: Obj | None, warn: Warn) -> None:
    verdict = disaggregatedsets.judged(new, old)
    for remark in verdict.remarks:
        warn(remark.text)
    _refuse(verdict.faults)


def _refuse(found: list[FieldError]) -> None:
    if found:
        raise AdmissionDenied(aggregate(found))
