"""Gates in pod templates that nobody opens, and what the gate of Hash mode does not go with. Pure.

Specification: 30 §4, §5 step 8, §9.
"""

from __future__ import annotations

from collections.abc import Iterator

from lwskit.api import names
from lwskit.groups import spec
from lwskit.lint.findings import NEVER_READY, NEVER_STARTS, Fault
from lwskit.lint.rules.paths import Template, templates
from lwskit.runtime.objects import Obj

_DROP = "leave it out"


def check(lws: Obj) -> Iterator[Fault]:
    """Templates of which no pod starts, or none gets ready."""
    hashed = spec.is_hashed(lws)
    for template in templates(lws):
        path = f"{template.path}.spec"
        if hashed and template.of_leaders and template.spec.get("nodeName"):
            text = (
                f"leaders have the scheduling gate {names.GROUP_REPLACEMENT_GATE}, and the API server takes no pod "
                "with a gate and a nodeName: no group is ever made"
            )
            yield Fault(NEVER_STARTS, f"{path}.nodeName", text, "select the node by its labels instead")
        for index, gate in enumerate(template.spec.get("schedulingGates") or ()):
            if gate.get("name") == names.GROUP_REPLACEMENT_GATE and template.of_workers:
                text = f"nobody takes the scheduling gate {names.GROUP_REPLACEMENT_GATE} from workers: they never start"
                yield Fault(NEVER_STARTS, f"{path}.schedulingGates[{index}]", text, _DROP)
        who = _never_ready(lws, template, hashed=hashed)
        for index, gate in enumerate(template.spec.get("readinessGates") or ()):
            if gate.get("conditionType") == names.GROUP_READY_GATE and who:
                text = f"nobody sets the condition {names.GROUP_READY_GATE} of {who}: they never get ready"
                yield Fault(NEVER_READY, f"{path}.readinessGates[{index}]", text, _DROP)


def _never_ready(lws: Obj, template: Template, *, hashed: bool) -> str:
    """Whose readiness gate of that name stays closed, empty if nobody's does: leaders with workers get it opened."""
    if template.of_workers:
        return "workers"
    if not hashed:
        return "leaders in Ordinal mode"
    return "leaders without workers" if spec.size(lws) == 1 else ""
