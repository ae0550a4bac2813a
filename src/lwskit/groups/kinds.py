"""The kinds of our own API, for decisions, clients and caches. Pure."""

from lwskit.api import names
from lwskit.runtime.kinds import Kind

LEADER_WORKER_SET = Kind(names.GROUP, names.VERSION, names.KIND, names.PLURAL)
"""The LeaderWorkerSet kind (specification: 10 §1)."""
