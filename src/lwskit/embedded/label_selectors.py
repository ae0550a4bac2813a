"""Label selectors as the query of a list has them, with the refusals of a real server. Pure.

Source: Kubernetes documentation, "Labels and Selectors".
"""

from __future__ import annotations

import re

from lwskit.embedded import names
from lwskit.embedded.failures import bad_request, invalid_value
from lwskit.runtime.errors import InvalidRequest
from lwskit.runtime.objects import Requirement, Selector

_TOKENS = re.compile(r"\s*(?:(?P<sign>!=|==|[=!(),<>])|(?P<word>[^\s=!(),<>]+)|$)")
_OPERATORS = ("in", "notin", "=", "==", "!=", "gt", "lt")
_SIGNS = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt", "in": "In", "notin": "NotIn"}
_END = "'end of string'"


def parse(text: str) -> Selector:
    """Read a selector such as `a=b,c notin (d,e),!f`. Raises InvalidRequest."""
    return _Parser(text).selector()


def _is_word(token: str) -> bool:
    return bool(token) and token[0] not in "=!(),<>"


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = [m["sign"] or m["word"] or "" for m in _TOKENS.finditer(text)]
        self._at = 0

    def _look(self) -> str:
        """The next token; empty at the end."""
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._look()
        self._at += 1
        return token

    def selector(self) -> Selector:
        found: list[Requirement] = []
        while True:
            token = self._look()
            if not token:
                return Selector(tuple(found))
            if not _is_word(token) and token != "!":
                raise bad_request(f"found '{token}', expected: !, identifier, or {_END}")
            try:
                found.append(self._requirement())
            except InvalidRequest as e:
                raise bad_request(f"unable to parse requirement: {e.message}") from None
            token = self._take()
            if not token:
                return Selector(tuple(found))
            if token != ",":
                raise bad_request(f"found '{token}', expected: ',' or {_END}")
            token = self._look()
            if not _is_word(token) and token != "!":
                raise bad_request(f"found '{token}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        key = self._take()
        negated = key == "!"
        if negated:
            key = self._take()
        if not _is_word(key):
            raise bad_request(f"found '{key}', expected: identifier")
        self._check("<nil>", key, names.qualified(key))
        if negated or self._look() in ("", ","):
            return Requirement(key, "DoesNotExist" if negated else "Exists")
        sign = self._take()
        if sign not in _SIGNS:
            raise bad_request(f"found '{sign}', expected: {', '.join(_OPERATORS)}")
        values = self._values() if sign in ("in", "notin") else [self._value()]
        for i, value in enumerate(values):
            self._check(f"values[{i}][{key}]", value, names.label_value(value))
            if sign in "<>" and not re.fullmatch(r"[+-]?\d+", value):
                text = "for 'Gt', 'Lt' operators, the value must be an integer"
                raise bad_request(str(invalid_value(f"values[{i}]", value, text)))
        return Requirement(key, _SIGNS[sign], tuple(values))

    def _check(self, field: str, value: str, texts: list[str]) -> None:
        if texts:
            raise bad_request(str(invalid_value(field, value, "; ".join(texts))))

    def _value(self) -> str:
        if self._look() in ("", ","):
            return ""
        token = self._take()
        if not _is_word(token):
            raise bad_request(f"found '{token}', expected: identifier")
        return token

    def _values(self) -> list[str]:
        token = self._take()
        if token != "(":
            raise bad_request(f"found '{token}' expected: '('")
        found: set[str] = set()
        if self._look() == ")":
            self._take()
            return [""]
        if not _is_word(self._look()) and self._look() != ",":
            raise bad_request(f"found '{self._look()}', expected: ',', ')' or identifier")
        while True:
            token = self._take()
            if _is_word(token):
                found.add(token)
                after = self._look()
                if after not in (",", ")"):
                    raise bad_request(f"found '{after}', expected: ',' or ')'")
            elif token == ",":
                if not found or self._look() in (")", ","):
                    found.add("")
            elif token != ")":
                raise bad_request(f"found '{token}', expected: ',', or identifier")
            if self._look() == ")":
                self._take()
                return sorted(found)
