"""Lists and watches at versions, as a real API server answers them (recorded from kube-apiserver 1.37)."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from lwskit.embedded.apiserver import ApiServer
from lwskit.runtime.client.transport import HttpRequest
from lwskit.runtime.kinds import CONFIG_MAP

from .serving import client, config_map, server

PATH = "/api/v1/namespaces/default/configmaps"
INVALID = 'ListOptions.meta.k8s.io "" is invalid: '
FORBIDDEN = "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden "


async def filled() -> tuple[ApiServer, list[int]]:
    api = server()
    made = [await client(api).create(CONFIG_MAP, config_map(f"c{i}")) for i in range(4)]
    return api, [int(o["metadata"]["resourceVersion"]) for o in made]


async def ask(api: ApiServer, **params: Any) -> Any:
    query = tuple((name.rstrip("_"), str(value)) for name, value in params.items())
    request = HttpRequest("GET", PATH, query, {"accept": "application/json"})
    if "watch" not in params:
        return orjson.loads((await api.handle(request, "admin")).body)
    lines = (await api.open_watch(request, "admin").read()).splitlines()
    return [orjson.loads(line) for line in lines]


def names(listed: Any) -> list[str]:
    return [o["metadata"]["name"] for o in listed["items"]]


async def test_at_version_0_a_limit_does_not_count() -> None:
    api, _ = await filled()
    listed = await ask(api, limit=2, resourceVersion=0)
    assert (len(names(listed)), "continue" in listed["metadata"]) == (4, False)


async def test_at_a_version_a_whole_list_is_not_older_and_pages_are_exact() -> None:
    api, versions = await filled()
    whole = await ask(api, resourceVersion=versions[1])
    assert (len(names(whole)), whole["metadata"]["resourceVersion"]) == (4, str(api.store.version))
    page = await ask(api, resourceVersion=versions[1], limit=1)
    assert names(page) == ["c0"]
    assert page["metadata"]["resourceVersion"] == str(versions[1])
    rest = await ask(api, limit=5, continue_=page["metadata"]["continue"])
    assert (names(rest), rest["metadata"]["resourceVersion"]) == (["c1"], str(versions[1]))
    api.store.compact()
    gone = await ask(api, resourceVersion=versions[1], limit=1)
    assert (gone["code"], gone["message"]) == (410, "The resourceVersion for the provided list is too old.")


@pytest.mark.parametrize(
    ("params", "code", "message"),
    [
        ({"resourceVersion": "x"}, 400, "invalid resource version: resourceVersion: Invalid value: "),
        ({"continue_": "TOKEN", "resourceVersion": 3}, 400, "specifying resource version is not allowed when using"),
        ({"resourceVersionMatch": "Exact"}, 422, INVALID + FORBIDDEN + "unless resourceVersion is provided"),
        (
            {"continue_": "TOKEN", "resourceVersion": 3, "resourceVersionMatch": "Exact"},
            422,
            INVALID + FORBIDDEN + "when continue is provided",
        ),
        (
            {"resourceVersion": 0, "resourceVersionMatch": "Exact"},
            422,
            INVALID + 'resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion',
        ),
        (
            {"resourceVersion": 1, "resourceVersionMatch": "Newest"},
            422,
            INVALID
            + 'resourceVersionMatch: Unsupported value: "Newest": supported values: "Exact", "NotOlderThan", ""',
        ),
        (
            {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"},
            422,
            f"{INVALID}[{FORBIDDEN}unless resourceVersion is provided, sendInitialEvents: Forbidden: sendInitialEvents",
        ),
        ({"resourceVersion": 9999}, 504, "Timeout: Too large resource version: 9999, current: "),
    ],
)
async def test_lists_that_are_refused(params: dict[str, Any], code: int, message: str) -> None:
    api, _ = await filled()
    token = (await ask(api, limit=2))["metadata"]["continue"]
    refused = await ask(api, **{k: token if v == "TOKEN" else v for k, v in params.items()})
    assert refused["code"] == code
    assert refused["message"].startswith(message)


@pytest.mark.virtual
@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"resourceVersionMatch": "NotOlderThan"}, FORBIDDEN[:72]),
        ({"sendInitialEvents": "true"}, "resourceVersionMatch: Forbidden: sendInitialEvents requires setting"),
    ],
)
async def test_watches_that_are_refused(params: dict[str, Any], message: str) -> None:
    api, _ = await filled()
    (refused,) = await ask(api, watch="true", timeoutSeconds=1, **params)
    assert refused["code"] == 422
    assert message in refused["message"]


@pytest.mark.virtual
async def test_a_watch_from_the_future_brings_what_comes_after_it() -> None:
    api, versions = await filled()
    request = HttpRequest(
        "GET", PATH, (("watch", "true"), ("resourceVersion", str(versions[-1] + 2)), ("timeoutSeconds", "1"))
    )
    stream = api.open_watch(request, "admin")
    for i in range(4):
        await client(api).create(CONFIG_MAP, config_map(f"late{i}"))
    events = [orjson.loads(line) for line in (await stream.read()).splitlines()]
    assert [e["object"]["metadata"]["name"] for e in events] == ["late2", "late3"]


@pytest.mark.virtual
async def test_a_streaming_list_from_the_future_is_an_error_in_the_stream() -> None:
    api, _ = await filled()
    options = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "resourceVersion": 9999}
    (event,) = await ask(api, watch="true", timeoutSeconds=1, allowWatchBookmarks="true", **options)
    assert (event["type"], event["object"]["code"]) == ("ERROR", 504)
