"""The groups of a set in ordinal order, a byte each, counted so that a question costs little however many there are.

Specification: 20 §6.2, §8.2; architecture, part 4. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class GroupState:
    """One group's state as a rollout sees it (specification: 20 §6.2)."""

    counted: bool
    """Its leader exists and, where the set has workers, so does their workload."""
    ready: bool
    """Leader and workers are ready."""
    updated: bool
    """Leader and workers are of the revision asked for."""
    exhausted: bool = False
    """It has used up its restarts."""


# Bits of a group in `Groups`.
COUNTED, READY, UPDATED, EXHAUSTED = 1, 2, 4, 8

_STATES = range(16)
_FINISHED = bytes(s for s in _STATES if s & (READY | UPDATED) == READY | UPDATED)
_NOT_OUTDATED = bytes(s for s in _STATES if s & (READY | UPDATED) != READY)
_SHIFT = 7
_BLOCK = 1 << _SHIFT
"""Groups that are counted together."""
_BITS, _MASK = 32, (1 << 32) - 1
_ONE = (0, *(1 << (_BITS * s) for s in _STATES[1:]))
"""What one group of a state adds to a tally: a number of groups for each state but 0, side by side in one integer."""
_ALL_DONE = _BLOCK * _ONE[COUNTED | READY | UPDATED]


def _tally(part: bytes | bytearray) -> int:
    return sum(part.count(s) * _ONE[s] for s in {*part})


@lru_cache(maxsize=64)
def _matching(bits: int, without: int) -> tuple[int, ...]:
    return tuple(_BITS * s for s in _STATES if s & bits == bits and not s & without)


_DONE_SHIFTS = _matching(READY | UPDATED, 0)


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of a set in ordinal order, against one revision; a byte each, so that counting costs next to nothing.

    `blocks` are tallies of every 128 of them from the first on, where somebody has kept them; groups after the last
    block have no bits. Specification: 20 §6.2 and §8.2.
    """

    states: bytes
    blocks: tuple[int, ...] | None = field(default=None, compare=False, repr=False)
    _known: dict[tuple[int, int], int] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.states)

    def __getitem__(self, ordinal: int) -> GroupState:
        s = self.states[ordinal] if 0 <= ordinal < len(self.states) else 0
        return GroupState(bool(s & COUNTED), bool(s & READY), bool(s & UPDATED), bool(s & EXHAUSTED))

    def __iter__(self) -> Iterator[GroupState]:
        return (self[i] for i in range(len(self.states)))

    def first(self, count: int) -> Groups:
        """The first `count` groups; those that nothing is known about are neither ready nor updated."""
        if count == len(self.states):
            return self
        return Groups(self.states[:count].ljust(count, b"\0"), self.blocks)

    def at(self, ordinals: Sequence[int]) -> Groups:
        """The groups of these ordinals, in this order."""
        if isinstance(ordinals, range) and ordinals.start == 0 and ordinals.step == 1:
            return self.first(len(ordinals))
        known = self.states
        return Groups(bytes(known[i] if 0 <= i < len(known) else 0 for i in ordinals))

    def arranged(self, ordinals: Sequence[int]) -> Groups:
        """The groups of these ordinals, in this order, and after them all others that are known of."""
        if isinstance(ordinals, range) and ordinals.start == 0 and ordinals.step == 1:
            return self.first(max(len(ordinals), len(self.states)))
        asked = set(ordinals)
        others = bytes(s for i, s in enumerate(self.states) if s and i not in asked)
        return Groups(self.at(ordinals).states + others)

    def count(self, bits: int, without: int = 0, start: int = 0, stop: int | None = None) -> int:
        """How many of the groups from `start` to before `stop` have all of `bits` and none of `without`."""
        if not bits:
            part = self.states[start:stop]
            return sum(part.count(s) for s in _STATES if not s & without)
        begin, end, _ = slice(start, stop).indices(len(self.states))
        total = self._tally(begin, end)
        return sum(total >> shift & _MASK for shift in _matching(bits, without))

    def finished_tail(self) -> int:
        """How many groups from the end backwards are ready and updated, up to the first that is not."""
        end = len(self.states)
        begin, done = 0, end
        if self.blocks is not None:
            begin = end & ~(_BLOCK - 1)
            if not self.states[begin:].rstrip(_FINISHED):
                done = begin
                while done and self._is_done((done >> _SHIFT) - 1):
                    done -= _BLOCK
                begin = max(done - _BLOCK, 0)
        part = self.states[begin:done]
        return end - begin - len(part.rstrip(_FINISHED))

    def last_outdated(self, start: int, stop: int) -> int:
        """The last group from `start` to before `stop` that is ready and not updated; `start` - 1 without any."""
        return start + len(self.states[start:stop].rstrip(_NOT_OUTDATED)) - 1

    def _is_done(self, block: int) -> bool:
        if self.blocks is None or block >= len(self.blocks):
            return False
        tally = self.blocks[block]
        return tally == _ALL_DONE or sum(tally >> shift & _MASK for shift in _DONE_SHIFTS) == _BLOCK

    def _tally(self, begin: int, end: int) -> int:
        """The tally of the groups from `begin` to before `end`."""
        total = self._known.get((begin, end))
        if total is None:
            first, last = (begin + _BLOCK - 1) >> _SHIFT, end >> _SHIFT
            if self.blocks is None or first >= last:
                total = _tally(self.states[begin:end])
            else:
                total = sum(self.blocks[first:last])
                total += _tally(self.states[begin : first << _SHIFT]) + _tally(self.states[last << _SHIFT : end])
            self._known[begin, end] = total
        return total


class Row:
    """Groups that change one at a time, with their tallies kept up to date."""

    __slots__ = ("_blocks", "_states")

    def __init__(self, states: bytes) -> None:
        self._states = bytearray(states)
        self._blocks = [_tally(states[i : i + _BLOCK]) for i in range(0, len(states), _BLOCK)]

    def put(self, ordinal: int, state: int, length: int) -> None:
        """One group's bits; there are `length` groups then, and those that are cut off have no bits."""
        states, blocks = self._states, self._blocks
        if ordinal >= len(states) and state:
            states += bytes(ordinal + 1 - len(states))
            blocks += [0] * ((ordinal >> _SHIFT) + 1 - len(blocks))
        if ordinal < len(states):
            blocks[ordinal >> _SHIFT] += _ONE[state] - _ONE[states[ordinal]]
            states[ordinal] = state
        if len(states) != length:
            states[:] = states[:length].ljust(length, b"\0")
            kept = (length + _BLOCK - 1) >> _SHIFT
            blocks[:] = [*blocks[:kept], *[0] * (kept - len(blocks))]

    def groups(self) -> Groups:
        """A copy for a decision."""
        return Groups(bytes(self._states), tuple(self._blocks))
