"""What can be told of URLs, names and headers before they are used. Each says what is wrong, or None. Pure."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

_HEADER = re.compile(r"[\t\x20-\x7e\x80-\uffff]*")
_HOST = re.compile(r"[!-~]+")


def bad_url(url: object) -> str | None:
    """Why this cannot be the URL of an API server."""
    if not isinstance(url, str) or not url.startswith(("http://", "https://")):
        return "it must start with https:// or http://, as in https://127.0.0.1:6443"
    parts = _split(url)
    if isinstance(parts, str):
        return parts
    if parts.username is not None or parts.password is not None:
        return "it must not hold a user and password; write these where credentials are"
    if "?" in url or "#" in url:
        return "it must not have a query or a fragment"
    if not _HOST.fullmatch(parts.path or "/"):
        return "its path has characters that must be percent-encoded"
    return bad_host(parts.hostname or "")


def bad_proxy(url: object) -> str | None:
    """Why this cannot be the URL of a proxy."""
    if not isinstance(url, str) or "://" not in url:
        return "it must be a URL, as in http://127.0.0.1:3128"
    scheme = url.partition(":")[0].lower()
    if scheme not in ("http", "https"):
        return f"proxies with {scheme}:// are not supported; use an http:// or https:// proxy"
    parts = _split(url)
    return parts if isinstance(parts, str) else bad_host(parts.hostname or "")


def bad_host(name: str) -> str | None:
    """Why this cannot be the name of a server."""
    if ":" in name:
        return None
    if not _HOST.fullmatch(name):
        return f"the host name {name!r} must be plain ASCII without spaces" if name else "it has no host"
    if any(not label or len(label) > 63 for label in name.removesuffix(".").split(".")) or len(name) > 253:
        return f"the host name {name!r} has a part that is empty or too long"
    return None


def bad_header(value: object) -> str | None:
    """Why this cannot be the value of a header."""
    if isinstance(value, str) and _HEADER.fullmatch(value):
        return None
    return "it must be text without line breaks and other control characters"


def _split(url: str) -> SplitResult | str:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as e:
        return f"it is not a URL ({e})"
    return parts if port != 0 else "its port must not be 0"
