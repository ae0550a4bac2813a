"""Which setting wins, and what lists and watches follow from them (specification: 70 §2.11)."""

from __future__ import annotations

import pytest

from lwskit.runtime.cache.settings import (
    ALL_NAMESPACES,
    CacheSettings,
    KindSettings,
    Scope,
    Settings,
    scope_for,
    scopes_of,
)
from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.kinds import NODE, POD, SERVICE
from lwskit.runtime.objects import Obj


def identity(obj: Obj) -> Obj:
    return obj


def test_without_settings_everything_is_kept_in_one_scope() -> None:
    assert scopes_of(CacheSettings(), POD) == (Scope(),)
    assert scopes_of(CacheSettings(), NODE, resync=5.0) == (Scope(resync=5.0),)


@pytest.mark.parametrize(
    ("setting", "values", "unset"),
    [
        ("label_selector", ("a=1", "a=2", "a=3", "a=4"), ""),
        ("field_selector", ("a=1", "a=2", "a=3", "a=4"), ""),
        ("resync", (1.0, 0.0, 3.0, 4.0), 36000.0),
        ("copy", (False, True, False, True), True),
        ("bookmarks", (False, True, False, True), True),
    ],
)
def test_kind_and_namespace_win_over_the_kind_over_the_namespace_over_the_default(
    setting: str, values: tuple[object, ...], unset: object
) -> None:
    levels = [Settings(**{setting: value}) for value in values]  # type: ignore[arg-type]

    def resolved(own: Settings, kind: object, general: Settings, default: Settings) -> object:
        mine = KindSettings(namespaces={"n": own}, **({setting: kind} if kind is not None else {}))  # type: ignore[arg-type]
        settings = CacheSettings(default=default, namespaces={"n": general}, kinds={POD: mine})
        (scope,) = scopes_of(settings, POD)
        return getattr(scope, setting)

    none = Settings()
    assert resolved(levels[0], values[1], levels[2], levels[3]) == values[0]
    assert resolved(none, values[1], levels[2], levels[3]) == values[1]
    assert resolved(none, None, levels[2], levels[3]) == values[2]
    assert resolved(none, None, none, levels[3]) == values[3]
    assert resolved(none, None, none, none) == unset


def test_an_empty_setting_ends_the_inheritance() -> None:
    settings = CacheSettings(
        default=Settings(label_selector="app=x", transform=identity),
        namespaces=["a", "b"],
        kinds={POD: KindSettings(label_selector="", namespaces=())},
    )
    assert scopes_of(settings, POD) == (Scope(transform=identity),)
    assert [s.label_selector for s in scopes_of(settings, SERVICE)] == ["app=x"] * 2


def test_all_namespaces_beside_named_ones_are_all_the_others() -> None:
    settings = CacheSettings(
        namespaces={"b": Settings(), ALL_NAMESPACES: Settings(field_selector="spec.x=1"), "a": Settings()}
    )
    b, rest, a = scopes_of(settings, POD)
    assert (a.field_selector, b.field_selector) == ("", "")
    assert rest.field_selector == "metadata.namespace!=a,metadata.namespace!=b,spec.x=1"
    assert [rest.has(name) for name in ("a", "b", "c")] == [False, False, True]
    assert [a.has(name) for name in ("a", "b", "c")] == [True, False, False]
    alone = scope_for((b, rest, a), POD, "c")
    assert alone == Scope("c", field_selector="spec.x=1")
    assert scope_for((b, rest, a), POD, "a") == a


def test_a_namespace_in_which_a_kind_is_not_kept_is_refused() -> None:
    scopes = scopes_of(CacheSettings(namespaces=["a", "b"]), POD)
    with pytest.raises(ConfigurationError, match="Pod is not cached for namespace 'c', only for a, b"):
        scope_for(scopes, POD, "c")


def test_kinds_without_namespaces_have_one_scope_with_the_general_settings() -> None:
    settings = CacheSettings(default=Settings(label_selector="x"), namespaces={"a": Settings(label_selector="y")})
    assert scopes_of(settings, NODE) == (Scope(label_selector="x"),)
    wrong = CacheSettings(kinds={NODE: KindSettings(namespaces=["a"])})
    with pytest.raises(ConfigurationError, match="Node is cluster-scoped; it cannot be cached for namespace 'a'"):
        scopes_of(wrong, NODE)


@pytest.mark.parametrize(
    ("selector", "namespace"),
    [("metadata.namespace=x", "x"), ("metadata.namespace!=x", ""), ("spec.y=1,metadata.namespace==x", "x")],
)
def test_a_selector_of_one_namespace_narrows_the_path(selector: str, namespace: str) -> None:
    assert Scope(field_selector=selector).path_namespace == namespace
    assert Scope("own", field_selector=selector).path_namespace == "own"
