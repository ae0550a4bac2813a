"""What is accepted and regretted: rules from a set, as it would be stored, to faults. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lwskit.lint.findings import Fault
from lwskit.lint.rules import (
    claims,
    environment,
    gates,
    lengths,
    pace,
    placement,
    policies,
    reserved,
    served,
    templates,
)
from lwskit.lint.server import Server
from lwskit.runtime.objects import Obj

_RULES: tuple[Callable[[Obj], Iterator[Fault]], ...] = (
    lengths.check,
    pace.check,
    policies.check,
    reserved.check,
    placement.check,
    environment.check,
    claims.check,
    templates.check,
    gates.check,
    served.check,
)


def check(lws: Obj, written: Obj, server: Server) -> Iterator[Fault]:
    """All that an author would regret of a set that is accepted: `lws` as it would be stored, `written` as it is."""
    yield from policies.rewritten(written)
    for rule in _RULES:
        yield from rule(lws)
    yield from templates.refused(lws, server)
