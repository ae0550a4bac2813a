"""What an edit of a DisaggregatedSet is: the fields that it changes, and what those do. Pure.

Specification: 50 §4.2, §6, §12, §14.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final

from lwskit.runtime.objects import Obj
from lwskit.simulate.edit import differences as of_objects


class Verdict(Enum):
    """What an edit comes to, the strongest of what its fields do."""

    REFUSED = "refused"
    NOTHING = "nothing"
    METADATA = "metadata only"
    PACE = "applies to how rollouts and scaling go on"
    IN_PLACE = "is handed on to the children as they are"
    NEXT_REVISION = "applies to children that are made later"
    SCALES = "scales"
    ROLLS = "rolls"
    CREATES = "creates"


_ROLE: Final = r"spec\.roles\[[^\]]*\]"
_FIELDS: Final = (
    (Verdict.SCALES, rf"{_ROLE}(\.spec\.replicas|\.scaling|\.subRoles|$)|spec\.slices"),
    (Verdict.NEXT_REVISION, r"spec\.placementPolicy"),
    (Verdict.IN_PLACE, rf"{_ROLE}\.spec\.groupReplacementPolicy"),
    (Verdict.PACE, rf"{_ROLE}\.spec\.rolloutStrategy|spec\.scalingPolicy"),
)
"""What the fields do that do not make a new revision, the strongest first."""


def differences(old: Obj, new: Obj) -> list[str]:
    """The paths of the spec, labels and annotations that differ, innermost parts; roles are told by their names."""
    return [path.replace(".[", "[") for path in of_objects(_by_name(old), _by_name(new))]


def _by_name(ds: Obj) -> Obj:
    return {**ds, "spec": {**ds["spec"], "roles": _named(ds["spec"]["roles"])}}


def _named(items: Sequence[Mapping[str, Any]]) -> Obj:
    found: Obj = {}
    for item in items:
        one = dict(item)
        if "subRoles" in one:
            one["subRoles"] = _named(one["subRoles"])
        found[f"[{item['name']}]"] = one
    return found


def classify(old: Obj | None, changed: Sequence[str], *, rolls: bool) -> Verdict:
    """What an edit comes to; `changed` are its differences, `rolls` says whether it makes a new revision."""
    if old is None:
        return Verdict.CREATES
    if rolls:
        return Verdict.ROLLS
    for verdict, pattern in _FIELDS:
        if any(re.match(pattern, path) for path in changed):
            return verdict
    return Verdict.METADATA if changed else Verdict.NOTHING
