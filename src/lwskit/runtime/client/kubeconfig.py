"""Reading kubeconfig files: which cluster, with which credentials. Files are read, nothing is requested.

Source: Kubernetes documentation, "Organizing Cluster Access Using kubeconfig Files" and the v1 Config reference.
"""

from __future__ import annotations

import base64
import binascii
import os
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from lwskit.runtime.client.checks import bad_header, bad_host, bad_proxy, bad_url
from lwskit.runtime.client.contexts import add_client_certificate, tls_context
from lwskit.runtime.client.provider import is_token
from lwskit.runtime.errors import ConfigurationError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds its token and the cluster's CA."""


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach one cluster. `source` names for messages where that is written.

    A header may have several values. At most one of `token`, `token_file` and `plugin` is set. `plugin` is the user's
    entry where that has an exec plugin or an auth provider, with `config` the whole of the file, `context` its context
    and `base` its directory.
    """

    url: str
    source: str
    tls: ssl.SSLContext | None = None
    server_name: str | None = None
    proxy: str | None = None
    token: str | None = None
    token_file: Path | None = None
    headers: Mapping[str, str | Sequence[str]] = field(default_factory=dict)
    plugin: Mapping[str, Any] | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    context: str = ""
    base: Path = Path()
    namespace: str = ""
    """Where requests about namespaced objects go unless told otherwise; empty where nothing is said."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A named entry of a kubeconfig, and which file it comes from."""

    what: str
    name: str
    body: Mapping[str, Any]
    path: Path

    def error(self, text: str) -> ConfigurationError:
        return ConfigurationError(f"kubeconfig {self.path}, {self.what} {self.name!r}: {text}")

    def text(self, field_name: str) -> str | None:
        value = self.body.get(field_name)
        if value is not None and not isinstance(value, str):
            raise self.error(f"{field_name} must be text, not {value!r}")
        return value or None

    def refuse(self, field_name: str, value: object, why: str | None) -> None:
        """Raise the error that a value cannot be used, if there is a reason."""
        if why is not None:
            raise self.error(f"{field_name} {value!r} cannot be used: {why}")

    def pem(self, field_name: str) -> str | None:
        """PEM text given in place, or in the file that the field without `-data` names."""
        data = self.text(f"{field_name}-data")
        if data:
            try:
                return base64.b64decode("".join(data.split()), validate=True).decode("ascii")
            except (binascii.Error, UnicodeDecodeError) as e:
                raise self.error(f"{field_name}-data is not base64 of PEM text; copy it again") from e
        named = self.text(field_name)
        if not named:
            return None
        path = self.path.parent / Path(named).expanduser()
        try:
            return path.read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError) as e:
            raise self.error(f"{field_name} {path} cannot be read: {_reason(e)}") from e


def from_kubeconfig(paths: list[Path], context: str | None = None) -> Access:
    """What a kubeconfig says, or several merged: of entries with one name the first counts.

    Raises ConfigurationError.
    """
    documents = [(path, _load(path)) for path in paths]
    chosen = context or next((d["current-context"] for _, d in documents if d.get("current-context")), None)
    files = os.pathsep.join(str(path) for path, _ in documents)
    if chosen is not None and not isinstance(chosen, str):
        raise ConfigurationError(f"kubeconfig {files}: current-context must be text, not {chosen!r}; put it in quotes")
    if not chosen:
        raise ConfigurationError(f"kubeconfig {files} has no current-context; name one of its contexts")
    link = _find(documents, "contexts", "context", chosen)
    if link is None:
        known = ", ".join(sorted(_names(documents, "contexts"))) or "none"
        raise ConfigurationError(f"kubeconfig {files} has no context {chosen!r}; it has: {known}")
    cluster = _find(documents, "clusters", "cluster", link.text("cluster") or "")
    if cluster is None:
        raise link.error(f"its cluster {link.body.get('cluster')!r} is not in the file")
    user_name = link.text("user")
    user = _find(documents, "users", "user", user_name) if user_name else _Entry("user", "", {}, link.path)
    if user is None:
        raise link.error(f"its user {user_name!r} is not in the file")
    return _access(cluster, user, link)


