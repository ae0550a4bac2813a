"""Variables of containers that admission replaces or drops (specification: 10 §9, §10). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from lwskit.api import names
from lwskit.groups import spec
from lwskit.lint.findings import ENV_REPLACED, ENV_SUPPRESSES_TPU, TPU_FIRST_ONLY, Fault
from lwskit.lint.rules.paths import containers, templates
from lwskit.runtime import quantity
from lwskit.runtime.objects import Obj

_OURS: Final = frozenset({names.ENV_LEADER_ADDRESS, names.ENV_GROUP_SIZE, names.ENV_WORKER_INDEX})
_SUPPRESSING: Final = frozenset({names.ENV_TPU_WORKER_HOSTNAMES, names.ENV_TPU_WORKER_ID})
_TPU: Final = frozenset({names.ENV_TPU_NAME, names.ENV_TPU_PROCESS_ADDRESSES})


def check(lws: Obj) -> Iterator[Fault]:
    """Variables of the user that containers will not have as they are written."""
    for template in templates(lws):
        found = list(containers(template))
        tpu = [path for path, container in found if _requests_tpus(container)]
        # With sub-groups only the first container with TPUs is given variables.
        given = tpu[:1] if spec.subgroup_policy(lws) is not None else tpu
        suppressed = any(_names(c) & _SUPPRESSING for path, c in found if path in tpu[:1])
        for path, container in found:
            yield from _variables(path, container, path in given and not suppressed, path in tpu[:1])
        for path in () if suppressed else tpu[len(given) :]:
            text = (
                "with sub-groups only the first container of a pod that asks for TPUs is given the variables for them"
            )
            hint = "ask for all TPUs in one container, or set the variables of the others yourself"
            yield Fault(TPU_FIRST_ONLY, f"{path}.resources", text, hint)


def _variables(path: str, container: Mapping[str, Any], tpu: bool, first: bool) -> Iterator[Fault]:
    for index, entry in enumerate(container.get("env") or ()):
        name, where = entry.get("name", ""), f"{path}.env[{index}]"
        if name in _OURS:
            text = f"{name} is replaced: every container gets it from its place in its group"
            yield Fault(ENV_REPLACED, where, text, "leave it out; other variables may refer to it as $(NAME)")
        elif tpu and name in _TPU:
            text = f"{name} is kept, and the one that containers with TPUs get is dropped"
            yield Fault(ENV_REPLACED, where, text, "leave it out")
        elif first and name in _SUPPRESSING:
            text = f"with {name} here, no container of the pod is given the variables for TPUs"
            yield Fault(ENV_SUPPRESSES_TPU, where, text, "leave it out, or set all of them")


def _names(container: Mapping[str, Any]) -> set[str]:
    return {entry.get("name", "") for entry in container.get("env") or ()}


def _requests_tpus(container: Mapping[str, Any]) -> bool:
    resources = container.get("resources") or {}
    amounts = ((resources.get(kind) or {}).get(names.TPU_RESOURCE) for kind in ("limits", "requests"))
    return any(amount is not None and quantity.parse(amount) > 0 for amount in amounts)
