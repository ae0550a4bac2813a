"""What follows a write inside the server: custom resources start and stop being served, services get addresses."""

from __future__ import annotations

from lwskit.embedded import crds, deletion, services
from lwskit.embedded.backend import Backend
from lwskit.embedded.resources import Resource
from lwskit.embedded.store import Entry, key
from lwskit.runtime.objects import Obj

CRDS = "apiextensions.k8s.io/customresourcedefinitions"
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"


def before_create(b: Backend, resource: Resource, obj: Obj) -> None:
    """Set what the server allocates for a new object."""
    if resource.storage == CRDS and not crds.validate(obj):
        obj["status"] = crds.status(obj, b.now())
        finalizers = obj["metadata"].setdefault("finalizers", [])
        if CLEANUP not in finalizers:
            finalizers.append(CLEANUP)


def begin_create(b: Backend, resource: Resource, obj: Obj, *, dry_run: bool = False) -> None:
    """Allocate what a new object needs before anything else looks at it. Raises Invalid."""
    if resource.storage == "/services":
        services.begin_create(b.store, b.rng, obj, dry_run=dry_run)


def begin_update(b: Backend, resource: Resource, new: Obj, old: Obj, subresource: str) -> None:
    """Allocate what a changed object needs before anything else looks at it. Raises Invalid."""
    if resource.storage == "/services" and subresource == "":
        services.begin_update(b.store, b.rng, new, old)


def before_update(b: Backend, resource: Resource, new: Obj, old: Obj, subresource: str) -> None:
    """Set what the server allocates when an object changes."""
    if resource.storage == CRDS and subresource == "":
        crds.complete(new)
        if not crds.validate(new):
            new["status"] = crds.status({**new, "status": old.get("status")}, b.now())


def after(b: Backend, resource: Resource, entry: Entry, *, removed: bool) -> None:
    """React to a stored change."""
    if resource.storage == CRDS:
        spec = entry.obj["spec"]
        served = [] if removed else crds.resources(entry.obj)
        b.registry.replace_custom(spec["group"], spec["names"]["plural"], served)
        if removed:
            b.store.close_watches(f"{spec['group']}/{spec['names']['plural']}")
        elif "deletionTimestamp" in entry.obj["metadata"]:
            clean_up(b, entry)
    elif removed and resource.custom is not None:
        crd = b.store.get(CRDS, f"{resource.plural}.{resource.group}")
        if crd is not None and "deletionTimestamp" in crd.obj["metadata"]:
            finish(b, crd)


def clean_up(b: Backend, crd: Entry) -> None:
    """Delete all objects of a custom resource that is going; those with finalizers keep it until they are gone."""
    spec = crd.obj["spec"]
    found = b.registry.versions_of(spec["group"], spec["names"]["plural"])
    if found:
        resource = found[0]
        for entry in b.store.list(resource.storage):
            place = key(entry.obj["metadata"].get("namespace"), entry.obj["metadata"]["name"])
            outcome = deletion.decide(resource, entry.obj, deletion.Options(), b.clock.now())
            if outcome.marked is not None:
                b.store.update(resource.storage, place, outcome.marked, entry)
            elif outcome.remove:
                b.store.delete(resource.storage, place, entry)
    current = b.store.get(CRDS, crd.obj["metadata"]["name"])
    if current is not None:
        finish(b, current)


def finish(b: Backend, crd: Entry) -> None:
    """Take the server's own finalizer from a custom resource that has no objects any more; without others it goes."""
    spec, meta = crd.obj["spec"], crd.obj["metadata"]
    if b.store.count(f"{spec['group']}/{spec['names']['plural']}"):
        return
    resource = b.registry.by_storage(CRDS)
    left = [f for f in meta.get("finalizers") or () if f != CLEANUP]
    if left:
        if len(left) != len(meta["finalizers"]):
            changed = {**crd.obj, "metadata": {**meta, "finalizers": left}}
            b.store.update(CRDS, meta["name"], changed, crd)
        return
    gone = b.store.delete(CRDS, meta["name"], crd)
    after(b, resource, gone, removed=True)
