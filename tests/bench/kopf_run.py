"""Runs kopf_operator.py against a server that plays the API server's part in it: discovery, an empty list, a watch."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from aiohttp import web

PYTHON = "LWSKIT_BENCH_KOPF"
"""The environment variable that names a Python with kopf."""
PATIENCE = 300.0
VERBS = ["get", "list", "patch", "watch"]
RESOURCES = {
    "kind": "APIResourceList",
    "groupVersion": "v1",
    "resources": [
        {"name": "pods", "singularName": "pod", "kind": "Pod", "namespaced": True, "verbs": VERBS},
        # Without this kind kopf waits for ever, also where it looks at all namespaces.
        {"name": "namespaces", "singularName": "namespace", "kind": "Namespace", "namespaced": False, "verbs": VERBS},
    ],
}
EMPTY = {"apiVersion": "v1", "kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": []}
FIXED = {
    "/version": {"major": "1", "minor": "36", "gitVersion": "v1.36.0"},
    "/api": {"versions": ["v1"]},
    "/apis": {"groups": []},
    "/api/v1": RESOURCES,
}


class Unavailable(Exception):
    """There is no kopf to compare with."""


def python() -> str:
    """A Python that has kopf. Raises Unavailable."""
    named = os.environ.get(PYTHON)
    if named and Path(named).exists():
        return named
    if importlib.util.find_spec("kopf") is not None:
        return sys.executable
    raise Unavailable(f"kopf is not installed and {PYTHON} names no Python that has it")


async def through_kopf(chunks: Sequence[bytes], events: int) -> float:
    """Processor seconds per event of an operator on kopf. Raises Unavailable when it does not get through."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path in FIXED:
            return web.json_response(FIXED[request.path])
        if request.path != "/api/v1/pods":
            return web.json_response({"kind": "Status", "code": 404, "reason": "NotFound"}, status=404)
        if "watch" not in request.query:
            return web.json_response(EMPTY)
        response = web.StreamResponse(headers={"content-type": "application/json"})
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
        await asyncio.sleep(PATIENCE)
        return response

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server = site.name
    script = str(Path(__file__).with_name("kopf_operator.py"))
    child = await asyncio.create_subprocess_exec(
        python(), script, server, str(events), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(PATIENCE):
            output, errors = await child.communicate()
    except TimeoutError:
        raise Unavailable(f"kopf did not get through {events} events in {PATIENCE:g} s") from None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
        await runner.cleanup()
    if child.returncode or not output:
        raise Unavailable(f"the operator on kopf ended with {child.returncode}: {errors.decode()[-500:]}")
    found = json.loads(output)
    return found["seconds"] / found["events"]
