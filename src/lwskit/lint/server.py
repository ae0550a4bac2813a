"""What an API server with the CRDs and the webhooks would answer, asked without one. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lwskit.admission import disaggregatedsets, sets
from lwskit.api import disaggregated_names, names
from lwskit.api.crds import disaggregatedset_crd, leaderworkerset_crd
from lwskit.api.validation import NO_SCHEDULING, SchedulingSupport
from lwskit.api.validation import FieldError as Refusal
from lwskit.embedded import crds, validation, warnings
from lwskit.embedded.codec import Codec
from lwskit.embedded.defaults import Defaults
from lwskit.embedded.failures import FieldError
from lwskit.embedded.resources import Resource
from lwskit.embedded.schema import clone
from lwskit.lint.findings import (
    API_WARNING,
    REFUSED_BY_ADMISSION,
    REFUSED_BY_SCHEMA,
    STATUS_IGNORED,
    UNKNOWN_FIELD,
    Fault,
)
from lwskit.runtime.errors import ApiError
from lwskit.runtime.kinds import DEPLOYMENT, STATEFUL_SET, Kind
from lwskit.runtime.objects import Obj
from lwskit.runtime.typed import DecodeError, load_resource

_UNCHECKED = re.compile(r"Checked value must be of type .* in (\S+)$")
_UNKNOWN = re.compile(r'unknown field "(.*)"', re.DOTALL)
_GENERATED = "xxxxx"
_PREFIX = names.MAX_NAME_LENGTH - len(_GENERATED)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server made of an object: as it would be stored, why it is refused, and what it warns of.

    `stored` is None where the object could not even be read.
    """

    stored: Obj | None
    refusals: tuple[Fault, ...]
    warnings: tuple[Fault, ...] = ()


Judged = tuple[Sequence[Refusal], Sequence[Fault]]
"""What a validating webhook refuses, and what it warns of."""


@dataclass(frozen=True, slots=True)
class _Subject:
    """A kind that is checked: how it is stored, what its mutating webhook makes of it, what its validating one says."""

    resource: Resource
    defaulted: Callable[[Obj], Obj]
    judged: Callable[[Obj, Obj | None], Judged]


