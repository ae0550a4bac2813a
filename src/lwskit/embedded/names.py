"""Rules for names, labels and keys, with the texts of a real server. Pure; every check returns what is wrong."""

from __future__ import annotations

import re

LABEL_LIMIT, SUBDOMAIN_LIMIT = 63, 253

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_UNDERSCORED = r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_DNS_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"

LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    f"with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_QUALIFIED_REST = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_QUALIFIED}')"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'({_QUALIFIED})?')"
)
_DNS_1035_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    f"'{_DNS_1035}')"
)
_CONFIG_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    f"'key-name', regex used for validation is '{_CONFIG_KEY}')"
)


def label(name: str) -> list[str]:
    """A DNS label (RFC 1123)."""
    found = []
    if len(name) > LABEL_LIMIT:
        found.append(f"must be no more than {LABEL_LIMIT} characters")
    if not re.fullmatch(_LABEL, name):
        if "." in name and re.fullmatch(_SUBDOMAIN, name):
            found.append("must not contain dots")
        else:
            found.append(LABEL_TEXT)
    return found


def subdomain(name: str) -> list[str]:
    """A DNS subdomain (RFC 1123)."""
    found = []
    if len(name) > SUBDOMAIN_LIMIT:
        found.append(f"must be no more than {SUBDOMAIN_LIMIT} characters")
    if not re.fullmatch(_SUBDOMAIN, name):
        found.append(SUBDOMAIN_TEXT)
    return found


def subdomain_with_underscores(name: str) -> list[str]:
    """A DNS subdomain whose parts may have underscores, as of services."""
    found = []
    if len(name) > SUBDOMAIN_LIMIT:
        found.append(f"must be no more than {SUBDOMAIN_LIMIT} characters")
    if not re.fullmatch(_UNDERSCORED, name):
        found.append(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and "
            "must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
            f"'{_UNDERSCORED}')"
        )
    return found


def dns_1035(name: str) -> list[str]:
    """A DNS label that begins with a letter (RFC 1035)."""
    found = []
    if len(name) > LABEL_LIMIT:
        found.append(f"must be no more than {LABEL_LIMIT} characters")
    if not re.fullmatch(_DNS_1035, name):
        found.append(_DNS_1035_TEXT)
    return found


def path_segment(name: str) -> list[str]:
    """A name that is one segment of a path, as for roles."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{c}'" for c in ("/", "%") if c in name]


def qualified(name: str) -> list[str]:
    """A label or annotation key: an optional DNS prefix and a name."""
    parts = name.split("/")
    if len(parts) > 2:
        text = _QUALIFIED_REST.replace("must consist", "a valid label key must consist", 1)
        return [f"{text} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    found = []
    if len(parts) == 2:
        prefix = parts[0]
        if not prefix:
            found.append("prefix part must be non-empty")
        else:
            found.extend(f"prefix part {text}" for text in subdomain(prefix))
    last = parts[-1]
    if not last:
        found.append("name part must be non-empty")
    elif len(last) > LABEL_LIMIT:
        found.append(f"name part must be no more than {LABEL_LIMIT} bytes")
    if not re.fullmatch(_QUALIFIED, last):
        found.append(f"name part {_QUALIFIED_REST}")
    return found


def label_value(value: str) -> list[str]:
    """The value of a label."""
    found = []
    if len(value) > LABEL_LIMIT:
        found.append(f"must be no more than {LABEL_LIMIT} bytes")
    if value and not re.fullmatch(_QUALIFIED, value):
        found.append(_VALUE_TEXT)
    return found


def config_key(name: str) -> list[str]:
    """A key of a config map or secret."""
    if len(name) > SUBDOMAIN_LIMIT:
        return [f"must be no more than {SUBDOMAIN_LIMIT} characters"]
    if name in (".", ".."):
        return [f"must not be '{name}'"]
    return [] if re.fullmatch(_CONFIG_KEY, name) else [_CONFIG_TEXT]


def port_name(name: str) -> list[str]:
    """The name of a port (IANA service name)."""
    found = []
    if len(name) > 15:
        found.append("must be no more than 15 characters")
    if not re.fullmatch("[-a-z0-9]+", name):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", name):
        found.append("must contain at least one letter (a-z)")
    if "--" in name:
        found.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return found
