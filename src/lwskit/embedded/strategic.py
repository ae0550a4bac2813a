"""Strategic merge patch."""

from __future__ import annotations

from typing import Any

from lwskit.embedded.patch import merge as plain_merge
from lwskit.runtime.typed import TypeTable


def merge(document: Any, patch: Any, types: TypeTable, type_name: str | None) -> Any:
    """The document after the patch."""
    return plain_merge(document, patch)
