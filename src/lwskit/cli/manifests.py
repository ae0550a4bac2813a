"""Manifests: reading files and applying them as kubectl would."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, ClassVar

import orjson
import yaml

from lwskit.runtime.client.client import Client
from lwskit.runtime.client.discovery import Discovery
from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.objects import Obj

_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TIMESTAMP = "tag:yaml.org,2002:timestamp"


class _Loader(_BASE):
    """Reads what looks like a date as the text that it is, as the tools do that manifests are written for."""

    yaml_implicit_resolvers: ClassVar[Any] = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
        for first, resolvers in _BASE.yaml_implicit_resolvers.items()
    }


def read(path: str, *, may_be_empty: bool = False) -> list[Obj]:
    """The objects in a file (`-` for standard input), Lists taken apart. With `may_be_empty` a List may have no items.

    Raises ConfigurationError naming the file, the document and what is wrong with it.
    """
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8-sig")
    except OSError as e:
        raise ConfigurationError(f"cannot read {path}: {e.strerror}") from e
    except UnicodeDecodeError as e:
        raise ConfigurationError(f"cannot read {path}: it is not UTF-8 text") from e
    try:
        documents = [d for d in yaml.load_all(text, Loader=_Loader) if d is not None]
    except yaml.YAMLError as e:
        raise ConfigurationError(f"{path} is not valid YAML: {_where(e)}") from e
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as e:
        # What its constructors raise for a value that does not fit its tag.
        raise ConfigurationError(f"{path} is not valid YAML: a value in it cannot be read: {e}") from e
    objects: list[Obj] = []
    for number, document in enumerate(documents, 1):
        place = f"{path}, document {number}"
        objects += _objects(_as_json(document, place), place)
    if not objects and not (may_be_empty and documents):
        raise ConfigurationError(f"{path} holds no object; write at least one with apiVersion, kind and metadata.name")
    return objects


def _as_json(document: Any, place: str) -> Any:
    """The document as JSON has it: names of fields are texts. Raises ConfigurationError for what JSON has not."""
    try:
        return orjson.loads(json.dumps(document, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as e:
        raise ConfigurationError(f"{place}: it holds something that JSON cannot say: {e}") from e


def _objects(document: Any, place: str) -> list[Obj]:
    if not isinstance(document, dict):
        raise ConfigurationError(f"{place}: this is no Kubernetes object; it needs apiVersion, kind and metadata.name")
    if str(document.get("kind", "")).endswith("List") and isinstance(document.get("items"), list):
        return [o for item in document["items"] for o in _objects(item, place)]
    for field in ("apiVersion", "kind"):
        if not isinstance(document.get(field), str) or not document[field]:
            raise ConfigurationError(f"{place}: {field} is missing; a manifest starts with apiVersion and kind")
    meta = document.get("metadata")
    if not isinstance(meta, dict) or not isinstance(meta.get("name"), str) or not meta["name"]:
        raise ConfigurationError(f"{place}: metadata.name is missing; write the name of the {document['kind']}")
    if meta["name"] in (".", "..") or set(meta["name"]) & {"/", "%"}:
        raise ConfigurationError(
            f"{place}: metadata.name {meta['name']!r} cannot be a name: it is part of a URL's path"
        )
    if not isinstance(meta.get("namespace") or "", str) or set(meta.get("namespace") or "") & {"/", "%"}:
        raise ConfigurationError(f"{place}: metadata.namespace {meta['namespace']!r} cannot be a namespace")
    return [document]


def _where(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else problem


async def apply(
    client: Client, objects: list[Obj], *, namespace: str = "default", manager: str = "lwskit"
) -> list[Obj]:
    """Server-side apply all of them in order; those of a namespaced kind without namespace go into `namespace`.

    Returns what the server stored. Raises the ApiError of the first refusal and ConfigurationError for unknown kinds.
    """
    discovery = Discovery(client)
    stored = []
    for obj in objects:
        kind = await discovery.find(obj["apiVersion"], obj["kind"])
        if kind.namespaced and not obj["metadata"].get("namespace"):
            obj = {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}
        stored.append(await client.apply(kind, obj, field_manager=manager))
    return stored