class Server:
    """The answers of an API server that knows sets of both kinds and what is made of them; only tables."""

    def __init__(self, support: SchedulingSupport = NO_SCHEDULING) -> None:
        """`support` is what the manager has for sets whose pods are scheduled together."""
        types = load_resource("lwskit.embedded", "builtin-types.json")
        self._codec = Codec(types, Defaults(types))
        (lws,), (ds,) = (crds.resources(crd) for crd in (leaderworkerset_crd(), disaggregatedset_crd()))
        self._subjects = {
            names.KIND: _Subject(lws, sets.defaulted, lambda new, old: (sets.faults(new, old, support), ())),
            disaggregated_names.KIND: _Subject(ds, lambda obj: obj, _judged),
        }
        self._workloads = {kind.kind: _resource(kind) for kind in (STATEFUL_SET, DEPLOYMENT)}

    def create(self, obj: Mapping[str, Any], namespace: str) -> Answer:
        """The answer to the creation of a set; one without namespace goes into `namespace`."""
        return self._written(obj, None, namespace)

    def update(self, new: Mapping[str, Any], old: Obj, namespace: str) -> Answer:
        """The answer to the change of a stored set, which `old` is; its UID, if it has one, stays."""
        return self._written(new, old, namespace)

    def workload(self, obj: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Path and text of what is wrong with a StatefulSet or a Deployment that is created."""
        resource = self._workloads[obj["kind"]]
        try:
            decoded = self._codec.decode(resource, clone(dict(obj)), "Ignore")
        except ApiError as error:
            return [(_decode_path(error), error.message)]
        return [(e.field, e.message) for e in validation.create(resource, decoded, _forgiven)]

    def _written(self, obj: Mapping[str, Any], old: Obj | None, namespace: str) -> Answer:
        told: list[str] = []
        subject = self._subjects[obj["kind"]]
        try:
            decoded = self._decode(subject.resource, obj, namespace, told.append)
            changed = self._codec.decode(subject.resource, subject.defaulted(decoded), "Ignore")
        except ApiError as error:
            path = _decode_path(error) or ("" if isinstance(obj.get("metadata", {}), dict | None) else "metadata")
            return Answer(None, (Fault(REFUSED_BY_SCHEMA, path, error.message),))
        noticed = [_told(text, subject.resource.kind) for text in told]
        noticed += (Fault(API_WARNING, _leading_path(t), t) for t in warnings.of(subject.resource, changed, old, ""))
        if "status" in obj and not _is_export(obj):
            noticed.append(Fault(STATUS_IGNORED, "status", "a status in a manifest is not stored"))
        changed.pop("status", None)
        broken = validation.create(subject.resource, changed, _forgiven)
        schema = [Fault(REFUSED_BY_SCHEMA, _place(e), e.message) for e in broken]
        refused, remarks = subject.judged(changed, old)
        faults = [Fault(REFUSED_BY_ADMISSION, e.path, str(e).removeprefix(f"{e.path}: ")) for e in refused]
        noticed += remarks
        if old is not None and "uid" in old["metadata"]:
            changed["metadata"]["uid"] = old["metadata"]["uid"]
        later = [fault for fault in faults if not any(_about_the_same(fault, s) for s in schema)]
        return Answer(changed, (*_once(schema), *_once(later)), tuple(_once(noticed)))

    def _decode(self, resource: Resource, obj: Mapping[str, Any], namespace: str, tell: Any) -> Obj:
        body = clone(dict(obj))
        meta = body.get("metadata")
        if isinstance(meta, dict):
            # What only a server writes says nothing of the manifest.
            for name in ("managedFields", "resourceVersion", "uid"):
                meta.pop(name, None)
        decoded = self._codec.decode(resource, body, "Warn", None, tell)
        found = decoded["metadata"]
        if not found.get("namespace"):
            found["namespace"] = namespace
        if not found.get("name") and found.get("generateName"):
            found["name"] = found["generateName"][:_PREFIX] + _GENERATED
        return decoded


def _resource(kind: Kind) -> Resource:
    return Resource(
        group=kind.group,
        version=kind.version,
        kind=kind.kind,
        plural=kind.plural,
        singular=kind.kind.lower(),
        namespaced=True,
        verbs=(),
        storage=f"{kind.group}/{kind.plural}",
    )


def _forgiven(text: str) -> None:
    """Takes the warnings about broken rules that are forgiven: none are of an object that is created."""


def _is_export(obj: Mapping[str, Any]) -> bool:
    """Whether an object was read from a server and not written by a person."""
    meta = obj.get("metadata")
    return isinstance(meta, dict) and "uid" in meta


def _judged(new: Obj, old: Obj | None) -> Judged:
    verdict = disaggregatedsets.judged(new, old)
    return verdict.faults, [Fault(API_WARNING, remark.path, remark.text) for remark in verdict.remarks]


def _told(text: str, kind: str) -> Fault:
    found = _UNKNOWN.fullmatch(text)
    if found is None:
        return Fault(API_WARNING, "", text)
    return Fault(UNKNOWN_FIELD, found[1], f"the {kind} has no such field; it is dropped")


def _leading_path(text: str) -> str:
    return text.partition(": ")[0]


def _decode_path(error: ApiError) -> str:
    cause = error.__cause__
    return cause.path if isinstance(cause, DecodeError) else ""


def _place(error: FieldError) -> str:
    """The field of an error; where the server names none it may still say it in the text."""
    if error.field != "<nil>":
        return error.field
    found = _UNCHECKED.search(error.message)
    return found[1] if found else ""


def _about_the_same(fault: Fault, other: Fault) -> bool:
    """Whether one fault is of the other's field or of what lies in it; of an object without a place, of everything."""
    field = other.path.removeprefix(".")
    return not field or f"{fault.path}.".startswith((f"{field}.", f"{field}["))


def _once(faults: Iterable[Fault]) -> list[Fault]:
    """Equal faults once."""
    return list(dict.fromkeys(faults))
