"""What to do about refusals whose words name a field that their author did not touch. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from lwskit.api import names
from lwskit.groups import spec
from lwskit.lint.findings import Fault
from lwskit.lint.rules.paths import SUBGROUPS, TEMPLATE
from lwskit.runtime.objects import Obj

_GATE = f"requires the {names.WORKLOAD_AWARE_SCHEDULING_GATE} feature gate"

_NOT_TEXT: Final = re.compile(
    r'must be of type string: "(boolean|integer|number)"|cannot unmarshal (bool|number)\b.* of type string'
)
"""How a server says that it wants a text, and got what a scalar without quotes may be."""
_CALLED: Final = {"bool": "boolean", "integer": "number"}


def quoted(fault: Fault) -> Fault:
    """The refusal with a hint to quote the value, if it was read as a boolean or a number where text is wanted."""
    found = _NOT_TEXT.search(fault.message)
    if found is None:
        return fault
    kind = found[1] or found[2]
    text = (
        f"text is wanted here, and without quotes the value is read as a {_CALLED.get(kind, kind)}: write it in quotes"
    )
    return replace(fault, hint=text)


def hinted(fault: Fault, lws: Obj, old: Obj | None) -> Fault:
    """The refusal with a hint if there is one to give; `lws` is the set as it would have been stored."""
    if fault.path == f"{SUBGROUPS}.subGroupSize":
        return replace(fault, hint=_sizes(lws, old) or fault.hint)
    if fault.path == "spec.scheduling" and _GATE in fault.message:
        return replace(
            fault, hint="the gate is off unless the manager's configuration turns it on; if yours does, say --scheduler"
        )
    if fault.path.endswith("maxUnavailable") and "must not be 0" in fault.message:
        text = "maxUnavailable in percent is rounded down, so a small share of few groups is 0"
        return replace(fault, hint=f"{text}; write a number, or a maxSurge")
    return fault


def _sizes(lws: Obj, old: Obj | None) -> str:
    size, part = _integer(lws, "size"), _integer(lws, "subGroupPolicy", "subGroupSize")
    if size is None or part is None or part < 1:
        return ""
    if old is not None and _integer(old, "subGroupPolicy", "subGroupSize") != part:
        return ""
    policy = spec.template_of(lws)["subGroupPolicy"]
    excluded = policy.get("subGroupPolicyType") == names.SUBGROUP_LEADER_EXCLUDED
    low = max(size // part, 1)
    fitting = [part * n + more for n in (low, low + 1) for more in ((1,) if excluded else (0, 1))]
    text = (
        f"subGroupSize is how many pods a sub-group has: with {part}, sizes such as {', '.join(map(str, fitting))} fit"
    )
    before = None if old is None else _integer(old, "size")
    if before is None or before == size:
        return text
    return f"it is the changed size that does not fit ({TEMPLATE}.size, {before} before and {size} now); {text}"


def _integer(lws: Mapping[str, Any], *path: str) -> int | None:
    value: Any = lws.get("spec")
    for name in ("leaderWorkerTemplate", *path):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
