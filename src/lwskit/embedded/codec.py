"""From a request's body to an object as the server keeps it: types, unknown fields, schemas, defaults. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import orjson
import yaml

from lwskit.embedded import events, schema
from lwskit.embedded.defaults import Defaults
from lwskit.embedded.failures import bad_request
from lwskit.embedded.resources import Resource
from lwskit.runtime.errors import ApiError, InternalError, InvalidRequest
from lwskit.runtime.objects import Obj
from lwskit.runtime.typed import DecodeError, TypeRef, TypeTable

_SCHEME = "pkg/runtime/scheme.go:111"
_STEP = re.compile(r"\[[^\]]*\]")
GO_HEADER = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
"""How a real server's texts name what it first reads of every document."""
_PARTS = {
    "core.v1.Volume": ("VolumeSource", frozenset({"name"})),
    "core.v1.Probe": ("ProbeHandler", frozenset({"exec", "httpGet", "tcpSocket", "grpc"})),
}
"""Structs whose fields are in part those of another; which are, or, of volumes, which are not."""
_GO_ZERO = {"bool": "bool", "int32": "int32", "int64": "int64", "float64": "float64", "string": "string"}


def read_body(body: bytes | None, content_type: str, kind: str) -> Any:
    """The JSON or YAML document in a request. Raises InvalidRequest."""
    raw = body or b""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as e:
        if "yaml" in content_type:
            return read_yaml(raw)
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; "
            f"json parse error: {parse_error(raw, e)} ({_beginning(raw)})"
        ) from e


def parse_error(raw: bytes, error: orjson.JSONDecodeError) -> str:
    """What is wrong with a text that is not JSON, in a real server's words where they are known."""
    if "unexpected end" in str(error) or not raw.strip():
        return "unexpected end of JSON input"
    found = raw.decode(errors="replace")[error.pos : error.pos + 1]
    if "unexpected content after document" in str(error):
        return f"invalid character '{found}' after top-level value"
    if error.pos == 0 or not raw[: error.pos].strip():
        return f"invalid character '{found}' looking for beginning of value"
    return str(error)


