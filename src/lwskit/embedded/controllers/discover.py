"""All kinds that an API server serves, for the controllers that deal with every kind."""

from __future__ import annotations

from collections.abc import Iterable

from lwskit.runtime.client.client import Client
from lwskit.runtime.errors import ApiError
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Obj


async def served_kinds(client: Client, verbs: Iterable[str]) -> list[Kind]:
    """The kinds that support all these verbs, each in its group's preferred version. Raises ConnectionFailed.

    A group that does not answer is left out. Source: Kubernetes API concepts, discovery.
    """
    needed = set(verbs)
    found = _kinds(await client.raw("GET", "/api/v1"), needed)
    groups = await client.raw("GET", "/apis")
    for group in groups.get("groups") or ():
        seen: set[str] = set()
        preferred = (group.get("preferredVersion") or {}).get("groupVersion", "")
        versions = [v["groupVersion"] for v in group.get("versions") or ()]
        for version in sorted(versions, key=lambda v: v != preferred):
            try:
                listed = await client.raw("GET", f"/apis/{version}")
            except ApiError:
                continue
            for kind in _kinds(listed, needed):
                # A resource counts once, in the preferred version if that has it.
                if kind.plural not in seen:
                    seen.add(kind.plural)
                    found.append(kind)
    return found


def _kinds(listed: Obj, verbs: set[str]) -> list[Kind]:
    group, _, version = listed["groupVersion"].rpartition("/")
    return [
        Kind(group, version, r["kind"], r["name"], r["namespaced"])
        for r in listed.get("resources") or ()
        if "/" not in r["name"] and verbs <= set(r.get("verbs") or ())
    ]


def custom_kind(definition: Obj) -> Kind | None:
    """The kind that an established CustomResourceDefinition defines, in its storage version; None before that."""
    status = definition.get("status") or {}
    if not any(c["type"] == "Established" and c["status"] == "True" for c in status.get("conditions") or ()):
        return None
    spec = definition["spec"]
    served = [v["name"] for v in spec["versions"] if v.get("served")]
    stored = [v["name"] for v in spec["versions"] if v.get("storage") and v.get("served")]
    if not served:
        return None
    names = spec["names"]
    return Kind(spec["group"], (stored or served)[0], names["kind"], names["plural"], spec["scope"] == "Namespaced")
