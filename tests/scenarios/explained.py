"""What `lwskit explain` says on a cluster, once it says what is expected: for the scenarios of explanations."""

from __future__ import annotations

from typing import Any

from lwskit.cli import explaining
from lwskit.groups.explanation import Explanation
from lwskit.runtime.client.client import Client
from lwskit.testing.cluster import TestCluster


async def says(
    cluster: TestCluster, name: str, texts: tuple[str, ...], wanted: dict[str, Any], client: Client | None = None
) -> Explanation:
    """Wait until the explanation of a set has these fields, and these texts in its paragraph; returns it.

    To be called when nothing moves any more, so that it is not right in passing. Even then a controller of the cluster
    may be late, and what is there be explained as it is before that.
    """

    async def check() -> Explanation:
        found = await explaining.on_cluster(client or cluster.client, cluster.namespace, name, cluster.clock.now())
        assert {field: getattr(found, field, None) for field in wanted} == wanted, found
        for text in texts:
            assert text in found.paragraph
        return found

    return await cluster.eventually(check)
