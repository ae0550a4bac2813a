"""What `lwskit up` says of the cluster that it serves."""

from __future__ import annotations

from pathlib import Path

from lwskit.api.crds import crds
from lwskit.cli.up import told


def test_sets_of_both_kinds_are_told_of() -> None:
    lines = [*told("https://127.0.0.1:6443", Path("/k"))]
    assert lines[0] == "cluster at https://127.0.0.1:6443; kubeconfig written to /k"
    asked = {kind for line in lines if "kubectl get " in line for kind in line.rpartition(" ")[2].split(",")}
    assert asked > {crd["spec"]["names"]["singular"] for crd in crds()} > {"leaderworkerset", "disaggregatedset"}
