"""Finding backends by name, with entry points that other packages might register."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints

import pytest

from lwskit.backends import registry
from lwskit.backends.registry import Backends, find
from lwskit.backends.statefulset import StatefulSetLeaders, StatefulSetWorkers
from lwskit.groups import ordinal
from lwskit.groups.ports import Capability, Write
from lwskit.runtime.errors import ConfigurationError


class OtherLeaders(StatefulSetLeaders):
    capabilities = frozenset({Capability.ORDINALS, Capability.PARTITION, Capability.IN_PLACE_UPDATE})


class UnorderedLeaders(StatefulSetLeaders):
    capabilities = frozenset({Capability.READINESS_PACED})


class CreatedLeaders(StatefulSetLeaders):
    write: Write = "create"


def make() -> Backends:
    return Backends(OtherLeaders(), StatefulSetWorkers())


def break_down() -> Backends:
    raise RuntimeError("no licence")


def something_else() -> str:
    return "backends"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entry points as if packages with them were installed."""
    here = __name__
    values = {
        "other": f"{here}:make",
        "broken": f"{here}:break_down",
        "odd": f"{here}:something_else",
        "gone": "no.such.module:make",
        "statefulset": f"{here}:break_down",
    }
    points = EntryPoints(EntryPoint(name, value, registry.ENTRY_POINTS) for name, value in values.items())
    monkeypatch.setattr(registry, "entry_points", lambda *, group: points.select(group=group))


def test_the_built_in_ones_are_the_default() -> None:
    found = find()
    assert isinstance(found.leaders, StatefulSetLeaders)
    assert isinstance(found.workers, StatefulSetWorkers)
    assert find("statefulset").leaders.capabilities >= ordinal.REQUIRED


@pytest.mark.usefixtures("installed")
def test_another_package_can_bring_one() -> None:
    assert isinstance(find("other").leaders, OtherLeaders)


@pytest.mark.usefixtures("installed")
def test_a_built_in_name_cannot_be_taken() -> None:
    assert type(find("statefulset").leaders) is StatefulSetLeaders


@pytest.mark.usefixtures("installed")
def test_a_name_that_does_not_exist_is_told_with_those_that_do() -> None:
    with pytest.raises(ConfigurationError) as caught:
        find("nothing")
    assert str(caught.value) == (
        "there is no workload backend 'nothing'; there are: broken, gone, odd, other, statefulset"
    )


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("broken", "fails: RuntimeError('no licence')"),
        ("odd", "returns str, not Backends"),
        ("gone", "fails: ModuleNotFoundError("),
    ],
)
def test_one_that_cannot_be_used_is_told(name: str, what: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        find(name)
    assert str(caught.value).startswith(f"the workload backend {name!r} (")
    assert what in str(caught.value)


def test_a_backend_that_lacks_what_a_reconciler_needs_is_refused_with_a_sentence() -> None:
    ordinal.check(OtherLeaders())
    with pytest.raises(ConfigurationError, match="lacks ordinals, partition; choose one that has it"):
        ordinal.check(UnorderedLeaders())


def test_a_backend_that_only_creates_its_objects_is_refused_with_a_sentence() -> None:
    with pytest.raises(ConfigurationError, match=r"would only create its objects .*; choose one that applies them"):
        ordinal.check(CreatedLeaders())
