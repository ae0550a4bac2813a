"""Which media type a request's body has, and which its answer may have. Pure.

Sources: RFC 9110 §12.5.1; Kubernetes documentation, "API concepts", alternate representations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from lwskit.runtime.errors import NotAcceptable, UnsupportedMediaType

JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
META_GROUP = "meta.k8s.io"
OBJECTS = (JSON, YAML, PROTOBUF)
"""What objects can be written as, by a real server."""
_WRITTEN = (JSON, YAML)
"""What this server writes of it; its texts name the rest, too."""
STREAMS = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")
_TOKEN = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_MEDIA_TYPE = re.compile(rf'\s*({_TOKEN}/{_TOKEN})\s*(?:;\s*{_TOKEN}\s*=\s*(?:{_TOKEN}|"[^"]*")\s*)*;?\s*')


@dataclass(frozen=True, slots=True)
class Media:
    """One entry of an Accept header."""

    type: str
    subtype: str
    quality: float = 1.0
    params: Mapping[str, str] = field(default_factory=dict)

    def matches(self, media_type: str) -> bool:
        """Whether the entry stands for this media type."""
        if self.subtype == "*":
            return self.type in ("*", media_type.partition("/")[0])
        return f"{self.type}/{self.subtype}" == media_type


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is written: the media type, and the kind of meta.k8s.io that objects become, if any."""

    media_type: str = JSON
    kind: str = ""


def accepted(header: str) -> list[Media]:
    """The entries of an Accept header, the preferred ones first."""
    found = []
    for part in header.split(","):
        first, *parameters = part.split(";")
        kind, slash, subtype = (text.strip() for text in first.strip().partition("/"))
        if "/" in subtype or not (slash or kind == "*"):
            continue
        pairs = (p.split("=", 1) for p in parameters if "=" in p)
        params = {name.strip(): value.strip() for name, value in pairs}
        found.append(Media(kind, subtype or "*", _quality(params.pop("q", None)), params))
    return sorted(found, key=lambda m: (-m.quality, m.type == "*", m.subtype == "*"))


def _quality(text: str | None) -> float:
    try:
        return 1.0 if text is None else float(text)
    except ValueError:
        return 0.0


def routed(header: str, *produced: str) -> None:
    """The first look at an Accept header, at which parameters do not count; `produced` is what the path has.

    Raises NotAcceptable. Custom resources are found without it.
    """
    for part in (header or "*/*").split(","):
        if part.partition(";")[0].strip() in ("*/*", *produced):
            return
    raise NotAcceptable(f"406: Not Acceptable\n\nAvailable representations: {', '.join(produced)}", details={})


def chosen(header: str, *, objects: bool = True) -> Chosen | None:
    """The second look: what is written, None when nothing that the client takes can be.

    Without `objects` the answer is none that can become a table or metadata.
    """
    if not header:
        return Chosen()
    for media in accepted(header):
        for written in _WRITTEN:
            kind = media.params.get("as", "")
            if not media.matches(written) or media.params.get("stream", "") not in ("", "watch"):
                continue
            if media.params.get("stream") and written != JSON:
                continue
            if any(media.params.get(name) for name in ("as", "g", "v")) and not (objects and _transforms(media)):
                continue
            return Chosen(written, kind)
    return None


def _transforms(media: Media) -> bool:
    known = media.params.get("as") in ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
    return known and media.params.get("g") == META_GROUP and media.params.get("v") == "v1"


def output(header: str, *, objects: bool = True) -> Chosen:
    """What is written, of objects or of something that only has one form. Raises NotAcceptable."""
    found = chosen(header, objects=objects)
    if found is None:
        raise NotAcceptable(f"only the following media types are accepted: {', '.join(OBJECTS)}")
    return found


def check_stream(header: str) -> None:
    """Raises NotAcceptable when the client takes no watch events in JSON."""
    if header and not any(media.matches(JSON) for media in accepted(header)):
        raise NotAcceptable(f"only the following media types are accepted: {', '.join(STREAMS)}")


def body_type(header: str) -> str:
    """The media type of a body, JSON where the header does not say. Raises UnsupportedMediaType."""
    found = _MEDIA_TYPE.fullmatch(header) if header else None
    media_type = found[1].lower() if found else ""
    if header and media_type not in OBJECTS:
        raise unsupported(*OBJECTS)
    return media_type or JSON


def unsupported(*known: str) -> UnsupportedMediaType:
    """415 for a body of another type than these."""
    return UnsupportedMediaType(
        f"the body of the request was in an unknown format - accepted media types include: {', '.join(known)}"
    )
