"""The kinds of the DisaggregatedSet API, for decisions, clients and caches. Pure."""

from lwskit.api import disaggregated_names as names
from lwskit.runtime.kinds import Kind

DISAGGREGATED_SET = Kind(names.GROUP, names.VERSION, names.KIND, names.PLURAL)
"""The DisaggregatedSet kind (specification: 50 §1)."""

ROLE_SCALER = Kind(names.GROUP, names.VERSION, names.SCALER_KIND, names.SCALER_PLURAL)
"""The DisaggregatedSetRoleScaler kind (specification: 50 §2)."""