def read_yaml(raw: bytes) -> Any:
    """The YAML document in a request. Raises InvalidRequest."""
    try:
        return yaml.load(raw, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as e:
        raise bad_request(f"error decoding YAML: {' '.join(str(e).split())}") from e


def duplicate_fields(raw: bytes) -> list[str]:
    """The paths of keys that stand twice in one JSON object, for strict decoding."""
    found: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for name, value in items:
            if name in out:
                out.setdefault("\0", []).append(name)
            out[name] = value
        return out

    def walk(value: Any, path: str) -> None:
        if isinstance(value, dict):
            for name in value.pop("\0", ()):
                found.append(f"{path}.{name}" if path else name)
            for name, item in value.items():
                walk(item, f"{path}.{name}" if path else name)
        elif isinstance(value, list):
            for i, item in enumerate(value):
                walk(item, f"{path}[{i}]")

    try:
        walk(json.loads(raw, object_pairs_hook=pairs), "")
    except ValueError:
        return []
    return found


class UndecodableError(InvalidRequest):
    """400: the document is no object of the kind; `detail` says why without naming the kind.

    `restored` says the same in the words that a strategic merge patch is refused with.
    """

    def __init__(self, message: str, detail: str, restored: str = "") -> None:
        super().__init__(message)
        self.detail = detail
        self.restored = restored or detail


class Codec:
    """Decodes objects of all resources.

    `types` is the table of built-in types, `defaults` their default values.
    """

    def __init__(self, types: TypeTable, defaults: Defaults) -> None:
        self.types = types
        self.defaults = defaults

    def type_of(self, resource: Resource) -> str | None:
        """The name of a built-in resource's type, None when the table has none or it is custom."""
        return None if resource.custom else self.types.kind_type(resource.api_version, resource.kind)

    def decode(
        self,
        resource: Resource,
        body: Any,
        validation: str = "Warn",
        raw: bytes | None = None,
        warn: Callable[[str], None] | None = None,
        *,
        keep_nulls: bool = False,
        patched: str = "",
    ) -> Obj:
        """An object in the form of `resource`, with defaults; `body` must belong to the caller and is used up.

        `validation` is the fieldValidation parameter; `warn` is told about unknown fields; `raw` is the text in which
        to look for doubled keys; `keep_nulls` leaves nulls of custom resources; `patched` is the name
        of an object that a patch made: its kind is left to the rules. Raises InvalidRequest.
        """
        if not isinstance(body, dict):
            text = f"json: cannot unmarshal {json_kind(body)} into Go value of type {GO_HEADER}"
            text = f"couldn't get version/kind; json parse error: {text}"
            raise _unrecognized(resource, text, raw or orjson.dumps(body))
        self._check_kind(resource, body, raw, patched, validation, warn)
        if not isinstance(body.get("metadata", {}), dict | None):
            meta = body["metadata"]
            where = "Go value" if resource.custom else f"Go struct field {resource.kind}.metadata"
            text = f"json: cannot unmarshal {json_kind(meta)} into {where} of type v1.ObjectMeta"
            raise self._handled(resource, text, f"cannot restore struct from: {_RESTORED[type(meta)]}")
        unknown: list[str] = []
        report = unknown.append if validation != "Ignore" else _nothing
        reset = isinstance(body.get("metadata"), dict) and body["metadata"].get("managedFields") in (
            ([{}],) if resource.custom else ([], [{}])
        )
        obj = (
            self._custom(resource, body, report, keep_nulls) if resource.custom else self._typed(resource, body, report)
        )
        if reset:
            # An explicit empty list asks to forget all field owners; it must not look like an absent one.
            obj["metadata"]["managedFields"] = []
        if resource.custom:
            unknown.sort()
        problems = [f'unknown field "{path}"' for path in unknown]
        if validation == "Strict" and raw is not None:
            problems = [f'duplicate field "{path}"' for path in duplicate_fields(raw)] + problems
        if problems and validation == "Strict":
            raise self._handled(resource, "strict decoding error: " + ", ".join(problems))
        if warn:
            for problem in problems:
                warn(problem)
        return obj

    def _check_versionless(
        self, name: str, body: Mapping[str, Any], validation: str, warn: Callable[[str], None] | None
    ) -> None:
        """What a patch left without a version is read as a form of the object in which no field has a name."""
        problems = [f'unknown field "{name}"' for name in body if name not in ("apiVersion", "kind")]
        if validation == "Strict":
            text = "strict decoding error: " + ", ".join(problems)
            raise UndecodableError(text, text)
        if warn and validation != "Ignore":
            for problem in problems:
                warn(problem)
        raise bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")

    def _check_kind(
        self,
        resource: Resource,
        body: Mapping[str, Any],
        raw: bytes | None,
        patched: str,
        validation: str,
        warn: Callable[[str], None] | None,
    ) -> None:
        version, kind = body.get("apiVersion"), body.get("kind")
        for name, value in (("apiVersion", version), ("kind", kind)):
            if not isinstance(value, str | None):
                text = f"json: cannot unmarshal {json_kind(value)} into Go struct field .{name} of type string"
                raise _unrecognized(resource, f"couldn't get version/kind; json parse error: {text}", raw or b"{}")
        if patched and not version and not resource.custom:
            self._check_versionless(patched, body, validation, warn)
        if resource.custom:
            if not kind:
                text = f"Object 'Kind' is missing in '{(raw or orjson.dumps(body)).decode(errors='replace')}'"
                if patched:
                    raise UndecodableError(text, text)
                raise _unrecognized(resource, text, raw or b"{}")
            if patched and not version:
                text = "Object 'apiVersion' is missing in 'object has no apiVersion field'"
                raise InternalError(f"Internal error occurred: {text}", details={"causes": [{"message": text}]})
            if patched:
                return
            if version != resource.api_version:
                raise bad_request(
                    f"the API version in the data ({version or ''}) does not match the expected API version "
                    f"({resource.api_version})"
                )
            return
        if (version or resource.api_version) == resource.api_version and (kind or resource.kind) == resource.kind:
            return
        short = (version or resource.api_version).rpartition("/")[2]
        other = self.types.kind_type(version or resource.api_version, kind or resource.kind)
        if other:
            inner = resource.group.partition(".")[0] or "core"
            text = f"converting ({short}.{kind or resource.kind}) to ({inner}.{resource.kind}): unknown conversion"
            try:
                self.types.encode(other, body)
            except DecodeError as e:
                text = self.go_texts(other, other, e, body)[0]
            message = f'{kind or resource.kind} in version "{short}" cannot be handled as a {resource.kind}: {text}'
            raise UndecodableError(message, text)
        detail = (
            f'no kind "{kind or resource.kind}" is registered for version "{version or resource.api_version}" in '
            f'scheme "{_SCHEME}"'
        )
        raise UndecodableError(
            f'{kind or resource.kind} in version "{short}" cannot be handled as a {resource.kind}: {detail}', detail
        )

    def _handled(self, resource: Resource, text: str, restored: str = "") -> ApiError:
        message = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {text}'
        return UndecodableError(message, text, restored)

    def _custom(self, resource: Resource, body: Obj, report: Callable[[str], None], keep_nulls: bool) -> Obj:
        assert resource.custom is not None
        schema.whole_numbers(body)
        body.setdefault("metadata", {})
        for path in self.types.unknown("meta.v1.ObjectMeta", body["metadata"], "metadata"):
            report(path)
        try:
            meta = self.types.encode("meta.v1.ObjectMeta", body["metadata"], "metadata")
        except DecodeError as e:
            raise self._handled(resource, *self.go_texts("meta.v1.ObjectMeta", "ObjectMeta", e, body)) from e
        if not resource.custom.preserve:
            schema.prune(body, resource.custom.schema, self.types, report)
        schema.apply_defaults(body, resource.custom.schema)
        if not keep_nulls:
            schema.drop_nulls(body, resource.custom.schema)
        return {"apiVersion": body["apiVersion"], "kind": body["kind"], "metadata": meta} | {
            k: v for k, v in body.items() if k not in ("apiVersion", "kind", "metadata")
        }

    def _typed(self, resource: Resource, body: Obj, report: Callable[[str], None]) -> Obj:
        name = self.type_of(resource)
        if name is None:
            meta = self.types.encode("meta.v1.ObjectMeta", body.get("metadata"), "metadata")
            rest = {k: v for k, v in body.items() if k not in ("apiVersion", "kind", "metadata")}
            return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, **rest}
        if report is not _nothing:
            for path in self.types.unknown(name, body):
                report(path)
        try:
            obj = self.types.encode(name, body)
        except DecodeError as e:
            raise self._handled(resource, *self.go_texts(name, name, e, body)) from e
        obj["apiVersion"], obj["kind"] = resource.api_version, resource.kind
        self.defaults.apply(name, obj)
        return obj

    def go_texts(self, type_name: str, root: str, error: DecodeError, body: Any) -> tuple[str, str]:
        """What a Go decoder says about a value of a wrong type: of JSON, and of data that is restored to a struct."""
        steps = [s for s in _STEP.sub("", error.path).split(".") if s]
        if root == "ObjectMeta" and steps and steps[0] == "metadata":
            steps = steps[1:]
        ref: TypeRef | None = TypeRef("struct", type_name)
        owner, named = type_name, []
        for step in steps:
            while ref is not None and ref.shape == "list":
                ref = ref.element
            if ref is None:
                break
            if ref.shape == "struct":
                owner = ref.name
                part, fields = _PARTS.get(ref.name, ("", frozenset()))
                if part and (step in fields) == (ref.name != "core.v1.Volume"):
                    named.append(part)
                named.append(step)
                field = self.types.fields(ref.name).get(step)
                ref = field.type if field else None
            elif ref.shape == "map":
                ref = ref.element
        bad = _at(body, error.path)
        if ref is not None and ref.shape == "list" and (isinstance(bad, list) or error.path.endswith("]")):
            ref = ref.element
        if ref is not None and ref.shape == "map" and error.path.endswith("]"):
            ref = ref.element
        if ref is not None and ref.shape == "scalar" and ref.name not in (*_GO_ZERO, "intorstring"):
            text = _special(ref.name, bad)
            return text, f"error decoding from json: {text}" if ref.name == "bytes" and isinstance(bad, str) else text
        where = ".".join(named)
        kind = json_kind(bad)
        if kind == "number" and ref is not None and ref.name.startswith("int"):
            kind = f"number {bad:g}" if isinstance(bad, float) else f"number {bad}"
        text = (
            f"json: cannot unmarshal {kind} into Go struct field {owner.rpartition('.')[2]}.{where} "
            f"of type {_go_type(ref)}"
        )
        mixed = ref is not None and ref.name == "intorstring"
        return text, _special("intorstring", bad) if mixed else _restored(ref, bad)

    def to_stored(self, resource: Resource, obj: Obj) -> Obj:
        """The form in which the table keeps an object of `resource`; not copied when it is the same."""
        if resource.custom and resource.version != resource.custom.storage_version:
            return {**obj, "apiVersion": f"{resource.group}/{resource.custom.storage_version}"}
        if resource.group == events.GROUP and resource.storage == events.STORAGE:
            return events.to_core(obj)
        return obj

    def from_stored(self, resource: Resource, obj: Obj) -> Obj:
        """The form that clients of `resource` see of a kept object; not copied when it is the same."""
        if obj.get("apiVersion") == resource.api_version:
            return obj
        if resource.group == events.GROUP and resource.storage == events.STORAGE:
            return events.from_core(obj)
        return {**obj, "apiVersion": resource.api_version}


