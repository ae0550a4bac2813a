"""What a rollout passes through, as an observer of the children has seen it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lwskit.api import disaggregated_names as names
from lwskit.runtime.objects import Obj, is_deleting, labels_of, uid_of
from lwskit.testing.observer import Observer

Specs = dict[str, dict[str, int]]
"""What children are asked to have, by revision and role."""


def passed_through(observer: Observer, before: Iterable[Obj] = ()) -> Iterator[Specs]:
    """What the children of one slice that stay were asked to have, at first and after each change of that.

    `before` are those that were there when the observer began.
    """
    held: dict[str, Obj] = {uid_of(lws): lws for lws in before}
    last: Specs = {}
    for change in (None, *observer.changes):
        if change is not None and (change.type == "DELETED" or is_deleting(change.obj)):
            held.pop(change.uid, None)
        elif change is not None:
            held[change.uid] = change.obj
        now: Specs = {}
        for lws in held.values():
            labels = labels_of(lws)
            now.setdefault(labels[names.REVISION_LABEL], {})[labels[names.ROLE_LABEL]] = lws["spec"]["replicas"]
        if now != last:
            yield now
        last = now
