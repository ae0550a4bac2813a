import asyncio

import pytest

from lwskit.runtime.errors import NotFound
from lwskit.testing.polling import consistently, eventually

pytestmark = pytest.mark.virtual


def now():
    return asyncio.get_running_loop().time()


async def test_eventually_returns_the_value_once_it_holds():
    def check():
        assert now() >= 3
        return "done"

    assert await eventually(check) == "done"
    assert now() == 3


async def test_eventually_takes_coroutine_functions_and_missing_things_as_not_yet():
    async def check():
        await asyncio.sleep(0)
        if now() < 1:
            raise NotFound("no such pod")
        return {}["absent"] if now() < 2 else 7

    assert await eventually(check, interval=0.5) == 7
    assert now() == 2


async def test_eventually_raises_the_last_error_with_a_note():
    def check():
        assert now() < 0, f"it is {now()}"

    with pytest.raises(AssertionError, match="it is 2") as caught:
        await eventually(check, timeout=2, interval=0.75)
    assert "2 s and 4 tries" in caught.value.__notes__[0]


async def test_eventually_fails_on_false_and_passes_on_none():
    with pytest.raises(AssertionError, match="returned False"):
        await eventually(lambda: False, timeout=1)
    assert await eventually(lambda: None) is None


async def test_eventually_ends_at_once_on_a_mistake_in_the_check():
    with pytest.raises(ZeroDivisionError):
        await eventually(lambda: 1 / 0)
    assert now() == 0


async def test_eventually_does_not_wait_for_a_check_that_hangs():
    with pytest.raises(AssertionError, match="did not come back"):
        await eventually(asyncio.Event().wait, timeout=4)
    assert now() == 4


async def test_a_timeout_inside_the_check_is_its_own():
    async def check():
        async with asyncio.timeout(0.1):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await eventually(check)


async def test_consistently_calls_for_the_whole_duration():
    seen = []
    await consistently(lambda: seen.append(now()), duration=2, interval=0.5)
    assert seen == [0, 0.5, 1, 1.5, 2]


async def test_consistently_fails_at_the_first_miss():
    def check():
        assert now() < 1

    with pytest.raises(AssertionError) as caught:
        await consistently(check)
    assert "held only for 1 of 3 s" in caught.value.__notes__[0]


async def test_cancellation_ends_the_wait():
    task = asyncio.create_task(eventually(lambda: False))
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
