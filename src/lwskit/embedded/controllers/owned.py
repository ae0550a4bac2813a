"""What a workload controls, from the cache: found by its UID, adopted and let go by its selector; and its status."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lwskit.embedded.controllers import adoption
from lwskit.runtime.cache.informer import Informer
from lwskit.runtime.cache.store import Store
from lwskit.runtime.client.client import Client
from lwskit.runtime.execute import Executor
from lwskit.runtime.kinds import Kind
from lwskit.runtime.objects import Key, Obj, Selector, controller_of, is_deleting, is_of, labels_of, uid_of
from lwskit.runtime.plan import OnError, Plan, UpdateStatus
from lwskit.runtime.request import Request

OWNER_INDEX = "controller-uid"
"""Objects by the UID of their controller; orphans under the empty string."""


def index(informer: Informer) -> None:
    """Make an informer's objects found by their controller, unless they are already."""
    if not informer.store.has_index(OWNER_INDEX):
        informer.add_index(OWNER_INDEX, _controller_uid)


def owner_in(store: Store, kind: Kind, obj: Obj) -> Obj | None:
    """The object of that kind that controls `obj`, from the store of its kind."""
    ref = controller_of(obj)
    if ref is None or not is_of(ref, kind):
        return None
    owner = store.get(Key(obj["metadata"]["namespace"], ref["name"]))
    return owner if owner is not None and uid_of(owner) == ref["uid"] else None


def requests_for(
    store: Store, kind: Kind, obj: Obj, belongs: Callable[[Obj, Obj], bool] = lambda owner, obj: True
) -> Iterator[Request]:
    """The owner of that kind that controls `obj`; for an orphan every one that might adopt it.

    `belongs` is asked besides the selector, with the owner and the object.
    """
    namespace = obj["metadata"]["namespace"]
    if controller_of(obj) is not None:
        owner = owner_in(store, kind, obj)
        if owner is not None:
            yield Request(namespace, owner["metadata"]["name"], kind.kind)
        return
    for candidate in store.list(namespace):
        selector = Selector.from_object(candidate["spec"].get("selector"))
        if belongs(candidate, obj) and selector.requirements and selector.matches(labels_of(obj)):
            yield Request(namespace, candidate["metadata"]["name"], kind.kind)


def controlled(informer: Informer, owner: Obj) -> list[Obj]:
    """The objects that name `owner` as their controller."""
    return informer.store.by_index(OWNER_INDEX, uid_of(owner), owner["metadata"]["namespace"])


def candidates(informer: Informer, owner: Obj) -> Iterator[Obj]:
    """The objects that `owner` controls, and the orphans of its namespace."""
    yield from controlled(informer, owner)
    yield from informer.store.by_index(OWNER_INDEX, "", owner["metadata"]["namespace"])


async def may_adopt(client: Client, kind: Kind, owner: Obj) -> bool:
    """Whether the owner still exists and is not being deleted, read live: adopting is not to be undone."""
    meta = owner["metadata"]
    live = await client.get(kind, meta["name"], meta["namespace"])
    return uid_of(live) == uid_of(owner) and not is_deleting(live)


async def take(
    client: Client,
    executor: Executor,
    owner: Obj,
    owner_kind: Kind,
    informer: Informer,
    belongs: Callable[[Obj], bool] = lambda _: True,
    concerns: Callable[[Obj], bool] = lambda _: True,
) -> list[Obj] | None:
    """Adopt and let go what has to be; the objects held then, or None when something has changed meanwhile.

    `belongs` is asked besides the selector; what `concerns` says no of is left as it is, and not held. Raises ApiError.
    When cancelled some may be adopted and others not.
    """
    selector = Selector.from_object(owner["spec"].get("selector"))

    def sort_out() -> adoption.Claims:
        found = (obj for obj in candidates(informer, owner) if concerns(obj))
        return adoption.claim(owner, selector, found, belongs)

    claims = sort_out()
    if claims.adopt and not await may_adopt(client, owner_kind, owner):
        return None
    actions = [adoption.adoption(owner, owner_kind, informer.kind, obj) for obj in claims.adopt]
    actions += [adoption.release(owner, informer.kind, obj) for obj in claims.release]
    if not actions:
        return claims.held
    if (await executor.execute(Plan(tuple(actions)))).requeue:
        return None
    return sort_out().held


async def write(executor: Executor, kind: Kind, obj: Obj, why: str) -> bool:
    """Write an object with its status; False when it has changed meanwhile. Raises ApiError."""
    errors = {"Conflict": OnError.REQUEUE, "NotFound": OnError.IGNORE}
    action = UpdateStatus(why=why, kind=kind, obj=obj, errors=errors)
    return not (await executor.execute(Plan((action,)))).requeue


def _controller_uid(obj: Obj) -> list[str]:
    ref = controller_of(obj)
    return [ref["uid"] if ref else ""]
