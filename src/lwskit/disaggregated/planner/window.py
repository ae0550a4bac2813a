"""The window that keeps roles in step: none runs ahead of the slowest by more than one group of the smallest. Pure.

Specification: 50 §8.2.
"""

from __future__ import annotations

from lwskit.disaggregated.planner.safety import least_ratio
from lwskit.disaggregated.planner.state import Vector


def caps(sizes: Vector, progress: Vector) -> Vector:
    """How far each role may be, given how large the roles are and how far each could be now.

    In fractions of its size a role may be ahead of the slowest one by one group of the smallest role, never by less
    than one of its own groups. Specification: 50 §8.2, Cap.
    """
    parts = [(done, size) for done, size in zip(progress, sizes, strict=True) if size > 0]
    if not parts:
        return sizes
    done, whole = least_ratio(parts)
    smallest = min(size for size in sizes if size > 0)
    return tuple(min(size, size * (done * smallest + whole) // (whole * smallest)) for size in sizes)
