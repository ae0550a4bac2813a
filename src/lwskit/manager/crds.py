"""Bringing our CustomResourceDefinitions into a cluster without taking anything away from it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import structlog

from lwskit.api import crds
from lwskit.runtime.client.client import Client
from lwskit.runtime.client.discovery import Discovery
from lwskit.runtime.clock import Clock
from lwskit.runtime.errors import ConfigurationError, NotFound
from lwskit.runtime.kinds import CUSTOM_RESOURCE_DEFINITION
from lwskit.runtime.objects import Obj, is_true

log = structlog.get_logger("lwskit.manager.crds")

FIELD_MANAGER = "lwskit"
ESTABLISHED_SECONDS = 30.0


async def install(client: Client, clock: Clock) -> None:
    """Apply every CRD of ours and wait until it is served.

    One that has versions or fields that ours lacks is left alone, with a warning. Raises ConfigurationError when the
    server does not establish it in time.
    """
    for crd in crds.crds():
        name = crd["metadata"]["name"]
        existing = await _get(client, name)
        if existing is not None and (more := missing_in(crd, existing)):
            log.warning(
                "the CRD is left as it is: it has what ours lacks", name=name, lacking=", ".join(sorted(more)[:5])
            )
        else:
            await client.apply(CUSTOM_RESOURCE_DEFINITION, crd, field_manager=FIELD_MANAGER)
        await _established(client, name, clock)


async def require(client: Client) -> None:
    """Raises ConfigurationError naming the first CRD whose kind the cluster does not serve.

    Asks for what is served and not for the CRDs, which the manager of an installation may not read.
    """
    served = Discovery(client)
    for crd in crds.crds():
        spec = crd["spec"]
        try:
            await served.find(f"{spec['group']}/{spec['versions'][0]['name']}", spec["names"]["kind"])
        except ConfigurationError:
            raise ConfigurationError(
                f"the cluster has no CustomResourceDefinition {crd['metadata']['name']}; install it first, for example "
                "with `kubectl apply --server-side -f config/crd`"
            ) from None


def missing_in(ours: Obj, existing: Obj) -> set[str]:
    """Versions and field paths that an existing CRD has and ours would take away."""
    our_versions = {v["name"]: v for v in ours["spec"]["versions"]}
    more: set[str] = set()
    for version in existing["spec"]["versions"]:
        mine = our_versions.get(version["name"])
        if mine is None:
            more.add(f"version {version['name']}")
            continue
        more |= set(_paths(_schema(version))) - set(_paths(_schema(mine)))
    return more


def _schema(version: Obj) -> Obj:
    return (version.get("schema") or {}).get("openAPIV3Schema") or {}


def _paths(schema: Any, prefix: str = "") -> Iterator[str]:
    if not isinstance(schema, dict):
        return
    for name, inner in (schema.get("properties") or {}).items():
        path = f"{prefix}.{name}" if prefix else name
        yield path
        yield from _paths(inner, path)
    for inner in (schema.get("items"), schema.get("additionalProperties")):
        yield from _paths(inner, f"{prefix}[]")


async def _get(client: Client, name: str) -> Obj | None:
    try:
        return await client.get(CUSTOM_RESOURCE_DEFINITION, name)
    except NotFound:
        return None


async def _established(client: Client, name: str, clock: Clock) -> None:
    try:
        async with asyncio.timeout(ESTABLISHED_SECONDS):
            while not is_true(await client.get(CUSTOM_RESOURCE_DEFINITION, name), "Established"):
                await clock.sleep(0.1)
    except TimeoutError:
        raise ConfigurationError(
            f"the API server has not established the CustomResourceDefinition {name} within "
            f"{ESTABLISHED_SECONDS:g} s; `kubectl describe crd {name}` shows its conditions"
        ) from None
