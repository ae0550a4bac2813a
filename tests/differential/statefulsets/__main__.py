"""Compares the StatefulSet controller of the embedded cluster with a real one, and lwskit's forecast with both.

python -m tests.differential.statefulsets --kubeconfig FILE [--seed N] [--steps M] [--sets K] [--at-once J]

See tests.differential.side_by_side.run for what it does and for all options.
"""

from __future__ import annotations

from tests.differential.side_by_side.run import play
from tests.differential.statefulsets.game import StatefulSets

if __name__ == "__main__":
    play(StatefulSets(), __doc__)
