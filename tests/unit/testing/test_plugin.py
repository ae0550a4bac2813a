import asyncio
import time
from datetime import UTC, datetime

import pytest

from lwskit.testing.virtual import VirtualLoop


@pytest.mark.virtual
async def test_marked_tests_run_on_virtual_time():
    began = time.monotonic()
    await asyncio.sleep(1000)
    assert isinstance(asyncio.get_running_loop(), VirtualLoop)
    assert time.monotonic() - began < 1


async def test_the_clock_puts_a_test_on_virtual_time(clock):
    await clock.sleep(60)
    assert clock.now() == datetime(2026, 1, 1, 0, 1, tzinfo=UTC)


async def test_others_run_on_a_real_loop():
    assert not isinstance(asyncio.get_running_loop(), VirtualLoop)


@pytest.fixture
async def loop_of_fixture():
    yield asyncio.get_running_loop()
    await asyncio.sleep(1000)


@pytest.mark.virtual
async def test_asynchronous_fixtures_share_the_loop(loop_of_fixture):
    assert loop_of_fixture is asyncio.get_running_loop()


@pytest.mark.virtual
@pytest.mark.parametrize("seconds", [1, 2])
async def test_parameters_stay_in_the_name(seconds, request):
    await asyncio.sleep(seconds)
    assert asyncio.get_running_loop().time() == seconds
    assert request.node.name == f"test_parameters_stay_in_the_name[{seconds}]"