def from_service_account(environment: Mapping[str, str], directory: Path = SERVICE_ACCOUNT) -> Access | None:
    """What a pod is given, or None outside of one. Raises ConfigurationError when its CA cannot be used."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    token = directory / "token"
    if not host or not port or not token.exists():
        return None
    source = f"the service account in {directory}"
    try:
        context = tls_context(ca_data=(directory / "ca.crt").read_text(encoding="ascii"))
    except (OSError, ValueError) as e:
        raise ConfigurationError(f"the CA of {source} cannot be used: {_reason(e)}") from e
    name = f"[{host}]" if ":" in host else host
    url = f"https://{name}:{port}"
    if why := bad_url(url):
        raise ConfigurationError(f"KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT make {url!r}: {why}")
    try:
        namespace = (directory / "namespace").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        namespace = ""
    return Access(url, source, tls=context, token_file=token, namespace=namespace)


def _load(path: Path) -> Mapping[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise ConfigurationError(f"kubeconfig {path} cannot be read: {_reason(e)}") from e
    try:
        document = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as e:
        mark = getattr(e, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        raise ConfigurationError(f"kubeconfig {path} is not YAML{where}: {getattr(e, 'problem', None) or e}") from e
    if document is None:
        raise ConfigurationError(f"kubeconfig {path} is empty")
    if not isinstance(document, dict) or document.get("kind", "Config") != "Config":
        raise ConfigurationError(f"kubeconfig {path} is not a kubeconfig: it has no kind Config")
    return document


def _items(document: Mapping[str, Any], section: str) -> list[Mapping[str, Any]]:
    items = document.get(section)
    return [i for i in items if isinstance(i, dict)] if isinstance(items, list) else []


def _names(documents: list[tuple[Path, Mapping[str, Any]]], section: str) -> set[str]:
    return {str(item.get("name")) for _, document in documents for item in _items(document, section)}


def _find(documents: list[tuple[Path, Mapping[str, Any]]], section: str, what: str, name: str) -> _Entry | None:
    for path, document in documents:
        for item in _items(document, section):
            given = item.get("name")
            if given is not None and not isinstance(given, str):
                where = f"kubeconfig {path}, {section}"
                raise ConfigurationError(f"{where}: a name must be text, not {given!r}; put it in quotes")
            if given == name:
                body = item.get(what)
                return _Entry(what, name, body if isinstance(body, dict) else {}, path)
    return None


def _access(cluster: _Entry, user: _Entry, link: _Entry) -> Access:
    url = cluster.text("server")
    if not url:
        raise cluster.error("it has no server; write for example https://127.0.0.1:6443")
    server_name, proxy = cluster.text("tls-server-name"), cluster.text("proxy-url")
    cluster.refuse("server", url, bad_url(url))
    cluster.refuse("tls-server-name", server_name, bad_host(server_name) if server_name else None)
    cluster.refuse("proxy-url", proxy, bad_proxy(proxy) if proxy else None)
    plugin = user.body.get("exec") or user.body.get("auth-provider")
    token, token_file = user.text("token"), user.text("tokenFile")
    if token and not is_token(token):
        raise user.error("token must be one line of plain characters")
    return Access(
        url,
        f"kubeconfig {link.path}, context {link.name!r}",
        tls=_tls(cluster, user) if url.startswith("https://") else None,
        server_name=server_name,
        proxy=proxy,
        token=None if token_file else token,
        token_file=user.path.parent / token_file if token_file else None,
        headers=_headers(user),
        plugin=user.body if plugin and not token and not token_file else None,
        config={
            "current-context": link.name,
            "contexts": [{"name": link.name, "context": dict(link.body)}],
            "clusters": [{"name": cluster.name, "cluster": dict(cluster.body)}],
            "users": [{"name": user.name, "user": dict(user.body)}],
        },
        context=link.name,
        base=user.path.parent,
        namespace=link.text("namespace") or "",
    )


def _headers(user: _Entry) -> dict[str, str | Sequence[str]]:
    headers: dict[str, str | Sequence[str]] = {}
    name, password = user.text("username"), user.text("password")
    if name and password is not None:
        headers["authorization"] = "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()
    headers.update(_impersonation(user))
    return headers


def _impersonation(user: _Entry) -> dict[str, str | Sequence[str]]:
    """The headers that name somebody else to act as (Kubernetes documentation, "User Impersonation")."""
    name, uid = user.text("as"), user.text("as-uid")
    groups, extra = user.body.get("as-groups") or [], user.body.get("as-user-extra") or {}
    if not _are_texts(groups):
        raise user.error(f"as-groups must be a list of texts, not {groups!r}")
    if not isinstance(extra, dict) or not all(isinstance(k, str) and _are_texts(v) for k, v in extra.items()):
        raise user.error("as-user-extra must be names, each with a list of texts")
    if not name:
        if uid or groups or extra:
            raise user.error("as-uid, as-groups and as-user-extra are only for a user to act as, which `as` names")
        return {}
    found: dict[str, str | Sequence[str]] = {"impersonate-user": name}
    if uid:
        found["impersonate-uid"] = uid
    if groups:
        found["impersonate-group"] = tuple(groups)
    for key, values in extra.items():
        found[f"impersonate-extra-{quote(key.lower(), safe='')}"] = tuple(values)
    for header, values in found.items():
        for value in (values,) if isinstance(values, str) else values:
            user.refuse(f"what becomes the header {header},", value, bad_header(value))
    return found


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _tls(cluster: _Entry, user: _Entry) -> ssl.SSLContext:
    authority = cluster.pem("certificate-authority")
    try:
        context = tls_context(ca_data=authority, insecure=cluster.body.get("insecure-skip-tls-verify") is True)
    except (OSError, ValueError) as e:
        raise cluster.error(f"certificate-authority holds no certificate that can be read ({_reason(e)})") from e
    certificate, key = user.pem("client-certificate"), user.pem("client-key")
    if bool(certificate) != bool(key):
        raise user.error("client-certificate and client-key must be given together")
    if certificate and key:
        try:
            add_client_certificate(context, certificate, key)
        except (OSError, ValueError) as e:
            text = "client-certificate and client-key are not a PEM certificate and its key"
            raise user.error(f"{text} ({_reason(e)})") from e
    return context


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or str(error)
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error)
