"""What objects that were saved may look like: every value is of the type that an API server gives it out with."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from lwskit.api.crds import crds
from lwskit.disaggregated.kinds import DISAGGREGATED_SET, ROLE_SCALER
from lwskit.doctor.ward import KINDS
from lwskit.embedded.schema import INT_OR_STRING
from lwskit.groups.kinds import LEADER_WORKER_SET
from lwskit.runtime.kinds import CONTROLLER_REVISION, CORE_EVENT, EVENT, NODE
from lwskit.runtime.objects import Obj, group_of, is_of
from lwskit.runtime.typed import TypeTable, load_resource

_METADATA: Final = "meta.v1.ObjectMeta"
_ANY: Final = "any kind"
_RECORDED: Final = "what a revision records"
"""What the table calls objects of kinds that nobody looks at, and the parts of sets in revisions."""
_NEEDED: Final = {
    "meta.v1.OwnerReference": ("kind", "name", "uid"),
    "core.v1.PodReadinessGate": ("conditionType",),
    "core.v1.ContainerStatus": ("name",),
    "apps.v1.DeploymentSpec": ("template",),
    **dict.fromkeys(("core.v1.Pod", "apps.v1.StatefulSet", "apps.v1.Deployment", "apps.v1.ReplicaSet"), ("spec",)),
}
"""Without what there is no reading the values of a type: a server gives out more, but people save less of it."""
_OWN: Final = (LEADER_WORKER_SET.kind, DISAGGREGATED_SET.kind, ROLE_SCALER.kind)
"""Kinds whose names nobody else has: their objects are to be readable whatever their group is said to be."""
_CONDITION: Final = ("type", "status")
_SCALARS: Final = {"boolean": "bool", "number": "float64"}


class _Types(NamedTuple):
    """The types of objects, by group and kind what the table calls them, and what each type needs."""

    table: TypeTable
    kinds: Mapping[tuple[str, str], str]
    needed: Mapping[str, tuple[str, ...]]


def conformed(obj: Obj) -> Obj:
    """An object whose values can be read without a look at their types; nulls are left out.

    What the type of its kind does not have stays as it is, and of kinds that nobody looks at everything but the
    metadata. Raises DecodeError, with the field, for a value of another type, and MissingError for what is not there.
    """
    types = _types()
    name = types.kinds.get((group_of(obj["apiVersion"]), obj["kind"]), obj["kind"] if obj["kind"] in _OWN else _ANY)
    found = types.table.conform(name, obj, needed=types.needed)
    if is_of(obj, CONTROLLER_REVISION) and "data" in found:
        # Its data counts to the last byte, and stays as it is.
        types.table.conform(_RECORDED, found["data"], "data", types.needed)
    return found


@lru_cache(maxsize=1)
def _types() -> _Types:
    builtin = load_resource("lwskit.embedded", "builtin-types.json")
    kinds = {
        (kind.group, kind.kind): name
        for kind in (*KINDS, CORE_EVENT, EVENT, NODE)
        if (name := builtin.kind_type(kind.api_version, kind.kind)) is not None
    }
    types: dict[str, Any] = {_ANY: _struct(metadata=_METADATA)}
    needed = {**_NEEDED, **{name: _CONDITION for name in builtin if name.endswith("Condition")}}
    for crd in crds():
        spec = crd["spec"]
        (version,) = spec["versions"]
        name = spec["names"]["kind"]
        _type(version["schema"]["openAPIV3Schema"], name, types, needed)
        types[name]["fields"]["metadata"] = {"t": _METADATA}
        needed[name] = ("spec",)
        kinds[spec["group"], name] = name
    of_set = types[f"{LEADER_WORKER_SET.kind}.spec"]["fields"]
    recorded = {name: of_set[name]["t"] for name in ("leaderWorkerTemplate", "networkConfig")}
    types |= {_RECORDED: _struct(spec=f"{_RECORDED}.spec"), f"{_RECORDED}.spec": _struct(**recorded)}
    return _Types(builtin.extended(types), kinds, needed)


def _struct(**fields: str) -> dict[str, Any]:
    return {"fields": {name: {"t": kind} for name, kind in fields.items()}}


def _type(schema: Mapping[str, Any], name: str, types: dict[str, Any], needed: dict[str, tuple[str, ...]]) -> str:
    """What the table calls the values of a structural schema; structs are added to it under their paths."""
    if schema.get(INT_OR_STRING):
        return "quantity" if "pattern" in schema else "intorstring"
    match schema.get("type"):
        case "object" if "properties" in schema:
            fields = {key: _type(part, f"{name}.{key}", types, needed) for key, part in schema["properties"].items()}
            types[name] = _struct(**fields)
            needed[name] = _CONDITION if name.endswith(".conditions[]") else tuple(schema.get("required", ()))
            return name
        case "object":
            inner = schema.get("additionalProperties")
            return f"map:{_type(inner, f'{name}{{}}', types, needed) if isinstance(inner, Mapping) else 'any'}"
        case "array":
            return f"[]{_type(schema['items'], f'{name}[]', types, needed)}"
        case "integer":
            return schema.get("format", "int64")
        case "string":
            return "time" if schema.get("format") == "date-time" else "string"
        case kind:
            return _SCALARS.get(kind or "", "any")
