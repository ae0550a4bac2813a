"""The whole program over real sockets and in real time: its webhook as the API server of a cluster calls it."""

import asyncio
import base64
from pathlib import Path

import pytest
from greeter import GREETING, validation

from lwskit.embedded.cluster import Cluster
from lwskit.runtime.certs import make_ca, make_server_cert
from lwskit.runtime.clock import RealClock, real_random
from lwskit.runtime.controller_manager import ControllerManager
from lwskit.runtime.errors import Forbidden
from lwskit.runtime.kinds import NAMESPACE, VALIDATING_WEBHOOK_CONFIGURATION
from lwskit.runtime.manager_options import ManagerOptions, WebhookOptions
from lwskit.runtime.tls import TlsFiles
from lwskit.runtime.webhook import validate_path
from lwskit.testing import fake

PATH = validate_path(GREETING)


async def test_the_whole_program(tmp_path: Path) -> None:
    clock, rng = RealClock(), real_random()
    files = TlsFiles.in_folder(tmp_path)
    authority = make_ca(clock.now(), rng)
    pair = make_server_cert(authority, [], ["127.0.0.1"], clock.now(), rng)
    files.cert.write_bytes(pair.cert_pem)
    files.key.write_bytes(pair.key_pem)
    async with Cluster(clock, rng, nodes=0, crds=[fake.crd_of(GREETING)]) as cluster:
        options = ManagerOptions(webhooks=WebhookOptions(host="127.0.0.1", port=0, files=files))
        manager = ControllerManager(cluster.client, options)
        manager.add_webhook(PATH, validation)
        task = asyncio.create_task(manager.run())
        await manager.webhooks.serving.wait()
        url = f"https://127.0.0.1:{manager.webhooks.port}{PATH}"
        bundle = base64.b64encode(authority.cert_pem).decode()
        rule = {
            "apiGroups": [GREETING.group],
            "apiVersions": [GREETING.version],
            "resources": [GREETING.plural],
            "operations": ["CREATE", "UPDATE"],
        }
        webhook = {
            "name": "greetings.greeter.example",
            "clientConfig": {"url": url, "caBundle": bundle},
            "rules": [rule],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        configuration = {"metadata": {"name": "greetings"}, "webhooks": [webhook]}
        await cluster.client.create(VALIDATING_WEBHOOK_CONFIGURATION, configuration)
        await cluster.client.create(NAMESPACE, {"metadata": {"name": "t"}})
        greeting = {"metadata": {"name": "g", "namespace": "t"}, "spec": {"name": ""}}
        with pytest.raises(Forbidden, match=r"spec\.name is empty"):
            await cluster.client.create(GREETING, greeting)
        await cluster.client.create(GREETING, {**greeting, "spec": {"name": "Ada"}})
        manager.stop()
        await task
