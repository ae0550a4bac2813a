"""What the API has and the manager of this version does not serve. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from lwskit.lint.findings import SCHEDULING_NOT_SERVED, Fault
from lwskit.runtime.objects import Obj


def check(lws: Obj) -> Iterator[Fault]:
    """Fields that are accepted, as the API has them, and then have no effect or stop everything."""
    if lws["spec"].get("scheduling") is not None:
        text = "this version's manager does not serve it: the pods of a group are scheduled one by one"
        yield Fault(SCHEDULING_NOT_SERVED, "spec.scheduling", text, "leave the field out")
