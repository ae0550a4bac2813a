"""In which form an answer is written: full objects, metadata only, or tables; chosen by the Accept header."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import orjson
import yaml

from lwskit.embedded import negotiation
from lwskit.embedded.codec import Codec
from lwskit.embedded.resources import Resource
from lwskit.embedded.store import Entry
from lwskit.embedded.tables import Tables
from lwskit.runtime.client.transport import HttpResponse
from lwskit.runtime.clock import Clock
from lwskit.runtime.objects import Obj

META_VERSION = "meta.k8s.io/v1"


class Format(Protocol):
    """How objects of one resource are written."""

    content_type: str

    def one(self, obj: Obj) -> bytes:
        """A single object in the resource's version."""
        ...

    def entry(self, entry: Entry) -> bytes:
        """A stored object, from the cache where possible."""
        ...

    def many(self, entries: Sequence[Entry], meta: Obj) -> bytes:
        """A list of stored objects."""
        ...

    def event(self, entry: Entry, first: bool) -> bytes:
        """A stored object inside a watch event; `first` for the first event of the stream."""
        ...

    def bookmark(self, meta: Obj) -> bytes:
        """The object of a bookmark with that metadata."""
        ...


@dataclass(slots=True)
class Objects:
    """Full objects as JSON."""

    resource: Resource
    codec: Codec
    content_type: str = "application/json"

    def one(self, obj: Obj) -> bytes:
        """The object."""
        return orjson.dumps(obj)

    def entry(self, entry: Entry) -> bytes:
        """The object, encoded once."""
        if entry.obj.get("apiVersion") == self.resource.api_version:
            return entry.json
        name = self.resource.api_version
        found = entry.views.get(name)
        if found is None:
            found = entry.views[name] = orjson.dumps(self.codec.from_stored(self.resource, entry.obj))
        return found

    def _item(self, entry: Entry) -> bytes:
        if self.resource.custom is not None:
            return self.entry(entry)
        name = f"item:{self.resource.api_version}"
        found = entry.views.get(name)
        if found is None:
            obj = self.codec.from_stored(self.resource, entry.obj)
            bare = {k: v for k, v in obj.items() if k not in ("apiVersion", "kind")}
            found = entry.views[name] = orjson.dumps(bare)
        return found

    def many(self, entries: Sequence[Entry], meta: Obj) -> bytes:
        """A List; items of built-in kinds do not repeat apiVersion and kind."""
        head = {"kind": self.resource.list_kind, "apiVersion": self.resource.api_version, "metadata": meta}
        return orjson.dumps(head)[:-1] + b',"items":[' + b",".join(self._item(e) for e in entries) + b"]}"

    def event(self, entry: Entry, first: bool) -> bytes:
        """The object."""
        return self.entry(entry)

    def bookmark(self, meta: Obj) -> bytes:
        """An object of the kind that has only metadata."""
        name = self.codec.type_of(self.resource)
        obj: Obj = {"kind": self.resource.kind, "apiVersion": self.resource.api_version}
        if name is not None:
            obj |= {k: v for k, v in self.codec.types.encode(name, {}).items() if k not in obj}
        return orjson.dumps(obj | {"metadata": meta})


@dataclass(slots=True)
class Metadata:
    """Only the metadata of objects."""

    resource: Resource
    codec: Codec
    content_type: str = "application/json"

    def one(self, obj: Obj) -> bytes:
        """A PartialObjectMetadata."""
        return orjson.dumps({"kind": "PartialObjectMetadata", "apiVersion": META_VERSION, "metadata": obj["metadata"]})

    def entry(self, entry: Entry) -> bytes:
        """A PartialObjectMetadata, encoded once."""
        found = entry.views.get("metadata")
        if found is None:
            found = entry.views["metadata"] = self.one(entry.obj)
        return found

    def many(self, entries: Sequence[Entry], meta: Obj) -> bytes:
        """A PartialObjectMetadataList."""
        head = {"kind": "PartialObjectMetadataList", "apiVersion": META_VERSION, "metadata": meta}
        return orjson.dumps(head)[:-1] + b',"items":[' + b",".join(self.entry(e) for e in entries) + b"]}"

    def event(self, entry: Entry, first: bool) -> bytes:
        """A PartialObjectMetadata."""
        return self.entry(entry)

    def bookmark(self, meta: Obj) -> bytes:
        """A PartialObjectMetadata that has only the bookmark's metadata."""
        return self.one({"metadata": meta})


def as_yaml(header: str, response: HttpResponse) -> HttpResponse:
    """A JSON answer as YAML if the client would rather have that."""
    if "yaml" not in header or response.headers.get("content-type") != negotiation.JSON:
        return response
    found = negotiation.chosen(header, objects=response.status < 400)
    if found is None or found.media_type != negotiation.YAML:
        return response
    text = yaml.safe_dump(orjson.loads(response.body)).encode()
    return HttpResponse(response.status, text, {**response.headers, "content-type": negotiation.YAML})


def choose(header: str, resource: Resource, codec: Codec, clock: Clock, params: Mapping[str, Any]) -> Format:
    """The form for an Accept header. Raises NotAcceptable when none of the types can be written."""
    kind = negotiation.output(header).kind
    if kind == "Table":
        return Tables(resource, codec, clock, params.get("includeObject") or "Metadata")
    return Metadata(resource, codec) if kind else Objects(resource, codec)
