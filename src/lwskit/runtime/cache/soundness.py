"""What a server or a function of the user must have handed over for it to be kept under a key. Pure."""

from __future__ import annotations

from typing import Any

from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Obj

_TEXTS = ("namespace", "uid", "resourceVersion")
_MAPS = ("labels", "annotations")


_NOTHING: Obj = {}


def is_sound(obj: Any) -> bool:
    """Whether an object has no fault, at once and for nearly all of them; where False, `object_fault` knows more."""
    try:
        meta = obj["metadata"]
        get = meta.get
        return bool(
            type(meta["name"])
            is type(meta["uid"])
            is type(meta["resourceVersion"])
            is type(get("namespace", ""))
            is str
            and type(get("labels", _NOTHING)) is type(get("annotations", _NOTHING)) is dict
            and meta["name"]
        )
    except (KeyError, TypeError, AttributeError):
        return False


def object_fault(obj: Any) -> str:
    """What keeps a decoded object from being stored and read, such as `no metadata`; empty where nothing does."""
    fault = metadata_fault(obj)
    if fault:
        return fault
    name = obj["metadata"].get("name")
    return "" if isinstance(name, str) and name else "no name"


def metadata_fault(obj: Any) -> str:
    """The same without asking for a name, which bookmarks do not have."""
    meta = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(meta, dict):
        return "no metadata"
    for field in _TEXTS:
        if not isinstance(meta.get(field, ""), str):
            return f"a {field} that is no text"
    for field in _MAPS:
        if not isinstance(meta.get(field, {}), dict):
            return f"{field} that are no mapping"
    return ""


def without_nulls(obj: Any) -> None:
    """Take what is null out of the metadata of an object that nobody else has: it means the same as if it were absent.

    Source: Kubernetes API conventions, "Optional vs. Required".
    """
    meta = obj.get("metadata") if isinstance(obj, dict) else None
    if isinstance(meta, dict):
        for field in [field for field, value in meta.items() if value is None]:
            del meta[field]


def list_fault(body: Obj, kind: Kind) -> str:
    """What keeps an answer from being a list of a kind; empty where nothing does. Its items are not looked at.

    A custom resource may name its lists as it likes; those have items, which are null only where Go wrote an empty one.
    """
    name = body.get("kind")
    if not isinstance(name, str) or not name:
        return "it has no kind"
    if name in (kind.kind, "Status") or not (name.endswith("List") or "items" in body):
        return f"it is a {name}"
    meta = body.get("metadata")
    if not isinstance(meta, dict):
        return "it has no metadata"
    version = meta.get("resourceVersion")
    if not isinstance(version, str) or not version:
        return "it has no resourceVersion"
    if not isinstance(meta.get("continue") or "", str):
        return "its continue token is no text"
    return "" if isinstance(body.get("items") or [], list) else "its items are no list"


def name_of(function: Any) -> str:
    """How a function of the user is called in a sentence about it."""
    return getattr(function, "__qualname__", "") or repr(function)
