"""Forms of names, labels and percentages. Each check gives the texts of what is wrong; none is fine.

Kubernetes documentation: Object Names and IDs, Labels and Selectors.
"""

from __future__ import annotations

import re
from typing import Final

_LABEL_1123: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_1123: Final = rf"{_LABEL_1123}(\.{_LABEL_1123})*"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE: Final = f"({_KEY_NAME})?"
_PERCENT: Final = "[0-9]+%"

_RULES: Final = {
    _LABEL_1123: (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
        "and must start and end with an alphanumeric character"
    ),
    _SUBDOMAIN_1123: (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
        "and must start and end with an alphanumeric character"
    ),
    _LABEL_1035: (
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
        "start with an alphabetic character, and end with an alphanumeric character"
    ),
    _KEY_NAME: (
        "must consist of alphanumeric characters, '-', '_' or '.', "
        "and must start and end with an alphanumeric character"
    ),
    _LABEL_VALUE: (
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
        "and must start and end with an alphanumeric character"
    ),
    _PERCENT: "a valid percent string must be a numeric string followed by an ending '%'",
}
_COMPILED: Final = {pattern: re.compile(pattern, re.ASCII) for pattern in _RULES}
_KEY_EXAMPLES: Final = ("MyName", "my.name", "123-abc")
LABEL_LENGTH: Final = 63
SUBDOMAIN_LENGTH: Final = 253


def _explain(pattern: str, *examples: str) -> str:
    # The two blanks between examples are part of the text that API servers use.
    shown = ", ".join((" or " if i else "") + f"'{example}'" for i, example in enumerate(examples))
    return f"{_RULES[pattern]} (e.g. {shown}, regex used for validation is '{pattern}')"


def _matches(pattern: str, value: str) -> bool:
    return _COMPILED[pattern].fullmatch(value) is not None


def too_long(limit: int) -> str:
    """The text for what has more than `limit` characters."""
    return f"must be no more than {limit} characters"


def _length(value: str, limit: int) -> list[str]:
    return [too_long(limit)] if len(value) > limit or len(value.encode()) > limit else []


def dns_1035_label(value: str) -> list[str]:
    """What keeps a text from being a DNS-1035 label, as names of Services are."""
    faults = _length(value, LABEL_LENGTH)
    if not _matches(_LABEL_1035, value):
        faults.append(_explain(_LABEL_1035, "my-name", "abc-123"))
    return faults


def dns_1123_label(value: str) -> list[str]:
    """What keeps a text from being an RFC 1123 label, as names of namespaces are."""
    faults = _length(value, LABEL_LENGTH)
    if not _matches(_LABEL_1123, value):
        if _matches(_SUBDOMAIN_1123, value):
            faults.append("must not contain dots")
        else:
            faults.append(_explain(_LABEL_1123, "my-name", "123-abc"))
    return faults


def dns_1123_subdomain(value: str) -> list[str]:
    """What keeps a text from being an RFC 1123 subdomain, as most names are."""
    faults = _length(value, SUBDOMAIN_LENGTH)
    if not _matches(_SUBDOMAIN_1123, value):
        faults.append(_explain(_SUBDOMAIN_1123, "example.com"))
    return faults


def label_key(value: str) -> list[str]:
    """What keeps a text from being a label's key: a name, with an optional subdomain and `/` before it."""
    parts = value.split("/")
    if len(parts) > 2:
        explained = _explain(_KEY_NAME, *_KEY_EXAMPLES)
        return [
            f"a valid label key {explained} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    faults: list[str] = []
    if len(parts) == 2:
        prefix_faults = dns_1123_subdomain(parts[0]) if parts[0] else ["must be non-empty"]
        faults += [f"prefix part {fault}" for fault in prefix_faults]
    name = parts[-1]
    if not name:
        faults.append("name part must be non-empty")
    faults += [f"name part {fault}" for fault in _length(name, LABEL_LENGTH)]
    if not _matches(_KEY_NAME, name):
        faults.append(f"name part {_explain(_KEY_NAME, *_KEY_EXAMPLES)}")
    return faults


def label_value(value: str) -> list[str]:
    """What keeps a text from being a label's value."""
    faults = _length(value, LABEL_LENGTH)
    if not _matches(_LABEL_VALUE, value):
        faults.append(_explain(_LABEL_VALUE, "MyValue", "my_value", "12345"))
    return faults


def percent(value: str) -> list[str]:
    """What keeps a text from being a percentage such as `25%`."""
    return [] if _matches(_PERCENT, value) else [_explain(_PERCENT, "1%", "93%")]
