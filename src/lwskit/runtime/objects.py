"""Reading plain-dict objects: keys, labels, owners, conditions, selectors. Pure; nothing here changes its arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from lwskit.runtime.errors import ApiError, InvalidRequest
from lwskit.runtime.kinds import Kind

Obj = dict[str, Any]
"""An object of the cluster as decoded from JSON. Those from a cache are shared: copy what you change."""


_new_tuple = tuple.__new__


class Key(NamedTuple):
    """Where an object is: its namespace (empty for cluster-scoped kinds) and name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class ObjectRef(NamedTuple):
    """Which object, by kind, place and identity; hashable. `uid` is empty where only the place is known."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""
    resource_version: str = ""

    def as_dict(self) -> Obj:
        """The reference as events carry it, without its empty fields (Kubernetes API reference: ObjectReference)."""
        fields = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
            "resourceVersion": self.resource_version,
        }
        return {k: v for k, v in fields.items() if v}


def key_of(obj: Mapping[str, Any]) -> Key:
    """The key of an object."""
    meta = obj["metadata"]
    # What Key(…) does, at half the price: every event of a watch comes along here.
    return _new_tuple(Key, (meta.get("namespace", ""), meta["name"]))


def ref_of(obj: Mapping[str, Any], kind: Kind) -> ObjectRef:
    """A reference to an object of `kind`, with UID and resourceVersion as it carries them."""
    meta = obj["metadata"]
    return ObjectRef(
        kind.api_version,
        kind.kind,
        meta.get("namespace", ""),
        meta.get("name", ""),
        meta.get("uid", ""),
        meta.get("resourceVersion", ""),
    )


def uid_of(obj: Mapping[str, Any]) -> str:
    """`metadata.uid`, or an empty string before the server has given one."""
    return obj["metadata"].get("uid", "")


def version_of(obj: Mapping[str, Any]) -> str:
    """`metadata.resourceVersion`, or an empty string."""
    return obj["metadata"].get("resourceVersion", "")


def generation_of(obj: Mapping[str, Any]) -> int:
    """`metadata.generation`, 0 where the kind has none."""
    return obj["metadata"].get("generation", 0)


def labels_of(obj: Mapping[str, Any]) -> Mapping[str, str]:
    """`metadata.labels`, never None."""
    return obj["metadata"].get("labels") or {}


def annotations_of(obj: Mapping[str, Any]) -> Mapping[str, str]:
    """`metadata.annotations`, never None."""
    return obj["metadata"].get("annotations") or {}


def is_deleting(obj: Mapping[str, Any]) -> bool:
    """Whether `metadata.deletionTimestamp` is set."""
    return bool(obj["metadata"].get("deletionTimestamp"))


def controller_of(obj: Mapping[str, Any]) -> Obj | None:
    """The owner reference with `controller: true`, or None."""
    for ref in obj["metadata"].get("ownerReferences") or ():
        if ref.get("controller"):
            return ref
    return None


def group_of(api_version: str) -> str:
    """The API group in an `apiVersion`: `apps` in `apps/v1`, empty in `v1`."""
    group, slash, _ = api_version.partition("/")
    return group if slash else ""


def is_of(obj: Mapping[str, Any], kind: Kind) -> bool:
    """Whether an object, or what a reference names, is of `kind`, in any version of its group."""
    return obj.get("kind") == kind.kind and group_of(obj.get("apiVersion", "")) == kind.group


def is_controlled_by(obj: Mapping[str, Any], kind: Kind, uid: str) -> bool:
    """Whether the object's controller is of `kind` (any version of its group) and has that UID."""
    ref = controller_of(obj)
    return ref is not None and is_of(ref, kind) and ref["uid"] == uid


def controller_reference(owner: Mapping[str, Any], kind: Kind) -> Obj:
    """The owner reference that makes `owner`, of `kind`, the controller of what carries it (specification: 70 §12)."""
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def condition_of(obj: Mapping[str, Any], kind: str) -> Obj | None:
    """The entry of `status.conditions` with that type, or None."""
    for condition in (obj.get("status") or {}).get("conditions") or ():
        if condition.get("type") == kind:
            return condition
    return None


def is_true(obj: Mapping[str, Any], condition: str) -> bool:
    """Whether `status.conditions` has that type with status `True`."""
    found = condition_of(obj, condition)
    return bool(found and found.get("status") == "True")


