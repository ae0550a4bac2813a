"""The pytest plugin `lwskit`: tests on virtual time, and the fixtures `clock`, `cluster` and `client`.

Loaded by every pytest run that finds lwskit installed, so it imports nothing heavy and touches only tests that ask.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import pytest

from lwskit.runtime.clock import Clock
from lwskit.testing.virtual import VirtualClock, VirtualLoop

_MARKERS = ("virtual: run this asynchronous test on an event loop in virtual time.",)


def pytest_configure(config: pytest.Config) -> None:
    """Make the markers known."""
    for marker in _MARKERS:
        config.addinivalue_line("markers", marker)


def wants_virtual_time(item: pytest.Item) -> bool:
    """Whether a test runs on a virtual loop: it is marked `virtual` or uses the fixture `clock`."""
    return item.get_closest_marker("virtual") is not None or "clock" in getattr(item, "fixturenames", ())


class _VirtualLoops:
    """The answer to pytest-asyncio's question for loops, registered only while a virtual test is collected."""

    @pytest.hookimpl(tryfirst=True, optionalhook=True)
    def pytest_asyncio_loop_factories(self, config: pytest.Config, item: pytest.Item) -> Mapping[str, Any]:
        """One factory: the virtual loop."""
        return {"virtual": VirtualLoop}


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Generator[None, None, None]:
    """Have pytest-asyncio run tests that ask for virtual time on a VirtualLoop, and leave all others alone."""
    if not wants_virtual_time(metafunc.definition):
        return (yield)
    manager = metafunc.config.pluginmanager
    if manager.hasplugin("asyncio") and not hasattr(manager.hook, "pytest_asyncio_loop_factories"):
        raise pytest.UsageError("tests on virtual time need pytest-asyncio 1.4 or newer")
    loops = _VirtualLoops()
    manager.register(loops)
    try:
        return (yield)
    finally:
        manager.unregister(loops)


@pytest.fixture
def clock() -> Clock:
    """The clock of this test's virtual loop; using it puts the test on virtual time."""
    return VirtualClock()
