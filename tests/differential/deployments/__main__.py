"""Compares the Deployment and ReplicaSet controllers of the embedded cluster with real ones.

python -m tests.differential.deployments --kubeconfig FILE [--seed N] [--steps M] [--sequences K] [--at-once J]

See tests.differential.side_by_side.run for what it does and for all options.
"""

from __future__ import annotations

from tests.differential.deployments.game import Deployments
from tests.differential.side_by_side.run import play

if __name__ == "__main__":
    play(Deployments(), __doc__)