def newer(candidate: str, current: str) -> bool:
    """Whether one resourceVersion is later than another: decimal comparison, which the API guarantees since 1.35.

    Versions that are not decimal numbers are never newer, so that a server with opaque versions only loses a shortcut.
    """
    if not (candidate.isdecimal() and current.isdecimal()):
        return False
    digits, others = len(candidate), len(current)
    return candidate > current if digits == others else digits > others


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition of a label selector: `operator` is In, NotIn, Exists, DoesNotExist, Gt or Lt (of whole numbers)."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels fulfil it; NotIn is fulfilled by an absent key."""
        if self.operator == "Exists":
            return self.key in labels
        if self.operator == "DoesNotExist":
            return self.key not in labels
        if self.operator in ("Gt", "Lt"):
            try:
                value, limit = int(labels[self.key]), int(self.values[0])
            except (KeyError, ValueError):
                return False
            return value > limit if self.operator == "Gt" else value < limit
        inside = self.key in labels and labels[self.key] in self.values
        return inside if self.operator == "In" else not inside

    def __str__(self) -> str:
        if self.operator == "Exists":
            return self.key
        if self.operator == "DoesNotExist":
            return f"!{self.key}"
        if self.operator in ("Gt", "Lt"):
            return f"{self.key}{'>' if self.operator == 'Gt' else '<'}{self.values[0]}"
        if len(self.values) == 1:
            return f"{self.key}{'=' if self.operator == 'In' else '!='}{self.values[0]}"
        return f"{self.key} {'in' if self.operator == 'In' else 'notin'} ({','.join(self.values)})"


@dataclass(frozen=True, slots=True)
class Selector:
    """A label selector: all requirements must hold; none means everything.

    Source: Kubernetes documentation, "Labels and Selectors".
    """

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels fulfil every requirement."""
        return all(r.matches(labels) for r in self.requirements)

    def __str__(self) -> str:
        return ",".join(str(r) for r in self.requirements)

    @classmethod
    def of(cls, labels: Mapping[str, str]) -> Selector:
        """The selector that asks for exactly these values."""
        return cls(tuple(Requirement(k, "In", (v,)) for k, v in sorted(labels.items())))

    @classmethod
    def from_object(cls, selector: Mapping[str, Any] | None) -> Selector:
        """From `{matchLabels, matchExpressions}` (Kubernetes API reference: LabelSelector).

        Raises InvalidRequest for an expression without a key or with another operator than these objects may have.
        """
        selector = selector or {}
        found = list(cls.of(selector.get("matchLabels") or {}).requirements)
        for e in selector.get("matchExpressions") or ():
            key, operator = e.get("key"), e.get("operator")
            if not key or operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
                raise InvalidRequest(
                    f"a label selector has an expression with key {key!r} and operator {operator!r}; "
                    "it needs a key, and In, NotIn, Exists or DoesNotExist"
                )
            found.append(Requirement(key, operator, tuple(e.get("values") or ())))
        return cls(tuple(found))

    @classmethod
    def parse(cls, text: str | None) -> Selector:
        """From query text such as `a=b,c!=d,e in (f,g),h,!i`. Raises InvalidRequest when it cannot be read."""
        return cls(tuple(_requirement(part) for part in _split(text or "")))


def _split(text: str) -> Iterable[str]:
    depth, start = 0, 0
    for i, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            yield text[start:i].strip()
            start = i + 1
    if text[start:].strip():
        yield text[start:].strip()


def _requirement(part: str) -> Requirement:
    if part.endswith(")") and "(" in part:
        head, _, values = part[:-1].partition("(")
        words = head.split()
        if len(words) == 2 and words[1] in ("in", "notin"):
            operator = "In" if words[1] == "in" else "NotIn"
            return Requirement(words[0], operator, tuple(v.strip() for v in values.split(",")))
    for sign, operator in (("!=", "NotIn"), ("==", "In"), ("=", "In")):
        if sign in part:
            key, _, value = part.partition(sign)
            return Requirement(key.strip(), operator, (value.strip(),))
    negated = part.startswith("!")
    key = part.lstrip("!").strip()
    if not key or any(c.isspace() for c in key):
        raise InvalidRequest(f"unable to parse requirement: {part!r} is not a label selector requirement")
    return Requirement(key, "DoesNotExist" if negated else "Exists")


def ignore_not_found(error: ApiError) -> None:
    """Raise the error again unless it says that the object does not exist."""
    if error.reason != "NotFound":
        raise error
