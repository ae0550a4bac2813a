"""What the doctor finds: codes, and what a finding says. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Obj

OWNER_GONE: Final = "owner-gone"
OWNER_REPLACED: Final = "owner-replaced"
NO_OWNER: Final = "no-owner"
CHILD_MISLABELLED: Final = "child-mislabelled"
CHILD_MISNAMED: Final = "child-misnamed"
REMOVED_SLICE: Final = "child-of-removed-slice"
REMOVED_ROLE: Final = "child-of-removed-role"
OLD_REVISION: Final = "child-of-old-revision"
FOREIGN_CHILD: Final = "foreign-child"
SCALER_NOT_WANTED: Final = "scaler-not-wanted"
SCALER_CONFLICT: Final = "scaler-conflict"
PRIVATE_SERVICE: Final = "private-service"
NO_PLACE: Final = "pods-without-place"
DELETION_STUCK: Final = "deletion-stuck"
NOT_OBSERVED: Final = "not-observed"
ROLE_NOT_READY: Final = "role-not-ready"
SET_NOT_READY: Final = "set-not-ready"
BLOCKED: Final = "blocked"
UNDECIDABLE: Final = "undecidable"

CODES: Final = (
    CHILD_MISLABELLED,
    CHILD_MISNAMED,
    REMOVED_SLICE,
    REMOVED_ROLE,
    OLD_REVISION,
    FOREIGN_CHILD,
    NO_OWNER,
    OWNER_GONE,
    OWNER_REPLACED,
    PRIVATE_SERVICE,
    SCALER_NOT_WANTED,
    SCALER_CONFLICT,
    ROLE_NOT_READY,
    SET_NOT_READY,
    BLOCKED,
    UNDECIDABLE,
    NOT_OBSERVED,
    NO_PLACE,
    DELETION_STUCK,
)
"""Every code, in the order of the report."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a person should know: where, what, and what to do about it.

    `passes` says that somebody else is expected to see to it soon: then it is a finding only if it lasts.
    """

    code: str
    kind: str
    namespace: str
    name: str
    message: str
    hint: str
    passes: bool = False
    about: str = ""
    """Which part of the object, where one object may have several findings of one code."""

    @property
    def identity(self) -> tuple[str, ...]:
        """What is the same for the same finding of a later look."""
        return (self.code, self.kind, self.namespace, self.name, self.about)

    @property
    def sentence(self) -> str:
        """Where, what and what to do, in one."""
        return f"{self.kind} {self.namespace}/{self.name} {self.message}; {self.hint}"


def found(
    code: str, kind: Kind, obj: Obj, message: str, hint: str, *, passes: bool = False, about: str = ""
) -> Finding:
    """A finding about an object of that kind."""
    meta = obj["metadata"]
    return Finding(code, kind.kind, meta.get("namespace", ""), meta["name"], message, hint, passes, about)


def delete(kind: Kind, obj: Obj) -> str:
    """The command that deletes an object."""
    meta = obj["metadata"]
    resource = f"{kind.plural}.{kind.group}" if kind.group else kind.plural
    return f"`kubectl -n {meta['namespace']} delete {resource} {meta['name']}`"
