"""What may be stored: the rules for objects, and errors that name field and fault (specification: 10 §6)."""

from lwskit.api.validation.errors import ErrorKind, FieldError, aggregate
from lwskit.api.validation.leaderworkerset import validate_create, validate_update
from lwskit.api.validation.scheduling import NO_SCHEDULING, SchedulingSupport

__all__ = [
    "NO_SCHEDULING",
    "ErrorKind",
    "FieldError",
    "SchedulingSupport",
    "aggregate",
    "validate_create",
    "validate_update",
]
