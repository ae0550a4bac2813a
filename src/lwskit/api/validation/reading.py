"""Reading a spec that may hold anything: what has the wrong type is reported once and then counts as not set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lwskit.api import names
from lwskit.api.validation.errors import FieldError, invalid

_EMPTY: Final[Mapping[str, Any]] = {}


class Reader:
    """An object of a spec, its path, and the list that errors go to."""

    __slots__ = ("errors", "path", "present", "value")

    def __init__(self, value: Any, path: str, errors: list[FieldError]) -> None:
        """Read `value`, which None or anything but an object makes empty; the latter is reported."""
        self.path = path
        self.errors = errors
        self.value: Mapping[str, Any] = _EMPTY
        self.present = isinstance(value, dict)
        if self.present:
            self.value = value
        elif value is not None:
            errors.append(invalid(path, value, "must be an object"))

    def at(self, name: str) -> str:
        """The path of a field."""
        return f"{self.path}.{name}"

    def child(self, name: str) -> Reader:
        """A field that is an object."""
        return Reader(self.value.get(name), self.at(name), self.errors)

    def integer(self, name: str) -> int | None:
        """A field that is an integer of 32 bits."""
        found = self.value.get(name)
        if found is None:
            return None
        if isinstance(found, float) and found.is_integer():
            found = int(found)
        if not isinstance(found, int) or isinstance(found, bool):
            self.errors.append(invalid(self.at(name), found, "must be an integer"))
            return None
        if not names.INT32_MIN <= found <= names.INT32_MAX:
            self.errors.append(invalid(self.at(name), found, "must be an integer of 32 bits"))
            return None
        return found

    def text(self, name: str) -> str:
        """A field that is a text; what is not set is empty."""
        found = self.value.get(name)
        if found is None or isinstance(found, str):
            return found or ""
        self.errors.append(invalid(self.at(name), found, "must be a string"))
        return ""

    def items(self, name: str) -> list[Any]:
        """A field that is a list; what is not set is empty."""
        found = self.value.get(name)
        if found is None or isinstance(found, list):
            return found or []
        self.errors.append(invalid(self.at(name), found, "must be a list"))
        return []