def _unrecognized(resource: Resource, text: str, raw: bytes) -> InvalidRequest:
    """400 for a document without a kind, with the beginning of the document."""
    return bad_request(
        f"the object provided is unrecognized (must be of type {resource.kind}): {text} ({_beginning(raw)})"
    )


def _beginning(raw: bytes) -> str:
    """How a document begins: as it is if it looks like an object, else in hexadecimal."""
    if not raw:
        return "<empty>"
    start = raw[:30].decode(errors="replace") if raw.startswith(b"{") else raw[:30].hex()
    return start + (" ..." if len(raw) > 30 else "")


def _nothing(path: str) -> None:
    pass


def json_kind(value: Any) -> str:
    """The JSON type of a value as a Go decoder names it."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    return {str: "string", list: "array", dict: "object", type(None): "null"}[type(value)]


def _at(body: Any, path: str) -> Any:
    """The value at an error's path, as far as it can be followed."""
    for step in re.findall(r"\[[^\]]*\]|[^.\[]+", path):
        key = step[1:-1] if step.startswith("[") else step
        try:
            body = body[int(key)] if isinstance(body, list) else body[key]
        except (KeyError, IndexError, ValueError, TypeError):
            return body
    return body


def _go_type(ref: TypeRef | None) -> str:
    if ref is None:
        return "interface {}"
    match ref.shape:
        case "list":
            return f"[]{_go_type(ref.element)}"
        case "map":
            return f"map[string]{_go_type(ref.element)}"
        case "struct":
            return f"v1.{ref.name.rpartition('.')[2]}"
        case _:
            return "int32" if ref.name == "intorstring" else _GO_ZERO.get(ref.name, ref.name)


