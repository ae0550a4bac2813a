"""Field selectors: their text taken apart and put together, and what can be known of them without the server. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lwskit.runtime.errors import InvalidRequest

NAME, NAMESPACE = "metadata.name", "metadata.namespace"


@dataclass(frozen=True, slots=True)
class Term:
    """One condition of a field selector: the field has the value, or with `exact` False another one."""

    field: str
    value: str
    exact: bool = True

    def __str__(self) -> str:
        value = self.value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
        return f"{self.field}{'=' if self.exact else '!='}{value}"


def parse(text: str | None) -> tuple[Term, ...]:
    """The conditions of a selector such as `spec.nodeName=n,status.phase!=Failed`; all must hold.

    A backslash takes its meaning from the character after it. Raises InvalidRequest for text that is no selector.
    Source: Kubernetes documentation, "Field Selectors".
    """
    return tuple(_term(part) for part in _split(text or "", ","))


def join(terms: Iterable[Term]) -> str:
    """The text of a selector in which all these conditions hold."""
    return ",".join(str(term) for term in terms)


def exact_value(terms: Iterable[Term], field: str) -> str | None:
    """The only value that a field may have, or None where the selector leaves that open."""
    return next((term.value for term in terms if term.field == field and term.exact), None)


def matches(terms: Iterable[Term], obj: Mapping[str, Any]) -> bool | None:
    """Whether an object fulfils the conditions; None where only the server knows which field they mean.

    Name and namespace are the fields that every kind has.
    """
    meta, unknown = obj["metadata"], False
    for term in terms:
        if term.field not in (NAME, NAMESPACE):
            unknown = True
            continue
        value = meta.get("name" if term.field == NAME else "namespace", "")
        if (value == term.value) != term.exact:
            return False
    return None if unknown else True


def _split(text: str, separator: str) -> list[str]:
    parts, start, i = list[str](), 0, 0
    while i < len(text):
        if text[i] == "\\":
            i += 1
        elif text[i] == separator:
            parts.append(text[start:i])
            start = i + 1
        i += 1
    return [part for part in (*parts, text[start:]) if part.strip()]


def _term(part: str) -> Term:
    i = 0
    while i < len(part):
        if part[i] == "\\":
            i += 2
            continue
        for sign in ("!=", "==", "="):
            if part.startswith(sign, i):
                return Term(part[:i].strip(), _unescaped(part[i + len(sign) :].strip(), part), sign != "!=")
        i += 1
    raise InvalidRequest(f"invalid field selector {part!r}: write field=value or field!=value")


def _unescaped(value: str, part: str) -> str:
    text, i = "", 0
    while i < len(value):
        if value[i] in ",=":
            raise InvalidRequest(f"invalid field selector {part!r}: put a backslash before {value[i]!r} in a value")
        if value[i] == "\\":
            i += 1
            if i == len(value) or value[i] not in "\\,=":
                raise InvalidRequest(f"invalid field selector {part!r}: a backslash stands before a comma or an equals")
        text += value[i]
        i += 1
    return text
