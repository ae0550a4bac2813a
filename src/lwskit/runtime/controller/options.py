"""What controllers do unless they are told otherwise (specification: 70 §1.5)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from lwskit.runtime.kinds import Kind

CONCURRENCY = 8
"""Requests that a controller works on at once."""
SYNC_TIMEOUT = 120.0
"""Seconds that sources have to start and sync."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerDefaults:
    """The settings of every controller of a manager that does not set its own.

    `concurrency_by_kind` is looked up by the kind that a controller is for, written `Kind.group` or, in the core
    group, `Kind`; then comes `concurrency`. `sync_timeout` is how many seconds sources may take, `reconcile_timeout`
    how many one reconcile may (infinity: any number), `debounce` how many each event waits for others like it.
    Without `recover` an unexpected exception ends the program instead of being retried. `needs_leader` keeps
    controllers waiting until this process leads; with `warm_up` their caches fill before that. `priorities` chooses
    the queue with priorities. With `unique_names` a manager takes no two controllers of one name.
    """

    concurrency: int = CONCURRENCY
    concurrency_by_kind: Mapping[str, int] = field(default_factory=dict)
    sync_timeout: float = SYNC_TIMEOUT
    reconcile_timeout: float = math.inf
    recover: bool = True
    needs_leader: bool = True
    warm_up: bool = False
    priorities: bool = True
    debounce: float = 0.0
    unique_names: bool = True

    def concurrency_of(self, kind: Kind | None) -> int:
        """How many requests a controller for this kind works on at once."""
        if kind is None:
            return self.concurrency
        return self.concurrency_by_kind.get(kind.qualified, self.concurrency)