_RESTORED = {dict: "map", list: "slice", str: "string", int: "int64", float: "float64", bool: "bool"}


def _restored(ref: TypeRef | None, bad: Any) -> str:
    kind = _RESTORED.get(type(bad), "invalid")
    match ref.shape if ref is not None else "any":
        case "struct":
            return f"cannot restore struct from: {kind}"
        case "list":
            return f"cannot restore slice from {kind}"
        case "map":
            return f"cannot restore map from {kind}"
    wanted = ref.name if ref is not None else "interface"
    number = isinstance(bad, int | float) and not isinstance(bad, bool)
    if number and (wanted.startswith(("int", "float")) or (wanted == "string" and isinstance(bad, int))):
        return f"cannot convert {kind} to {wanted}"
    return f"unrecognized type: {wanted}"


def _bad_base64(text: str) -> int:
    """Where a text stops to be base64: at a letter that has no place there, or at a last group that is not whole."""
    for i, char in enumerate(text):
        if not (char.isascii() and (char.isalnum() or char in "+/=")):
            return i
    return len(text) - len(text) % 4


def _special(kind: str, value: Any) -> str:
    """The text for types that decode themselves."""
    if kind == "quantity":
        return "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    if kind in ("time", "microtime") and isinstance(value, str):
        layout = "2006-01-02T15:04:05Z07:00" if kind == "time" else "2006-01-02T15:04:05.000000Z07:00"
        return f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "2006"'
    if kind == "bytes" and isinstance(value, str):
        return f"illegal base64 data at input byte {_bad_base64(value)}"
    go = {"intorstring": "int32", "bytes": "[]uint8", "duration": "string"}.get(kind, "string")
    return f"json: cannot unmarshal {json_kind(value)} into Go value of type {go}"
