"""Types of CEL expressions, and when a value of one may stand where another is wanted. Pure.

Source: the CEL language definition, "Gradual type checking" and "Parametrised types".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Type:
    """One type. `kind` is the sort of type, `name` what an object, an opaque type or a parameter is called.

    `fields` are those of an object; they do not count when types are compared: objects are told apart by name.
    """

    kind: str
    name: str = ""
    parameters: tuple[Type, ...] = ()
    fields: Mapping[str, Type] = field(default_factory=dict, compare=False, hash=False)

    def __str__(self) -> str:
        name = self.name or self.kind
        return f"{name}({', '.join(map(str, self.parameters))})" if self.parameters else name


BOOL, BYTES, DOUBLE, INT, STRING, UINT = (Type(k) for k in ("bool", "bytes", "double", "int", "string", "uint"))
NULL, DYN, ERROR, DURATION, TIMESTAMP = (Type(k) for k in ("null", "dyn", "!error!", "duration", "timestamp"))
TYPE = Type("type")
_NULLABLE = frozenset({"object", "opaque", "duration", "timestamp"})


def list_of(element: Type) -> Type:
    """A list."""
    return Type("list", "", (element,))


def map_of(key: Type, value: Type) -> Type:
    """A map."""
    return Type("map", "", (key, value))


def optional(inner: Type) -> Type:
    """A value that may be missing."""
    return Type("opaque", "optional_type", (inner,))


def opaque(name: str) -> Type:
    """A type of a library, without anything in it."""
    return Type("opaque", name)


def parameter(name: str) -> Type:
    """A type that is not known yet."""
    return Type("param", name)


def unwrapped(kind: Type) -> tuple[Type, bool]:
    """What an optional holds, and whether it is one."""
    return (kind.parameters[0], True) if kind.name == "optional_type" else (kind, False)


def loose(kind: Type) -> bool:
    """Whether nothing is known of the type, for it is dynamic or of an expression with an error."""
    return kind.kind in ("dyn", "!error!")


class Bindings:
    """What parameters stand for, as it comes out while an expression is checked."""

    __slots__ = ("_bound",)

    def __init__(self, bound: dict[Type, Type] | None = None) -> None:
        self._bound = bound if bound is not None else {}

    def resolve(self, kind: Type, *, free: bool = True) -> Type:
        """The type with its parameters replaced; those that stand for nothing stay, or are dynamic without `free`."""
        found = self._bound.get(kind) if kind.kind == "param" else None
        if found is not None:
            return self.resolve(found, free=free)
        if kind.kind == "param" and not free:
            return DYN
        if not kind.parameters:
            return kind
        return Type(kind.kind, kind.name, tuple(self.resolve(p, free=free) for p in kind.parameters), kind.fields)

    def assignable(self, given: Type, wanted: Type) -> bool:
        """Whether a value of `given` may stand where `wanted` is; binds parameters if so, nothing if not."""
        return self.all_assignable((given,), (wanted,))

    def all_assignable(self, given: Sequence[Type], wanted: Sequence[Type]) -> bool:
        """The same for several types at once."""
        tried = Bindings(dict(self._bound))
        if len(given) != len(wanted) or not all(tried._fits(g, w) for g, w in zip(given, wanted, strict=True)):
            return False
        self._bound = tried._bound
        return True

    def _fits(self, one: Type, two: Type) -> bool:
        if two.kind == "param":
            fits, known = self._substitutes(one, two)
            if fits or known:
                return fits
        if one.kind == "param":
            return self._substitutes(two, one)[0]
        if loose(one) or loose(two):
            return True
        if "null" in (one.kind, two.kind):
            other = two if one.kind == "null" else one
            return other.kind == "null" or other.kind in _NULLABLE
        if one.kind == two.kind == "type":
            return True
        if one.kind != two.kind or one.name != two.name or len(one.parameters) != len(two.parameters):
            return False
        return all(self._fits(a, b) for a, b in zip(one.parameters, two.parameters, strict=True))

    def _substitutes(self, kind: Type, param: Type) -> tuple[bool, bool]:
        """Whether the parameter may stand for the type, and whether it stood for something before."""
        if kind == param:
            return True, True
        bound = self._bound.get(param)
        if bound is not None:
            if kind == bound:
                return True, True
            if not self._fits(kind, bound):
                return False, True
            wider = general(kind, bound)
            if not self._within(param, wider):
                self._bound[param] = wider
            return True, True
        if self._within(param, kind):
            return False, False
        self._bound[param] = kind
        return True, False

    def _within(self, param: Type, kind: Type) -> bool:
        if kind == param:
            return True
        if kind.kind == "param":
            bound = self._bound.get(kind)
            return bound is not None and self._within(param, bound)
        return any(self._within(param, p) for p in kind.parameters)


def general(one: Type, two: Type) -> Type:
    """The wider of two types that fit each other."""
    return one if _covers(one, two) else two


def _covers(one: Type, two: Type) -> bool:
    if one.kind in ("dyn", "param"):
        return True
    if two.kind in ("dyn", "param") or one.kind != two.kind:
        return False
    if one.kind == "type":
        return True
    if one.name != two.name or len(one.parameters) != len(two.parameters):
        return False
    return all(_covers(a, b) for a, b in zip(one.parameters, two.parameters, strict=True))
