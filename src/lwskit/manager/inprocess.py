"""Webhooks on an embedded cluster: its API server calls them as functions, without a socket."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from lwskit.admission import configurations
from lwskit.embedded.apiserver import ApiServer
from lwskit.runtime.client.client import Client
from lwskit.runtime.kinds import MUTATING_WEBHOOK_CONFIGURATION, VALIDATING_WEBHOOK_CONFIGURATION
from lwskit.runtime.webhook import Handler, respond

SCHEME = "inprocess://"


async def register(server: ApiServer, client: Client, admission: Mapping[str, Handler]) -> None:
    """Have an embedded API server ask these handlers, by path, from the next request on.

    Raises AlreadyExists when webhooks are registered there. When cancelled, some may be registered.
    """
    for path, handler in admission.items():
        server.register_admission(SCHEME + path, partial(respond, handler))

    def client_config(path: str) -> dict[str, str]:
        return {"url": SCHEME + path}

    await client.create(MUTATING_WEBHOOK_CONFIGURATION, configurations.mutating(client_config))
    await client.create(VALIDATING_WEBHOOK_CONFIGURATION, configurations.validating(client_config))
