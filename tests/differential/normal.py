"""Answers without what differs between any two servers: identities, versions, addresses and most times become symbols.

Equal symbols stand for equal values, so that it is still seen whether a version changed and a UID stayed.
"""

from __future__ import annotations

import re
from typing import Any

from tests.differential.steps import NAMESPACE

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_VERSION_IN_TEXT = re.compile(r"(?<=[(\"])\d+(?=[)\"])|(?<=current: )\d+")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_GENERATED = re.compile(r"\bgen-[a-z0-9]{5}\b")
_ADDRESS = re.compile(r"\b10\.96\.\d+\.\d+\b")
_GO_DIFF = re.compile(r"(may not change fields other than[^\n]*\n).*", re.DOTALL)
_WHOLE_PATCH = re.compile(r'(patch: |^)Invalid value: "(?:\{|map\[).*?": (?=[A-Za-z])', re.DOTALL)
_MISSING_IN = re.compile(r"(is missing in ')\{.*\}'", re.DOTALL)
_NODE_PORT = re.compile(r"(?<=Duplicate value: )3[0-2]\d{3}\b")
_TYPE_NAME = re.compile(r"\bselfType\d+")
_UNORDERED = ("rules.example.com", "apiextensions.k8s.io")
"""Groups whose refusals tell the errors of several fields in any order."""
_BLAMED = "contributed to estimated rule cost total"
_PLAIN_TIMES = ("creationTimestamp", "deletionTimestamp", "lastTransitionTime", "lastPhaseTransitionTime")


class Normal:
    """Makes the answers of one server comparable; remembers which value has which symbol."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self.masked = False
        """Whether addresses and ports are only said to be there."""
        self._symbols: dict[str, dict[str, str]] = {}

    def symbol(self, kind: str, value: str) -> str:
        """The symbol of a value among those of its kind, numbered as they appear."""
        known = self._symbols.setdefault(kind, {})
        return known.setdefault(value, f"{kind}-{len(known) + 1}")

    def value(self, value: Any, name: str = "") -> Any:
        """A value of an answer, with symbols; `name` is that of the field."""
        if isinstance(value, dict):
            made = {k: self.value(value[k], k) for k in sorted(value)}
            if any(isinstance(c, dict) and c.get("reason") == "FieldManagerConflict" for c in made.get("causes") or ()):
                # In which order managers are named is left to chance.
                made["causes"] = sorted(made["causes"], key=lambda c: (c["message"], c["field"]))
            return _sorted(made)
        if isinstance(value, list):
            return [self.value(v, name) for v in value]
        if name == "resourceVersion" and isinstance(value, str) and value:
            return self.symbol("version", value)
        if name in ("nodePort", "healthCheckNodePort") and isinstance(value, int) and value:
            return "port" if self.masked else self.symbol("port", str(value))
        if not isinstance(value, str):
            return value
        if name in _PLAIN_TIMES and _TIME.fullmatch(value):
            return "time"
        text = value.replace(self._namespace, NAMESPACE)
        text = _UUID.sub(lambda m: self.symbol("uid", m[0]), text)
        text = _GENERATED.sub(lambda m: self.symbol("gen", m[0]), text)
        text = _ADDRESS.sub(lambda m: "address" if self.masked else self.symbol("address", m[0]), text)
        if name == "message":
            text = _VERSION_IN_TEXT.sub(lambda m: self._version(m[0]), text)
            text = text.replace('\\"', "'") if 'Invalid value: "{' in text else text
            text = _WHOLE_PATCH.sub(r'\1Invalid value: "…": ', text)
            text = _MISSING_IN.sub(r"\1…'", text)
            text = _GO_DIFF.sub(r"\1…", text)
            text = _NODE_PORT.sub("port", text)
            text = _TIME.sub("time", text)
            text = _TYPE_NAME.sub("selfType", text)
        return text

    def _version(self, text: str) -> str:
        known = self._symbols.get("version", {})
        return known.get(text, text if len(text) < 2 else "version-?")


def _sorted(status: dict[str, Any]) -> dict[str, Any]:
    """A refusal whose errors come in any order, with them in order."""
    details: Any = status.get("details")
    if status.get("reason") != "Invalid" or not details or details.get("group") not in _UNORDERED:
        return status
    # Which of several rules that cost the same are blamed is left to chance.
    causes = [{**c, "field": "…"} if _BLAMED in c["message"] else c for c in details.get("causes") or ()]
    causes = sorted(causes, key=lambda c: (c["field"], c["message"]))
    before, said, _ = status["message"].partition(" is invalid: ")
    texts = dict.fromkeys(f"{c['field']}: {c['message']}" for c in causes)
    return {**status, "message": before + said + ", ".join(texts), "details": {**details, "causes": causes}}


def differences(one: Any, two: Any, path: str = "") -> list[str]:
    """Where two normal values differ, one line each: `path: first | second`."""
    if isinstance(one, dict) and isinstance(two, dict):
        found = []
        for name in sorted(one.keys() | two.keys(), key=lambda n: (n == "after", n)):
            where = f"{path}.{name}" if path else name
            if name not in one:
                found.append(f"{where}: absent | {_short(two[name])}")
            elif name not in two:
                found.append(f"{where}: {_short(one[name])} | absent")
            else:
                found.extend(differences(one[name], two[name], where))
        return found
    if isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        return [line for i in range(len(one)) for line in differences(one[i], two[i], f"{path}[{i}]")]
    return [] if one == two and type(one) is type(two) else [f"{path}: {_short(one)} | {_short(two)}"]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 2000 else f"{text[:2000]}…"
