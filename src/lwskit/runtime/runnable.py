"""What a manager runs, and in which group."""

from __future__ import annotations

from enum import Enum
from typing import Any, Protocol


class Group(Enum):
    """The groups of runnables in the order in which they start (specification: 70 §1.1).

    They stop in this order: OTHERS and WARM_UP together, LEADER, CACHES, WEBHOOKS, HTTP, EVENTS.
    """

    EVENTS = "events"
    """The recorders of events and what measures the process; they outlast everything else."""
    HTTP = "HTTP servers"
    WEBHOOKS = "webhooks"
    CACHES = "caches"
    """What follows waits until these have synced."""
    OTHERS = "others"
    """What runs on every replica."""
    WARM_UP = "warm-up"
    """The part of a controller that fills its caches and its queue before this process leads."""
    LEADER = "leader election"
    """What runs only on the replica that was elected; the default."""


class Runnable(Protocol):
    """Something with one long-running method.

    An attribute `group` says where it belongs; without one a runnable with `wait_synced` is a cache, one whose
    `needs_leader` is False runs on every replica, and any other needs leadership. One whose `wants_warm_up` is true
    also has a coroutine method `warm_up`, which runs before the election.
    """

    async def run(self) -> None:
        """Run until cancelled, or until the work is done. An error stops the manager."""
        ...


def group_of(runnable: Any) -> Group:
    """The group that a runnable belongs to by what it says of itself."""
    declared = getattr(runnable, "group", None)
    if isinstance(declared, Group):
        return declared
    if hasattr(runnable, "wait_synced"):
        return Group.CACHES
    return Group.OTHERS if getattr(runnable, "needs_leader", True) is False else Group.LEADER


def name_of(runnable: Any) -> str:
    """What messages call a runnable: its `name`, or its class."""
    name = getattr(runnable, "name", None)
    kind = type(runnable).__name__
    return f"{kind} {name}" if isinstance(name, str) and name else kind
