"""Manifests: reading files and applying them as kubectl would."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

from lwskit.runtime.client.client import Client
from lwskit.runtime.client.discovery import Discovery
from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.objects import Obj

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(path: str) -> list[Obj]:
    """The objects in a file (`-` for standard input), Lists taken apart.

    Raises ConfigurationError naming the file, the document and what is wrong with it.
    """
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text()
    except OSError as e:
        raise ConfigurationError(f"cannot read {path}: {e.strerror}") from e
    except UnicodeDecodeError as e:
        raise ConfigurationError(f"cannot read {path}: it is not UTF-8 text") from e
    try:
        documents = [d for d in yaml.load_all(text, Loader=_LOADER) if d is not None]
    except yaml.YAMLError as e:
        raise ConfigurationError(f"{path} is not valid YAML: {_where(e)}") from e
    objects: list[Obj] = []
    for number, document in enumerate(documents, 1):
        objects += _objects(document, f"{path}, document {number}")
    if not objects:
        raise ConfigurationError(f"{path} holds no object; write at least one with apiVersion, kind and metadata.name")
    return objects


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
