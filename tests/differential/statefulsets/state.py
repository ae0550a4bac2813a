"""What is compared of a namespace: everything that the StatefulSet controller and the garbage collector bring about."""

from __future__ import annotations

from collections import Counter
from typing import Any

from lwskit.runtime.kinds import CONTROLLER_REVISION, PERSISTENT_VOLUME_CLAIM, POD, STATEFUL_SET
from lwskit.runtime.objects import Obj, is_deleting, is_true
from tests.differential.side_by_side.mirror import Place

_META = ("labels", "annotations", "generateName", "finalizers", "generation", "ownerReferences")
_OF_REVISIONS = ("currentRevision", "updateRevision", "currentReplicas", "updatedReplicas")
_CLAIM = ("accessModes", "resources", "volumeMode", "storageClassName")


def state(place: Place) -> dict[str, Any]:
    """The namespace in comparable form: no times and versions, and UIDs as numbers among those of a name.

    A set that is being deleted makes its revision anew if its controller looks when the garbage collector has taken it:
    that is left to chance, and so everything about revisions is left out then.
    """
    found: dict[str, Any] = {}
    sets = place.of(STATEFUL_SET).values()
    deleting = any(is_deleting(s) for s in sets)
    for name, obj in place.of(STATEFUL_SET).items():
        status = {k: v for k, v in (obj.get("status") or {}).items() if not (deleting and k in _OF_REVISIONS)}
        found[f"statefulsets/{name}"] = _meta(place, obj) | {"status": status}
    for name, obj in place.of(POD).items():
        status = obj.get("status") or {}
        found[f"pods/{name}"] = _meta(place, obj) | {
            "spec": _pod_spec(obj["spec"]),
            "phase": status.get("phase"),
            "ready": is_true(obj, "Ready"),
        }
    revisions = {} if deleting else place.of(CONTROLLER_REVISION)
    for name, obj in revisions.items():
        meta = _meta(place, obj) | {"which": ""}
        found[f"controllerrevisions/{name}"] = meta | {"revision": obj["revision"], "data": obj["data"]}
    for name, obj in place.of(PERSISTENT_VOLUME_CLAIM).items():
        spec = {k: obj["spec"].get(k) for k in _CLAIM}
        found[f"persistentvolumeclaims/{name}"] = _meta(place, obj) | {"spec": spec}
    found["made"] = _counted(place.births, deleting or not sets)
    found["gone"] = _counted(place.deaths, deleting or not sets)
    return found


def _counted(names: Counter[str], going: bool) -> dict[str, int]:
    """How often each name was made or removed."""
    return {n: c for n, c in sorted(names.items()) if not (going and n.startswith(CONTROLLER_REVISION.plural))}


def _meta(place: Place, obj: Obj) -> dict[str, Any]:
    meta = obj["metadata"]
    found = {k: meta[k] for k in _META if meta.get(k)}
    if "ownerReferences" in found:
        refs = [{**r, "uid": place.symbols.get(r["uid"], "of something else")} for r in found["ownerReferences"]]
        found["ownerReferences"] = sorted(refs, key=lambda r: (r["kind"], r["name"]))
    if "finalizers" in found:
        found["finalizers"] = sorted(found["finalizers"])
    return {"which": place.symbols[meta["uid"]], "deleting": is_deleting(obj), **found}


def _pod_spec(spec: Obj) -> Obj:
    """The claims of a pod are mounted in no particular order."""
    if "volumes" not in spec:
        return spec
    return {**spec, "volumes": sorted(spec["volumes"], key=lambda v: v["name"])}
