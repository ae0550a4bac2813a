"""Functions over quantities, named formats and versions. Pure.

Source: Kubernetes documentation, "Common Expression Language in Kubernetes", on the quantity, format and semver
libraries; Semantic Versioning 2.0.0.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from functools import total_ordering
from typing import Any

from lwskit.embedded import names
from lwskit.embedded.cel import times
from lwskit.embedded.cel.addresses import url_problem
from lwskit.embedded.cel.functions import define
from lwskit.embedded.cel.values import NONE, EvaluationError, Opaque, Optional
from lwskit.runtime import quantity

_QUANTITY, _SEMVER, _FORMAT = "kubernetes.Quantity", "kubernetes.Semver", "kubernetes.NamedFormat"
_WRITTEN = re.compile(r"[+-]?(\d*)(?:\.(\d*))?([a-zA-Z]*)([+-]?\d*)", re.ASCII)
_POWERS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_NO_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_NO_SUFFIX = "unable to parse quantity's suffix"


class Quantity(Opaque):
    """A quantity: its amount, and the power of ten that it is counted in, None for one of arbitrary precision."""

    __slots__ = ("amount", "power")
    type_name = _QUANTITY

    def __init__(self, amount: Fraction, power: int | None) -> None:
        self.amount = amount
        self.power = power

    @property
    def identity(self) -> Fraction:
        """What makes two of them the same."""
        return self.amount

    @property
    def whole(self) -> int | None:
        """The amount as a whole number of 64 bits, if it is counted in such."""
        if self.power is None or self.power < 0 or not -(2**63) <= self.amount < 2**63:
            return None
        return int(self.amount)


def _power(text: str) -> int | None:
    """The power of ten in which a written quantity is counted, as long as 64 bits are enough for it."""
    found = _WRITTEN.fullmatch(text)
    if found is None:
        return None
    whole, places = found[1].lstrip("0") or "0", found[2] or ""
    if found[3] in _BINARY:
        exponent = _BINARY[found[3]]
        return 0 if not places and 15 - len(whole) - int(exponent * 3 / 10) - 1 >= 0 else None
    exponent = int(found[4]) if found[4] else _POWERS.get(found[3], 0)
    counted = exponent - len(places)
    return counted if 18 - len(whole) - len(places) >= 0 and counted >= -9 else None


@define("quantity", f"(string) -> {_QUANTITY}")
def _quantity(text: str) -> Quantity:
    try:
        return Quantity(quantity.parse(text), _power(text))
    except quantity.QuantityError:
        wrong = re.fullmatch(r"[+-]?\d+\.?\d*[eEinumkKMGTP]+[+-]?\d*|[+-]?\.?\d+[+-]\d*", text, re.ASCII)
        raise EvaluationError(_NO_SUFFIX if wrong else _NO_QUANTITY) from None


@define("isQuantity", "(string) -> bool")
def _is_quantity(text: str) -> bool:
    try:
        _quantity(text)
    except EvaluationError:
        return False
    return True


def _sum(one: Quantity, two: Quantity | int, sign: int) -> Quantity:
    other = Quantity(Fraction(two), 0) if isinstance(two, int) else two
    powers = [q.power for q in (one, other) if q.amount]
    known = [p for p in powers if p is not None]
    power = min(known, default=0) if len(known) == len(powers) else None
    return Quantity(one.amount + sign * other.amount, power)


def _compared(one: Any, two: Any) -> int:
    return (one > two) - (one < two)


def _as_integer(one: Quantity) -> int:
    if one.whole is None:
        raise EvaluationError("cannot convert value to integer")
    return one.whole


define("sign", f"({_QUANTITY}) -> int")(lambda q: _compared(q.amount, 0))
define("isInteger", f"({_QUANTITY}) -> bool", member=True)(lambda q: q.whole is not None)
define("asInteger", f"({_QUANTITY}) -> int", member=True)(_as_integer)
define("asApproximateFloat", f"({_QUANTITY}) -> double", member=True)(lambda q: float(q.amount))
_TWO = f"({_QUANTITY}, {_QUANTITY})"
define("isGreaterThan", f"{_TWO} -> bool", member=True)(lambda a, b: a.amount > b.amount)
define("isLessThan", f"{_TWO} -> bool", member=True)(lambda a, b: a.amount < b.amount)
define("compareTo", f"{_TWO} -> int", member=True)(lambda a, b: _compared(a.amount, b.amount))
_WITH = (f"{_TWO} -> {_QUANTITY}", f"({_QUANTITY}, int) -> {_QUANTITY}")
define("add", *_WITH, member=True)(lambda a, b: _sum(a, b, 1))
define("sub", *_WITH, member=True)(lambda a, b: _sum(a, b, -1))


# -- versions ----------------------------------------------------------------------------------------------------------


@total_ordering
class Semver(Opaque):
    """A version."""

    __slots__ = ("numbers", "pre")
    type_name = _SEMVER

    def __init__(self, numbers: tuple[int, ...], pre: tuple[tuple[int, int, str], ...]) -> None:
        self.numbers = numbers
        self.pre = pre

    @property
    def identity(self) -> Any:
        """What makes two of them the same."""
        return self.numbers, self.pre

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)

    def __lt__(self, other: Semver) -> bool:
        return self.key < other.key

    @property
    def key(self) -> Any:
        """What orders versions: one before a release is older than it."""
        return self.numbers, not self.pre, self.pre


def _number(text: str, what: str) -> int:
    if not re.fullmatch("[0-9]+", text):
        raise EvaluationError(f'Invalid character(s) found in {what} number "{text}"')
    if len(text) > 1 and text[0] == "0":
        raise EvaluationError(f'{what.capitalize()} number must not contain leading zeroes "{text}"')
    return int(text)


def read_semver(text: str, loose: bool = False) -> Semver:
    """A version; a loose one may begin with `v`, have leading zeros, and lack numbers. Raises EvaluationError."""
    if loose:
        text = _normalised(text)
    if not text:
        raise EvaluationError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise EvaluationError("No Major.Minor.Patch elements found")
    major, minor = _number(parts[0], "major"), _number(parts[1], "minor")
    rest, plus, build = parts[2].partition("+")
    patch, dash, pre = rest.partition("-")
    number = _number(patch, "patch")
    marks: list[tuple[int, int, str]] = []
    for one in pre.split(".") if dash else ():
        if not one:
            raise EvaluationError("Prerelease is empty")
        if one.isascii() and one.isdigit():
            if len(one) > 1 and one[0] == "0":
                raise EvaluationError(f'Numeric PreRelease version must not contain leading zeroes "{one}"')
            marks.append((0, int(one), ""))
        elif re.fullmatch("[0-9A-Za-z-]+", one):
            marks.append((1, 0, one))
        else:
            raise EvaluationError(f'Invalid character(s) found in prerelease "{one}"')
    for one in build.split(".") if plus else ():
        if not one:
            raise EvaluationError("Build meta data is empty")
        if not re.fullmatch("[0-9A-Za-z-]+", one):
            raise EvaluationError(f'Invalid character(s) found in build meta data "{one}"')
    return Semver((major, minor, number), tuple(marks))


def _normalised(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    for i, part in enumerate(parts):
        if len(part) > 1:
            short = part.lstrip("0")
            parts[i] = f"0{short}" if not short or not short[0].isdigit() else short
    if len(parts) < 3:
        if re.search("[+-]", parts[-1]):
            raise EvaluationError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


@define("isSemver", "(string) -> bool", "(string, bool) -> bool")
def _is_semver(text: str, loose: bool = False) -> bool:
    try:
        read_semver(text, loose)
    except EvaluationError:
        return False
    return True


define("semver", f"(string) -> {_SEMVER}", f"(string, bool) -> {_SEMVER}")(read_semver)
_VERSIONS = f"({_SEMVER}, {_SEMVER})"
define("isGreaterThan", f"{_VERSIONS} -> bool", member=True)(lambda a, b: a.key > b.key)
define("isLessThan", f"{_VERSIONS} -> bool", member=True)(lambda a, b: a.key < b.key)
define("compareTo", f"{_VERSIONS} -> int", member=True)(lambda a, b: _compared(a.key, b.key))
for _place, _name in enumerate(("major", "minor", "patch")):
    define(_name, f"({_SEMVER}) -> int", member=True)(lambda v, i=_place: v.numbers[i])


# -- formats -----------------------------------------------------------------------------------------------------------


class Format(Opaque):
    """A named format and the check for it."""

    __slots__ = ("check", "name")
    type_name = _FORMAT

    def __init__(self, name: str, check: Callable[[str], list[str]]) -> None:
        self.name = name
        self.check = check

    @property
    def identity(self) -> str:
        """What makes two of them the same."""
        return self.name


_UUID = r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"
_BASE64 = r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"


def _prefix(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """The check of what a name is to be generated from: it may end with a dash."""
    return lambda text: check(f"{text[:-1]}a" if len(text) > 1 and text.endswith("-") else text)


def _pattern(pattern: str, wrong: str) -> Callable[[str], list[str]]:
    return lambda text: [] if re.fullmatch(pattern, text) else [wrong]


def _url_format(text: str) -> list[str]:
    wrong = url_problem(text)
    return [wrong] if wrong else []


FORMATS = {
    "dns1123Label": Format("DNS1123Label", names.label),
    "dns1123Subdomain": Format("DNS1123Subdomain", names.subdomain),
    "dns1035Label": Format("DNS1035Label", names.dns_1035),
    "qualifiedName": Format("QualifiedName", names.qualified),
    "dns1123LabelPrefix": Format("DNS1123LabelPrefix", _prefix(names.label)),
    "dns1123SubdomainPrefix": Format("DNS1123SubdomainPrefix", _prefix(names.subdomain)),
    "dns1035LabelPrefix": Format("DNS1035LabelPrefix", _prefix(names.dns_1035)),
    "labelValue": Format("LabelValue", names.label_value),
    "uri": Format("URI", _url_format),
    "uuid": Format("uuid", _pattern(_UUID, "does not match the UUID format")),
    "byte": Format("byte", _pattern(_BASE64, "invalid base64")),
    "date": Format("date", lambda text: [] if times.read_date(text) else ["invalid date"]),
    "datetime": Format("datetime", lambda text: [] if times.read_timestamp(text) else ["invalid datetime"]),
}
"""The formats, by the names of the functions that give them."""

for _name, _format in FORMATS.items():
    define(f"format.{_name}", f"() -> {_FORMAT}")(lambda f=_format: f)


@define("format.named", f"(string) -> optional({_FORMAT})")
def _named(name: str) -> Optional:
    return Optional(FORMATS[name]) if name in FORMATS else NONE


@define("validate", f"({_FORMAT}, string) -> optional(list(string))", member=True)
def _validate(form: Format, text: str) -> Optional:
    wrong = form.check(text)
    return Optional(wrong) if wrong else NONE
