"""Functions over URLs, IP addresses and networks. Pure.

Sources: Kubernetes documentation, "Common Expression Language in Kubernetes", on the URL, IP address and CIDR
libraries; documentation of Go's packages net/url and net/netip, on what they read.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote, unquote_plus

from lwskit.embedded.cel.functions import define
from lwskit.embedded.cel.values import EvaluationError, Map, Opaque, no_overload

_URL, _IP, _CIDR = "kubernetes.URL", "net.IP", "net.CIDR"
_ESCAPED = re.compile(r"%(?![0-9a-fA-F]{2}).{0,2}")
_PATH_SAFE = "$&+,/:;=@!'()*~-_.[]"


class _Wrong(ValueError):
    """What a text has that it may not have."""


class Url(Opaque):
    """A URL taken apart."""

    __slots__ = ("host", "path", "query", "scheme", "text")
    type_name = _URL

    def __init__(self, text: str) -> None:
        self.text = text
        self.scheme = self.host = self.path = self.query = ""
        if re.search(r"[\x00-\x1f\x7f]", text):
            raise _Wrong("net/url: invalid control character in URL")
        if not text:
            raise _Wrong("empty url")
        if text == "*":
            self.path = "*"
            return
        rest = self._without_scheme(text.partition("#")[0] if _begins(text) else text)
        rest, _, self.query = rest.partition("?")
        if not rest.startswith("/"):
            if self.scheme:
                return
            raise _Wrong("invalid URI for request")
        if self.scheme and rest.startswith("//"):
            authority, slash, path = rest[2:].partition("/")
            self.host = _host(authority.rpartition("@")[2], self.scheme)
            rest = slash + path
        _check_escapes(rest)
        self.path = rest

    def _without_scheme(self, text: str) -> str:
        found = re.match(r"([a-zA-Z][a-zA-Z0-9+.-]*)?:", text)
        if found is None:
            return text
        if not found[1]:
            raise _Wrong("missing protocol scheme")
        self.scheme = found[1].lower()
        return text[found.end() :]

    @property
    def identity(self) -> str:
        """What makes two of them the same."""
        return self.text

    @property
    def hostname(self) -> str:
        """The host without its port and without brackets."""
        if self.host.startswith("["):
            return self.host[1:].partition("]")[0]
        return self.host.partition(":")[0]

    @property
    def port(self) -> str:
        """The port, or an empty text."""
        return self.host.rpartition("]")[2].partition(":")[2]

    @property
    def escaped_path(self) -> str:
        """The path, with escapes where it needs them."""
        if re.fullmatch(r"(?:[A-Za-z0-9$&+,/:;=@!'()*~_.\[\]-]|%[0-9a-fA-F]{2})*", self.path):
            return self.path
        plain = unquote(self.path).encode()
        return "".join(
            chr(b) if chr(b).isascii() and (chr(b).isalnum() or chr(b) in _PATH_SAFE) else f"%{b:02X}" for b in plain
        )

    @property
    def values(self) -> Map:
        """The parameters of the query: for each name the texts given."""
        found: dict[str, list[str]] = {}
        for part in self.query.split("&"):
            name, _, value = part.partition("=")
            if part and ";" not in part and not _ESCAPED.search(part):
                found.setdefault(unquote_plus(name), []).append(unquote_plus(value))
        return Map(found.items())


def _begins(text: str) -> bool:
    """Whether a fragment can be cut off: it could not be part of what makes the URL one."""
    return text.startswith("/") or ":" in text.partition("#")[0]


def _check_escapes(text: str) -> None:
    wrong = _ESCAPED.search(text)
    if wrong:
        raise _Wrong(f"invalid URL escape {json.dumps(wrong[0], ensure_ascii=False)}")


def _host(host: str, scheme: str) -> str:
    if "[" in host[1:]:
        raise _Wrong("invalid IP-literal")
    if host.startswith("["):
        inside, closed, port = host[1:].rpartition("]")
        if not closed:
            raise _Wrong("missing ']' in host")
        _check_port(port)
        try:
            if _address(inside).version == 4:
                raise _Wrong("invalid IP-literal")
        except EvaluationError as e:
            raise _Wrong(f"invalid host: {e}") from None
        return host
    name, colon, port = host.partition(":")
    if ":" in port and scheme not in ("http", "https"):
        port = port.rpartition(":")[2]
    _check_port(colon + port)
    _check_escapes(name)
    bad = re.search(r"[ <>\"{}|\\^`]", name)
    if bad:
        raise _Wrong(f"invalid character {json.dumps(bad[0])} in host name")
    return host


def _check_port(port: str) -> None:
    if port and not re.fullmatch(r":[0-9]*", port):
        raise _Wrong(f"invalid port {json.dumps(port, ensure_ascii=False)} after host")


def url_problem(text: str) -> str:
    """What is wrong with a text as a URL; empty if nothing is."""
    try:
        Url(text)
    except _Wrong as e:
        return f"parse {json.dumps(text, ensure_ascii=False)}: {e}"
    return ""


@define("url", f"(string) -> {_URL}")
def _url(text: str) -> Url:
    wrong = url_problem(text)
    if wrong:
        raise EvaluationError(f"URL parse error during conversion from string: {wrong}")
    return Url(text)


define("isURL", "(string) -> bool")(lambda text: not url_problem(text))
define("getScheme", f"({_URL}) -> string", member=True)(lambda u: u.scheme)
define("getHost", f"({_URL}) -> string", member=True)(lambda u: u.host)
define("getHostname", f"({_URL}) -> string", member=True)(lambda u: u.hostname)
define("getPort", f"({_URL}) -> string", member=True)(lambda u: u.port)
define("getEscapedPath", f"({_URL}) -> string", member=True)(lambda u: u.escaped_path)
define("getQuery", f"({_URL}) -> map(string, list(string))", member=True)(lambda u: u.values)


# -- addresses ---------------------------------------------------------------------------------------------------------

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Ip(Opaque):
    """An IP address."""

    __slots__ = ("address",)
    type_name = _IP

    def __init__(self, address: Address) -> None:
        self.address = address

    @property
    def identity(self) -> Address:
        """What makes two of them the same."""
        return self.address

    def __str__(self) -> str:
        return str(self.address)


class Cidr(Opaque):
    """A network: an address and how many of its bits count."""

    __slots__ = ("address", "bits")
    type_name = _CIDR

    def __init__(self, address: Address, bits: int) -> None:
        self.address = address
        self.bits = bits

    @property
    def network(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        """The network, without the bits that do not count."""
        return ipaddress.ip_network((self.address, self.bits), strict=False)

    @property
    def identity(self) -> tuple[Address, int]:
        """What makes two of them the same."""
        return self.address, self.bits

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"


def _v4_problem(text: str) -> str:
    """What is wrong with four numbers with dots, in the order in which it is read."""
    value = places = digits = 0
    for at, char in enumerate(text):
        if char in "0123456789":
            if digits == 1 and value == 0:
                return "IPv4 field has octet with leading zero"
            value, digits = value * 10 + int(char), digits + 1
            if value > 255:
                return "IPv4 field has value >255"
        elif char == ".":
            if at == 0 or at == len(text) - 1 or text[at - 1] == ".":
                return f"IPv4 field must have at least one digit (at {json.dumps(text[at:])})"
            if places == 3:
                return "IPv4 address too long"
            value, digits, places = 0, 0, places + 1
        else:
            return f"unexpected character (at {json.dumps(text[at:], ensure_ascii=False)})"
    return "IPv4 address too short" if places < 3 else ""


def _address(text: str) -> Address:
    """The address. Raises EvaluationError for a text that is none."""
    first = re.search(r"[.:%]", text)
    problem = "unable to parse IP"
    if first and first[0] == ".":
        problem = _v4_problem(text)
        if not problem:
            return ipaddress.IPv4Address(text)
    elif first and first[0] == "%":
        problem = "missing IPv6 address"
    elif first:
        try:
            return ipaddress.IPv6Address(text)
        except ValueError:
            problem = _v6_problem(text)
    raise EvaluationError(f"ParseAddr({json.dumps(text, ensure_ascii=False)}): {problem}")


def _v6_problem(text: str) -> str:
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        return "zone must be a non-empty string"
    groups, doubled = 0, rest.startswith("::")
    rest = rest[2:] if doubled else rest
    while groups < 8:
        found = re.match("[0-9a-fA-F]*", rest)
        size = found.end() if found else 0
        where = f" (at {json.dumps(rest, ensure_ascii=False)})"
        if size > 4:
            return f"each group must have 4 or less digits{where}"
        if not size:
            return f"each colon-separated field must have at least one digit{where}"
        groups, rest = groups + 1, rest[size:]
        where = f" (at {json.dumps(rest, ensure_ascii=False)})"
        if not rest:
            break
        if rest[0] != ":":
            return f"unexpected character, want colon{where}"
        if rest == ":":
            return f"colon must be followed by more characters{where}"
        rest = rest[1:]
        if rest[0] == ":":
            if doubled:
                return f"multiple :: in address (at {json.dumps(rest, ensure_ascii=False)})"
            doubled, rest = True, rest[1:]
            if not rest:
                break
    if rest:
        return f"trailing garbage after address (at {json.dumps(rest, ensure_ascii=False)})"
    return "the :: must expand to at least one field of zeros" if groups == 8 else "address string too short"


def read_ip(text: str) -> Ip:
    """An address without a zone. Raises EvaluationError for anything else."""
    shown = json.dumps(text, ensure_ascii=False)
    try:
        found = _address(text)
    except EvaluationError as e:
        raise EvaluationError(f"IP Address {shown} parse error during conversion from string: {e}") from None
    if isinstance(found, ipaddress.IPv6Address):
        if found.scope_id:
            raise EvaluationError(f"IP address {shown} with zone value is not allowed")
        if found.ipv4_mapped:
            raise EvaluationError(f"IPv4-mapped IPv6 address {shown} is not allowed")
    return Ip(found)


def read_cidr(text: str) -> Cidr:
    """A network. Raises EvaluationError for anything else."""
    shown = json.dumps(text, ensure_ascii=False)
    address, slash, bits = text.rpartition("/")
    problem, found = "", None
    if not slash:
        problem = "no '/'"
    else:
        try:
            found = _address(address)
        except EvaluationError as e:
            problem = str(e)
    if found is not None:
        if isinstance(found, ipaddress.IPv6Address) and found.scope_id:
            problem = "IPv6 zones cannot be present in a prefix"
        elif not re.fullmatch("0|[1-9][0-9]*", bits):
            problem = f"bad bits after slash: {json.dumps(bits, ensure_ascii=False)}"
        elif int(bits) > found.max_prefixlen:
            problem = "prefix length out of range"
    if problem or found is None:
        text = f"network address parse error during conversion from string: netip.ParsePrefix({shown}): {problem}"
        raise EvaluationError(f"network address parse error during conversion from string: {text}")
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped:
        text = f"IPv4-mapped IPv6 address {shown} is not allowed"
        raise EvaluationError(f"network address parse error during conversion from string: {text}")
    return Cidr(found, int(bits))


def _readable(read: Callable[[str], Any]) -> Callable[[str], bool]:
    def test(text: str) -> bool:
        try:
            read(text)
        except EvaluationError:
            return False
        return True

    return test


def _link_local_multicast(ip: Ip) -> bool:
    if ip.address.version == 4:
        return ip.address in ipaddress.IPv4Network("224.0.0.0/24")
    packed = ip.address.packed
    return packed[0] == 0xFF and packed[1] & 0x0F == 2


def _global_unicast(ip: Ip) -> bool:
    a = ip.address
    broadcast = a == ipaddress.IPv4Address("255.255.255.255")
    return not (a.is_unspecified or a.is_loopback or a.is_multicast or a.is_link_local or broadcast)


def _contains_ip(net: Cidr, one: Ip | str) -> bool:
    try:
        ip = read_ip(one) if isinstance(one, str) else one
    except EvaluationError:
        raise no_overload() from None
    return ip.address.version == net.address.version and ip.address in net.network


def _contains_cidr(net: Cidr, one: Cidr | str) -> bool:
    other = read_cidr(one) if isinstance(one, str) else one
    if other.address.version != net.address.version:
        return False
    return net.network.overlaps(other.network) and net.bits <= other.bits


define("ip", f"(string) -> {_IP}")(read_ip)
define("isIP", "(string) -> bool")(_readable(read_ip))
define("ip.isCanonical", "(string) -> bool")(lambda text: str(read_ip(text)) == text)
define("family", f"({_IP}) -> int", member=True)(lambda ip: ip.address.version)
define("isUnspecified", f"({_IP}) -> bool", member=True)(lambda ip: ip.address.is_unspecified)
define("isLoopback", f"({_IP}) -> bool", member=True)(lambda ip: ip.address.is_loopback)
define("isLinkLocalMulticast", f"({_IP}) -> bool", member=True)(_link_local_multicast)
define("isLinkLocalUnicast", f"({_IP}) -> bool", member=True)(lambda ip: ip.address.is_link_local)
define("isGlobalUnicast", f"({_IP}) -> bool", member=True)(_global_unicast)
define("string", f"({_IP}) -> string", f"({_CIDR}) -> string")(str)
define("cidr", f"(string) -> {_CIDR}")(read_cidr)
define("isCIDR", "(string) -> bool")(_readable(read_cidr))
define("containsIP", f"({_CIDR}, string) -> bool", f"({_CIDR}, {_IP}) -> bool", member=True)(_contains_ip)
define("containsCIDR", f"({_CIDR}, string) -> bool", f"({_CIDR}, {_CIDR}) -> bool", member=True)(_contains_cidr)
define("ip", f"({_CIDR}) -> {_IP}", member=True)(lambda net: Ip(net.address))
define("prefixLength", f"({_CIDR}) -> int", member=True)(lambda net: net.bits)
define("masked", f"({_CIDR}) -> {_CIDR}", member=True)(lambda net: Cidr(net.network.network_address, net.bits))
