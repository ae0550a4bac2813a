"""What of a cluster is kept, and how: settings by kind and namespace, and which of them wins. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from lwskit.runtime.cache import fields
from lwskit.runtime.cache.transform import Transform
from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.kinds import Kind

ALL_NAMESPACES = ""
"""The key that stands for all namespaces; beside named ones, for all others."""

RESYNC = 10 * 3600.0
"""Seconds after which handlers that want it get everything again, unless settings say otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How objects are kept. What is None is inherited from the next wider settings.

    `label_selector` and `field_selector` choose the objects (an empty text: all of them); `transform` is applied before
    they are stored; `copy` tells whether a Reader hands out copies; `bookmarks` whether watches ask for bookmarks;
    `resync` is in seconds, 0 for never. Specification: 70 §2.11.
    """

    label_selector: str | None = None
    field_selector: str | None = None
    transform: Transform | None = None
    copy: bool | None = None
    bookmarks: bool | None = None
    resync: float | None = None


Namespaces: TypeAlias = Mapping[str, Settings] | Collection[str]
"""Namespaces to keep objects of, each perhaps with settings of its own. None at all means every namespace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindSettings(Settings):
    """Settings of one kind. `namespaces` None inherits; an empty collection means every namespace."""

    namespaces: Namespaces | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSettings:
    """Settings of a cache: those of a kind in a namespace win, then the kind's, the namespace's, the default's."""

    default: Settings = field(default_factory=Settings)
    namespaces: Namespaces = ()
    kinds: Mapping[Kind, KindSettings] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scope:
    """What one list and watch of a kind brings, with all settings resolved.

    `namespace` is empty for all namespaces but those in `others`, which have scopes of their own. `transform` None
    means the cache's own. `resync` is in seconds, 0 for never.
    """

    namespace: str = ALL_NAMESPACES
    label_selector: str = ""
    field_selector: str = ""
    transform: Transform | None = None
    copy: bool = True
    bookmarks: bool = True
    resync: float = RESYNC
    others: frozenset[str] = frozenset()

    @property
    def selection(self) -> tuple[str, str, str]:
        """What tells two scopes of a kind apart."""
        return (self.namespace, self.label_selector, self.field_selector)

    @property
    def path_namespace(self) -> str:
        """The namespace that requests name: the scope's own, or the only one that the field selector leaves."""
        return self.namespace or fields.exact_value(fields.parse(self.field_selector), fields.NAMESPACE) or ""

    def has(self, namespace: str) -> bool:
        """Whether objects of that namespace belong to this scope."""
        return namespace == self.namespace if self.namespace else namespace not in self.others

    def with_field_selector(self, selector: str) -> Scope:
        """The same with another field selector, which also leaves out what belongs to the other scopes."""
        apart = [fields.Term(fields.NAMESPACE, other, exact=False) for other in sorted(self.others)]
        return replace(self, field_selector=fields.join([*apart, *fields.parse(selector)]))


def scopes_of(settings: CacheSettings, kind: Kind, resync: float = RESYNC) -> tuple[Scope, ...]:
    """The scopes in which a kind is kept; `resync` is the period in seconds where no setting has one.

    Raises ConfigurationError for namespaces of a cluster-scoped kind. Specification: 70 §2.11.
    """
    last = Settings(resync=resync)
    mine = settings.kinds.get(kind, KindSettings())
    if not kind.namespaced:
        if mine.namespaces:
            names = ", ".join(repr(name) for name in mine.namespaces)
            raise ConfigurationError(f"{kind.kind} is cluster-scoped; it cannot be cached for namespace {names}")
        return (_resolved(ALL_NAMESPACES, frozenset(), mine, settings.default, last),)
    chosen = _mapping(settings.namespaces if mine.namespaces is None else mine.namespaces)
    own = chosen if mine.namespaces is not None else {}
    general = _mapping(settings.namespaces)
    named = frozenset(name for name in chosen if name != ALL_NAMESPACES)
    return tuple(
        _resolved(
            name,
            named if name == ALL_NAMESPACES else frozenset(),
            own.get(name, Settings()),
            mine,
            general.get(name, Settings()),
            settings.default,
            last,
        )
        for name in chosen or (ALL_NAMESPACES,)
    )


def scope_for(scopes: tuple[Scope, ...], kind: Kind, namespace: str) -> Scope:
    """The scope of one namespace by itself. Raises ConfigurationError when the kind is not kept there."""
    for scope in scopes:
        if scope.namespace == namespace:
            return scope
    for scope in scopes:
        if scope.has(namespace):
            rest = fields.join(t for t in fields.parse(scope.field_selector) if not _excludes(t, scope.others))
            return replace(scope, namespace=namespace, field_selector=rest, others=frozenset())
    known = ", ".join(scope.namespace for scope in scopes)
    raise ConfigurationError(f"{kind.kind} is not cached for namespace {namespace!r}, only for {known}")


def _excludes(term: fields.Term, names: frozenset[str]) -> bool:
    return term.field == fields.NAMESPACE and not term.exact and term.value in names


def _mapping(namespaces: Namespaces) -> Mapping[str, Settings]:
    return namespaces if isinstance(namespaces, Mapping) else {name: Settings() for name in namespaces}


def _resolved(namespace: str, others: frozenset[str], *levels: Settings) -> Scope:
    def first(name: str) -> object:
        return next((value for level in levels if (value := getattr(level, name)) is not None), None)

    found = {name: value for name in Settings.__dataclass_fields__ if (value := first(name)) is not None}
    scope = replace(Scope(namespace, others=others), **found)
    return scope.with_field_selector(scope.field_selector)
