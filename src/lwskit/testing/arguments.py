"""What tests give to the plugin and its cluster: read and checked, with one sentence for each mistake."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.kinds import CUSTOM_RESOURCE_DEFINITION, Kind
from lwskit.runtime.objects import Obj

_WANTED = "a list of CustomResourceDefinitions, each a dict or the path of a YAML file"


def read_crds(given: object, folder: Path | None = None) -> list[Obj]:
    """The CustomResourceDefinitions that a test's fixture `cluster_crds` returned: dicts, and those in YAML files.

    A relative path begins at `folder`. Raises ConfigurationError for everything else.
    """
    if isinstance(given, dict | str | bytes | Path) or not isinstance(given, Iterable):
        raise ConfigurationError(f"the fixture cluster_crds returned {_shown(given)}; it must return {_WANTED}")
    found: list[Obj] = []
    for one in given:
        found += _from_file((folder or Path()) / one) if isinstance(one, str | Path) else [_checked(one)]
    return found


def _from_file(path: Path) -> list[Obj]:
    try:
        documents = [*yaml.safe_load_all(path.read_text())]
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as e:
        text = " ".join(str(e).split())
        raise ConfigurationError(f"the fixture cluster_crds names {path}, which cannot be read: {text}") from e
    kind = CUSTOM_RESOURCE_DEFINITION.kind
    crds = [d for d in documents if isinstance(d, dict) and d.get("kind") == kind]
    if not crds:
        raise ConfigurationError(f"the fixture cluster_crds names {path}, in which there is no {kind}")
    return [_checked(crd) for crd in crds]


def _checked(crd: Any) -> Obj:
    if not isinstance(crd, dict):
        raise ConfigurationError(f"the fixture cluster_crds returned {_shown(crd)} in its list; return {_WANTED}")
    if crd.get("kind") not in (None, CUSTOM_RESOURCE_DEFINITION.kind):
        raise ConfigurationError(f"the fixture cluster_crds returned a {crd['kind']} in its list; return {_WANTED}")
    meta, spec = crd.get("metadata"), crd.get("spec")
    if not isinstance(meta, dict) or not meta.get("name") or not isinstance(spec, dict):
        raise ConfigurationError("the fixture cluster_crds returned a CRD without metadata.name or without spec")
    parts = {name: spec.get(name) for name in ("group", "names", "scope", "versions")}
    missing = [name for name, value in parts.items() if not value]
    if missing:
        raise ConfigurationError(f"the CRD {meta['name']} of the fixture cluster_crds lacks spec.{missing[0]}")
    return crd


def kinds_of(crds: Iterable[Obj]) -> list[Kind]:
    """The kinds that CustomResourceDefinitions bring, in the first version of each that is served."""
    return [
        Kind(
            crd["spec"]["group"],
            next(v["name"] for v in crd["spec"]["versions"] if v["served"]),
            crd["spec"]["names"]["kind"],
            crd["spec"]["names"]["plural"],
            crd["spec"]["scope"] == "Namespaced",
        )
        for crd in crds
    ]


def check_kind(kind: object, call: str) -> None:
    """Raise TypeError, naming the call, for anything but a Kind."""
    __tracebackhide__ = True
    if not isinstance(kind, Kind):
        own = f"; for a kind of your own write Kind(group, version, {kind!r}, plural)" if isinstance(kind, str) else ""
        raise TypeError(f"{call} takes a Kind such as lwskit.runtime.kinds.POD, not {_shown(kind)}{own}")


def body_of(kind: Kind, obj: Obj, namespace: str, call: str) -> Obj:
    """The object that `cluster.create` sends: with apiVersion, kind and namespace where it leaves them out.

    Raises TypeError for what is no object, ConfigurationError for one that names another namespace.
    """
    __tracebackhide__ = True
    meta = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(meta, dict):
        raise TypeError(f"{call} takes an object, a dict with metadata, not {_shown(obj)}")
    body = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
    if not kind.namespaced:
        return body
    if meta.get("namespace") not in (None, "", namespace):
        raise ConfigurationError(
            f"{call} creates in the test's namespace {namespace}, and {kind.kind} {meta.get('name', '')} names "
            f"{meta['namespace']}; leave metadata.namespace out, or use cluster.client.create"
        )
    return {**body, "metadata": {**meta, "namespace": namespace}}


def _shown(value: object) -> str:
    if value is None or isinstance(value, str | bytes | int | float | Path):
        text = repr(str(value)) if isinstance(value, Path) else repr(value)
        return text if len(text) <= 60 else f"{text[:60]}…"
    return f"a {type(value).__name__}"
