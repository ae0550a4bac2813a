"""Volume claim templates: what of them is not carried over (specification: 10 §2.2). Pure."""

from __future__ import annotations

from collections.abc import Iterator

from lwskit.groups import spec
from lwskit.groups.templates import claims
from lwskit.lint.findings import CLAIM_FIELD_DROPPED, WORKLOAD_REFUSED, Fault
from lwskit.lint.rules.paths import TEMPLATE
from lwskit.runtime.objects import Obj

_ALWAYS = ("metadata.creationTimestamp", "status", "apiVersion", "kind", "metadata.namespace")
_WHAT = "name, access modes, storage class, volume mode, and requests and limits"


def check(lws: Obj) -> Iterator[Fault]:
    """Fields of claims that the StatefulSets, and so the claims of pods, do not get."""
    written = spec.template_of(lws).get("volumeClaimTemplates") or ()
    without = nameless(lws)
    for index in without:
        text = "a claim template needs metadata.name: no StatefulSet can be made from this set"
        yield Fault(WORKLOAD_REFUSED, f"{TEMPLATE}.volumeClaimTemplates[{index}].metadata.name", text)
    if without:
        return
    for index, (claim, kept) in enumerate(zip(written, claims(lws), strict=True)):
        for path in _missing(claim, kept, ""):
            if path not in _ALWAYS:
                text = f"{path} of a claim is dropped; only {_WHAT} are carried over"
                yield Fault(CLAIM_FIELD_DROPPED, f"{TEMPLATE}.volumeClaimTemplates[{index}].{path}", text)


def nameless(lws: Obj) -> list[int]:
    """Which claim templates have no name."""
    written = spec.template_of(lws).get("volumeClaimTemplates") or ()
    return [i for i, claim in enumerate(written) if not (claim.get("metadata") or {}).get("name")]


def _missing(written: Obj, kept: Obj, path: str) -> Iterator[str]:
    for name, value in written.items():
        where = f"{path}.{name}" if path else name
        if name not in kept:
            if value not in (None, {}, []):
                yield where
        elif isinstance(value, dict):
            yield from _missing(value, kept[name], where)
