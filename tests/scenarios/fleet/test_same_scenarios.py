"""The scenarios of creation, rollout, restarts and scaling, collected once more for another backend."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from tests.scenarios import (
    test_creation,
    test_restarts,
    test_rollout,
    test_rollout_surge,
    test_rollout_tables,
    test_scale,
)

OF_STATEFUL_SETS = {
    "test_max_unavailable_of_the_leader_workload": "a fleet has no such field",
    "test_the_worker_workload_starts_at_ordinal_one": "reads a StatefulSet's own fields",
    "test_a_worker_workload_that_is_there_already_is_no_failure": "creates a StatefulSet, and counts its requests",
    "test_groups_are_replaced_whole": "a fleet updates groups where they are: see test_fleets.py",
}
"""What is not for a fleet, and why."""


def scenarios(*modules: ModuleType) -> dict[str, Callable[..., object]]:
    """The tests of these modules by name, without those that only a StatefulSet can pass."""
    found: dict[str, Callable[..., object]] = {}
    for module in modules:
        for name, function in vars(module).items():
            if name.startswith("test_") and name not in OF_STATEFUL_SETS:
                assert name not in found, f"two scenarios are called {name}"
                found[name] = function
    return found


MODULES = (test_creation, test_rollout, test_rollout_surge, test_rollout_tables, test_restarts, test_scale)
globals().update(scenarios(*MODULES))


def test_what_is_left_out_exists() -> None:
    """An exception for a scenario that was renamed would hide it."""
    assert all(any(hasattr(module, name) for module in MODULES) for name in OF_STATEFUL_SETS)
