"""Exclusive placement that does not do what it says (specification: 10 §8.9). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from lwskit.api import names
from lwskit.embedded.names import qualified
from lwskit.groups import spec
from lwskit.lint.findings import (
    TOPOLOGY_EMPTY,
    TOPOLOGY_INVALID,
    TOPOLOGY_ON_TEMPLATE,
    TOPOLOGY_TAKEN,
    TOPOLOGY_TWICE,
    Fault,
)
from lwskit.lint.rules.paths import Template, templates
from lwskit.runtime.objects import Obj, annotations_of

_GROUP: Final = names.EXCLUSIVE_TOPOLOGY_ANNOTATION
_SUBGROUP: Final = names.SUBGROUP_EXCLUSIVE_TOPOLOGY_ANNOTATION
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def check(lws: Obj) -> Iterator[Fault]:
    """Annotations in the wrong place, without a value, or that the pods' own terms suppress."""
    notes = annotations_of(lws)
    for key in (_GROUP, _SUBGROUP):
        if notes.get(key) == "":
            text = f"{key} is empty: there is no topology to have for oneself"
            if key == _GROUP:
                text += ", and yet workers wait until their leader has a node, whose label of no name is then missing"
            hint = "write the key of a node label, or leave the annotation out"
            yield Fault(TOPOLOGY_EMPTY, _at(key), text, hint)
        if key == _GROUP or spec.subgroup_policy(lws) is not None:
            yield from _invalid(notes.get(key) or "", _at(key))
    if notes.get(_GROUP) and notes.get(_GROUP) == notes.get(_SUBGROUP):
        text = (
            f"groups and sub-groups name the same topology, {notes[_GROUP]}: leaders get the terms of their group only"
        )
        yield Fault(TOPOLOGY_TWICE, _at(_SUBGROUP), text, "name a smaller domain for sub-groups")
    for template in templates(lws):
        yield from _on_template(template, notes)
        yield from _taken(lws, template, notes)


def _at(key: str, where: str = "") -> str:
    return f"{where}metadata.annotations[{key}]"


def _invalid(value: str, path: str) -> Iterator[Fault]:
    """A value that no label of a node can have as its key, so that pods with a term for it are refused."""
    if value and (wrong := qualified(value)):
        text = f"{value!r} is no key of a label, so pods placed by it are refused: {'; '.join(wrong)}"
        yield Fault(TOPOLOGY_INVALID, path, text, "write the key of a node label")


def _on_template(template: Template, notes: Mapping[str, str]) -> Iterator[Fault]:
    for key in template.metadata.get("annotations") or {}:
        if key in (_GROUP, _SUBGROUP) and not notes.get(key):
            text = (
                f"{key} belongs on the set: on a template it reaches its pods, but workers do not follow their leader"
            )
            yield Fault(TOPOLOGY_ON_TEMPLATE, _at(key, f"{template.path}."), text, "move it to the set's metadata")
            if key == _GROUP:
                yield from _invalid(template.metadata["annotations"][key], _at(key, f"{template.path}."))


def _taken(lws: Obj, template: Template, notes: Mapping[str, str]) -> Iterator[Fault]:
    """Terms of the template on the same topology, in whose presence none are added."""
    topology = notes.get(_GROUP)
    affinity = template.spec.get("affinity") or {}
    path = f"{template.path}.spec"
    wanted = {topology} if topology and template.of_leaders else set()
    if spec.subgroup_policy(lws) is not None and notes.get(_SUBGROUP):
        wanted.add(notes[_SUBGROUP])
    for key in sorted(wanted):
        if all(_mentions(affinity.get(kind) or {}, key) for kind in ("podAffinity", "podAntiAffinity")):
            text = f"the template has required affinity and anti-affinity for {key}, so its pods get no exclusive terms"
            yield Fault(TOPOLOGY_TAKEN, f"{path}.affinity", text, "leave the terms to the annotation of the set")
    if topology and template.of_workers and topology in (template.spec.get("nodeSelector") or {}):
        text = f"{topology} is overwritten: workers are placed in the domain of their leader"
        yield Fault(TOPOLOGY_TAKEN, f"{path}.nodeSelector[{topology}]", text, "select the leader's nodes instead")


def _mentions(affinity: Mapping[str, Any], topology: str) -> bool:
    return any(term.get("topologyKey") == topology for term in affinity.get(_REQUIRED) or ())
