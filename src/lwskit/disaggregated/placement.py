"""Which nodes the pods of a slice may share: affinities that placementPolicy asks for. Pure.

Specification: 50 §14.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from lwskit.api import disaggregated_names as names
from lwskit.disaggregated.spec import Placement
from lwskit.runtime.objects import Obj

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def placed(pod_spec: Mapping[str, Any], set_name: str, slice: int, placement: Placement) -> Obj:
    """A copy of a pod spec with the terms of the policy after those that it has itself."""
    found = copy.deepcopy(dict(pod_spec))
    if not placement.is_exclusive:
        return found
    affinity = found["affinity"] = found.get("affinity") or {}
    own, value = _expression(names.NAME_LABEL, "In", set_name), str(slice)
    together = _term(placement.topology, own, _expression(names.SLICE_LABEL, "In", value))
    _append(affinity, "podAffinity", together)
    # Pods without a slice label are of slice 0; it must not keep its own away.
    labelled = [_expression(names.SLICE_LABEL, "Exists")] if slice == 0 else []
    apart = _term(placement.topology, own, *labelled, _expression(names.SLICE_LABEL, "NotIn", value))
    _append(affinity, "podAntiAffinity", apart)
    if placement.type == names.PLACEMENT_EXCLUSIVE_TOPOLOGY:
        alone = _term(
            placement.topology,
            _expression(names.NAME_LABEL, "Exists"),
            _expression(names.NAME_LABEL, "NotIn", set_name),
            _expression(names.SLICE_LABEL, "Exists"),
        )
        _append(affinity, "podAntiAffinity", alone)
    return found


def _append(affinity: Obj, kind: str, term: Obj) -> None:
    terms = affinity[kind] = affinity.get(kind) or {}
    terms[_REQUIRED] = [*(terms.get(_REQUIRED) or ()), term]


def _term(topology: str, *expressions: Obj) -> Obj:
    return {"topologyKey": topology, "labelSelector": {"matchExpressions": [*expressions]}}


def _expression(key: str, operator: str, *values: str) -> Obj:
    return {"key": key, "operator": operator, **({"values": [*values]} if values else {})}
