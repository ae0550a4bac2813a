"""The groups of a simulation as the manager and the StatefulSet controller see them, changed group by group. Pure."""

from __future__ import annotations

from lwskit.groups.forecast import Leader
from lwskit.groups.model import (
    HAS_LEADER,
    HAS_WORKERS,
    IS_EXHAUSTED,
    LEADER_READY,
    OVERFLOW,
    WORKERS_READY,
    SetState,
)
from lwskit.simulate.start import Group


class Seen:
    """What is seen of each group. `leaders` are the leader pods by ordinal."""

    def __init__(self) -> None:
        self.leaders: dict[int, Leader] = {}
        self._flags = bytearray()
        self._numbers = bytearray()
        self._pairs: dict[tuple[str, str], int] = {}
        self._overflow: dict[int, tuple[str, str]] = {}

    def put(self, ordinal: int, group: Group | None) -> None:
        """A group is like this now, or gone."""
        if ordinal >= len(self._flags):
            more = bytes(ordinal + 1 - len(self._flags))
            self._flags += more
            self._numbers += more
        self._overflow.pop(ordinal, None)
        if group is None:
            self.leaders.pop(ordinal, None)
            self._flags[ordinal] = self._numbers[ordinal] = 0
            return
        # A kept leader is being deleted, and stays.
        terminating = group.terminating or group.kept
        self.leaders[ordinal] = Leader(group.template, group.leader_ready, terminating, group.ended)
        self._flags[ordinal] = (
            HAS_LEADER
            | group.leader_ready * LEADER_READY
            | group.has_workers * HAS_WORKERS
            | group.workers_ready * WORKERS_READY
            | group.kept * IS_EXHAUSTED
        )
        pair = (group.key, group.workers_key)
        number = self._pairs.setdefault(pair, len(self._pairs) + 1)
        self._numbers[ordinal] = min(number, OVERFLOW)
        if number >= OVERFLOW:
            self._overflow[ordinal] = pair

    def state(self) -> SetState:
        """What the manager's index would tell."""
        end = len(self._flags.rstrip(b"\0"))
        known = {number: pair for pair, number in self._pairs.items() if number < OVERFLOW}
        return SetState(bytes(self._flags[:end]), bytes(self._numbers[:end]), known, dict(self._overflow))
