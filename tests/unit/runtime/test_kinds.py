"""Paths of kinds: no name leads anywhere but to the object of that name."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lwskit.runtime.errors import InvalidRequest, NotFound
from lwskit.runtime.kinds import CONFIG_MAP, NAMESPACE, POD, SECRET
from lwskit.testing import fake


@pytest.mark.parametrize(
    "name", ["a/b", "..", ".", "../../kube-system/secrets/s", "%2e%2e", "a%", "", 5, b"a", "\ud800"]
)
def test_names_that_cannot_stand_in_a_path_are_refused(name: Any) -> None:
    with pytest.raises(InvalidRequest, match="name of a Pod"):
        POD.path("d", name)
    with pytest.raises(InvalidRequest, match="subresource of a Pod"):
        POD.path("d", "p", "status/..")
    if name:
        with pytest.raises(InvalidRequest, match="namespace of a Pod"):
            POD.path(name)


@given(st.text(st.characters(exclude_categories=("Cs",)), min_size=1))
def test_any_other_name_is_one_segment_of_the_path(name: str) -> None:
    try:
        path = POD.path("d", name)
    except InvalidRequest:
        assert name in (".", "..") or "/" in name or "%" in name
        return
    parts = urlsplit(f"https://h{path}")
    assert (parts.query, parts.fragment) == ("", "")
    assert unquote(parts.path) == f"/api/v1/namespaces/d/pods/{name}"


def test_usual_names_are_not_changed() -> None:
    assert POD.path("d", "a.b-c", "status") == "/api/v1/namespaces/d/pods/a.b-c/status"
    assert CONFIG_MAP.path("d", "system:node:x").endswith("/system:node:x")
    assert POD.path("d", "p", "proxy/metrics").endswith("/pods/p/proxy/metrics")


async def test_a_name_does_not_reach_another_object() -> None:
    client = fake.client([{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "other"}}])
    for kind, name in ((NAMESPACE, "other/secrets/s"), (CONFIG_MAP, "../../other/secrets/s")):
        with pytest.raises(InvalidRequest):
            await client.delete(kind, name, "t")
    with pytest.raises(NotFound, match=r"s\?dryRun=All"):
        await client.delete(SECRET, "s?dryRun=All", "other")
    assert len(client.objects(SECRET)) == 1
