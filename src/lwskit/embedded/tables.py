"""Tables as kubectl asks for them: columns of built-in kinds, and those that a CRD declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from lwskit.embedded import jsonpath, table_text
from lwskit.embedded.codec import Codec
from lwskit.embedded.resources import Resource
from lwskit.embedded.store import Entry
from lwskit.embedded.table_columns import EVENT_COLUMNS, NAME, TABLES, Column, event_cells
from lwskit.runtime.clock import Clock
from lwskit.runtime.objects import Obj

META_VERSION = "meta.k8s.io/v1"
_AGE: Column = ("Age", "string", "", 0)
_CUSTOM_AGE: Mapping[str, Any] = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
_TERMINAL = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}


@dataclass(slots=True)
class Tables:
    """Objects as rows; `include` is what a row carries of its object: Metadata, Object or None."""

    resource: Resource
    codec: Codec
    clock: Clock
    include: str
    content_type: str = "application/json"

    def _columns(self) -> list[dict[str, Any]]:
        custom = self.resource.custom
        if custom is not None:
            described = [_definition(NAME)]
            for column in custom.columns or (_CUSTOM_AGE,):
                described.append(
                    {
                        "name": column["name"],
                        "type": column["type"],
                        "format": column.get("format", ""),
                        "description": column.get("description", ""),
                        "priority": column.get("priority", 0),
                    }
                )
            return described
        if self.resource.storage == "/events":
            return [_definition(c) for c in EVENT_COLUMNS]
        columns = TABLES.get(self.resource.storage)
        return [_definition(c) for c in (NAME, *(columns[0] if columns else (_AGE,)))]

    def _cells(self, obj: Obj) -> list[Any]:
        now = self.clock.now()
        custom = self.resource.custom
        if custom is not None:
            cells = [_custom_cell(c, obj, now) for c in custom.columns or (_CUSTOM_AGE,)]
            return [obj["metadata"]["name"], *cells]
        if self.resource.storage == "/events":
            return event_cells(obj, now)
        columns = TABLES.get(self.resource.storage)
        cells = columns[1](obj, now) if columns else [table_text.age(obj, now)]
        return [obj["metadata"]["name"], *cells]

    def _row(self, obj: Obj) -> dict[str, Any]:
        row: dict[str, Any] = {"cells": self._cells(obj)}
        phase = (obj.get("status") or {}).get("phase")
        if self.resource.storage == "/pods" and phase in _TERMINAL:
            row["conditions"] = [{"type": "Completed", "status": "True", "reason": phase, "message": _TERMINAL[phase]}]
        if self.include == "Object":
            row["object"] = self.codec.from_stored(self.resource, obj)
        elif self.include == "None":
            row["object"] = None
        else:
            row["object"] = {"kind": "PartialObjectMetadata", "apiVersion": META_VERSION, "metadata": obj["metadata"]}
        return row

    def _table(self, rows: list[dict[str, Any]], meta: Obj, columns: bool = True) -> bytes:
        body = {
            "kind": "Table",
            "apiVersion": META_VERSION,
            "metadata": meta,
            "columnDefinitions": self._columns() if columns else None,
            "rows": rows,
        }
        return orjson.dumps(body)

    def one(self, obj: Obj) -> bytes:
        """A table of one row."""
        stored = self.codec.to_stored(self.resource, obj)
        return self._table([self._row(stored)], {"resourceVersion": obj["metadata"].get("resourceVersion", "")})

    def entry(self, entry: Entry) -> bytes:
        """A table of one row; never cached, because ages change."""
        return self._table([self._row(entry.obj)], {"resourceVersion": str(entry.version)})

    def many(self, entries: Sequence[Entry], meta: Obj) -> bytes:
        """A table with a row for each object."""
        return self._table([self._row(e.obj) for e in entries], meta)

    def event(self, entry: Entry, first: bool) -> bytes:
        """A table of one row; only the first event names the columns."""
        return self._table([self._row(entry.obj)], {"resourceVersion": str(entry.version)}, columns=first)

    def bookmark(self, meta: Obj) -> bytes:
        """A table with one empty row that carries the metadata."""
        cells = ["" for _ in self._columns()]
        carried = {"kind": "PartialObjectMetadata", "apiVersion": META_VERSION, "metadata": meta}
        version = {"resourceVersion": meta["resourceVersion"]}
        return self._table([{"cells": cells, "object": carried}], version, columns=False)


def _definition(column: Column) -> dict[str, Any]:
    name, kind, form, priority = column
    return {"name": name, "type": kind, "format": form, "description": "", "priority": priority}


def _custom_cell(column: Mapping[str, Any], obj: Obj, now: Any) -> Any:
    """The value at the column's path in the form of its type; None when there is none or it has another type."""
    found = jsonpath.find(column["jsonPath"], obj)
    if not found or found[0] is None:
        return None
    value, kind = found[0], column["type"]
    match kind:
        case "integer":
            return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        case "number":
            return value if isinstance(value, int | float) and not isinstance(value, bool) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            return table_text.since(value, now) if isinstance(value, str) else None
        case _:
            return value if isinstance(value, str) else orjson.dumps(value).decode()
