"""The checklist of health endpoints (specification: 70 §17, Health, metrics, events)."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest

from lwskit.runtime.errors import ConfigurationError
from lwskit.runtime.health import Checks, HealthServer
from lwskit.runtime.listener import parse_address


def broken() -> None:
    raise ValueError("database is gone")


async def late() -> None:
    await asyncio.sleep(0)
    raise ValueError("too late")


def checks() -> Checks:
    found = Checks("healthz")
    found.add("b-broken", broken)
    found.add("a-fine", lambda: None)
    return found


async def test_a_failing_check_is_a_500_that_withholds_the_reason_unless_it_is_excluded() -> None:
    """70 §17 Health, metrics, events 1: a failing check fails all, without its reason, unless it is left out."""
    expected = "[+]a-fine ok\n[-]b-broken failed: reason withheld\nhealthz check failed\n"
    assert await checks().all() == (500, expected)
    assert await checks().all(exclude=["b-broken"]) == (200, "ok")
    status, text = await checks().all(exclude=["b-broken", "x"], verbose=True)
    assert status == 200
    assert text == (
        "[+]a-fine ok\n[+]b-broken excluded: ok\n"
        'warn: some health checks cannot be excluded: no matches for "x"\nhealthz check passed\n'
    )


async def test_one_check_by_name() -> None:
    assert await checks().one("a-fine") == (200, "ok")
    assert await checks().one("b-broken") == (500, "internal server error: database is gone\n")
    assert (await checks().one("x"))[0] == 404


async def test_without_checks_there_is_a_ping() -> None:
    assert await Checks("healthz").all(verbose=True) == (200, "[+]ping ok\nhealthz check passed\n")
    assert await Checks("healthz").one("ping") == (200, "ok")


async def test_checks_may_be_asynchronous_and_have_a_name_of_their_own() -> None:
    found = checks()
    found.add("late", late)
    assert await found.one("late") == (500, "internal server error: too late\n")
    with pytest.raises(ConfigurationError, match="'late' already"):
        found.add("late", late)


async def test_the_server_has_the_sides_that_have_checks() -> None:
    """70 §17 Health, metrics, events 2: a check that does not exist is not found."""
    server = HealthServer("127.0.0.1", 0)
    server.add_health_check("healthz")
    task = asyncio.create_task(server.run())
    await server.serving.wait()
    url = f"http://127.0.0.1:{server.port}"
    try:
        async with aiohttp.ClientSession() as http:
            found = {}
            for path in ("/healthz", "/healthz/healthz", "/healthz/x", "/readyz", "/healthz?verbose", "/"):
                async with http.get(url + path) as response:
                    found[path] = (response.status, await response.text())
                    assert response.headers["X-Content-Type-Options"] == "nosniff"
                    assert response.content_type == "text/plain"
        assert found["/healthz"] == (200, "ok")
        assert found["/healthz/healthz"] == (200, "ok")
        assert found["/healthz?verbose"] == (200, "[+]healthz ok\nhealthz check passed\n")
        assert [found[p][0] for p in ("/healthz/x", "/readyz", "/")] == [404, 404, 404]
        text = "unable to add new checker because healthz endpoint has already been created"
        with pytest.raises(ConfigurationError, match=text):
            server.add_health_check("late")
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("port", [99999, -1, "80", None, True])
def test_what_is_no_port_fails_construction(port: Any) -> None:
    with pytest.raises(
        ConfigurationError, match=f"^health server cannot listen on port {port}; choose one up to 65535"
    ):
        HealthServer("127.0.0.1", port)


def test_a_busy_port_fails_construction() -> None:
    first = HealthServer("127.0.0.1", 0)
    try:
        with pytest.raises(ConfigurationError, match="health server cannot listen on"):
            HealthServer("127.0.0.1", first.port)
    finally:
        first.close()


@pytest.mark.parametrize(
    ("text", "address"), [(":8081", ("", 8081)), ("127.0.0.1:0", ("127.0.0.1", 0)), ("[::1]:80", ("::1", 80))]
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", "8081", "host:", "host:http", ":70000"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="write HOST:PORT"):
        parse_address(text)
