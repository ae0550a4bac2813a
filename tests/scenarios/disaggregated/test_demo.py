"""What `lwskit demo --disaggregated` shows, on any cluster."""

from __future__ import annotations

import re

from rich.console import Console

from lwskit.cli import disaggregated_demo
from lwskit.runtime.objects import Key
from lwskit.testing.cluster import TestCluster
from tests.scenarios.disaggregated.support import DisaggregatedSets, two_roles

ROW = re.compile(r"^│ \d+ +│ ■* ?(\d) +│ [■□]* ?(\d) +│ ■* ?(\d) +│ [■□]* ?(\d) ", re.MULTILINE)


async def test_the_sample_is_shown_and_rolled(cluster: TestCluster, sets: DisaggregatedSets) -> None:
    """Prefill 1 and decode 2, over the steps of the specification (50 §9 r14)."""
    await sets.create(*two_roles(1, 2))
    console = Console(width=200, force_terminal=False, record=True)
    async with cluster.kubelet.playing():
        await disaggregated_demo.show(console, cluster.client, Key(cluster.namespace, "chat"), cluster.timeout)
    text = console.export_text()
    assert f"{cluster.namespace}/chat: 2 children (available)" in text
    (revision,) = await sets.revisions()
    assert f"chat-0-{revision}-prefill" in text
    asked = [tuple(map(int, counts)) for counts in ROW.findall(text)]
    assert asked[0] == (1, 0, 2, 0)
    assert asked[-1] == (0, 1, 0, 2)
    assert (1, 1, 1, 1) in asked
    # At no step is a role without any group.
    assert [counts for counts in asked if not sum(counts[:2]) or not sum(counts[2:])] == []
    assert f"Completed rolling update to revision {revision}" in text
