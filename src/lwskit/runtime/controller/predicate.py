"""Which events a controller cares about (specification: 70 §3.5). Pure."""

from __future__ import annotations

from collections.abc import Callable

from lwskit.runtime.controller.handler import Event, Update
from lwskit.runtime.objects import Obj, Selector, annotations_of, generation_of, labels_of, version_of

Predicate = Callable[[Event], bool]
"""Whether an event goes on to the handler."""


def resource_version_changed(event: Event) -> bool:
    """Drop updates that change nothing, as a resync or a relist tells them."""
    return not isinstance(event, Update) or version_of(event.old) != version_of(event.new)


def generation_changed(event: Event) -> bool:
    """Drop updates that leave `metadata.generation` alone: most changes of status, labels and annotations."""
    return not isinstance(event, Update) or generation_of(event.old) != generation_of(event.new)


def labels_changed(event: Event) -> bool:
    """Drop updates that leave the labels alone."""
    return not isinstance(event, Update) or dict(labels_of(event.old)) != dict(labels_of(event.new))


def annotations_changed(event: Event) -> bool:
    """Drop updates that leave the annotations alone."""
    return not isinstance(event, Update) or dict(annotations_of(event.old)) != dict(annotations_of(event.new))


def matches(selector: Selector) -> Predicate:
    """Keep events whose object, of an update the new one, has labels that the selector matches."""
    return where(lambda obj: selector.matches(labels_of(obj)))


def where(condition: Callable[[Obj], bool]) -> Predicate:
    """Keep events whose object, of an update the new one, fulfils a condition."""

    def predicate(event: Event) -> bool:
        return condition(event.new if isinstance(event, Update) else event.obj)

    return predicate


def all_of(*predicates: Predicate) -> Predicate:
    """Keep what every predicate keeps; the first that does not ends the asking."""
    return lambda event: all(predicate(event) for predicate in predicates)


def any_of(*predicates: Predicate) -> Predicate:
    """Keep what one of the predicates keeps; the first that does ends the asking."""
    return lambda event: any(predicate(event) for predicate in predicates)


def negate(predicate: Predicate) -> Predicate:
    """Keep what the predicate drops."""
    return lambda event: not predicate(event)
