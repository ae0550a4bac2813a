"""Exploration: what it tries, what it finds in programs with known mistakes, and what it leaves alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from lwskit.runtime.client.client import Client
from lwskit.runtime.client.transport import HttpRequest
from lwskit.runtime.errors import AlreadyExists, ApiError, ConfigurationError, ConnectionFailed, NotFound
from lwskit.runtime.kinds import CONFIG_MAP
from lwskit.runtime.objects import Obj, annotations_of
from lwskit.testing import explore as module
from lwskit.testing.cluster import ClusterOptions, Runnable, TestCluster
from lwskit.testing.disturbances import DISTURBANCES, Disturber, Point, Scope, parse_names, parse_point, points
from lwskit.testing.endstate import Compared, changed, end_state
from lwskit.testing.explore import CRASHES, ExplorationFailed, Settings, chosen, explore, run_once
from lwskit.testing.process import Process, ProgramEnded, Restartable, absent, processes
from lwskit.testing.provide import provide

BARE = ClusterOptions(without=frozenset({"scheduler", "kubelet", "statefulset", "garbage", "claims"}), nodes=0)
NOT_YET = (ApiError, ConnectionFailed)
Step = Callable[[Client, str, Obj], Awaitable[None]]


def copier(step: Step) -> Runnable:
    """A program that looks at every source once a second, and makes `step` of those without the mark `copied`."""

    @asynccontextmanager
    async def run(cluster: TestCluster) -> AsyncIterator[None]:
        client = Client(await cluster.connect("copier"), clock=cluster.clock)

        async def loop() -> None:
            while True:
                try:
                    for obj in (await client.list(CONFIG_MAP, cluster.namespace))["items"]:
                        if obj["metadata"]["name"].startswith("source"):
                            await step(client, cluster.namespace, obj)
                except NOT_YET:
                    pass
                await asyncio.sleep(1)

        async with asyncio.TaskGroup() as group:
            task = group.create_task(loop())
            try:
                yield
            finally:
                task.cancel()

    return run


def copy_of(source: Obj, namespace: str, **meta: Any) -> Obj:
    meta = meta or {"name": source["metadata"]["name"].replace("source", "copy")}
    return {"metadata": {"namespace": namespace, **meta}, "data": source["data"]}


async def mark(client: Client, namespace: str, source: Obj) -> None:
    body = {"metadata": {"annotations": {"copied": "true"}}}
    await client.patch(CONFIG_MAP, source["metadata"]["name"], body, namespace)


async def careful(client: Client, namespace: str, source: Obj) -> None:
    if "copied" in annotations_of(source):
        return
    try:
        await client.create(CONFIG_MAP, copy_of(source, namespace))
    except AlreadyExists:
        pass
    await mark(client, namespace, source)


async def forgetful(client: Client, namespace: str, source: Obj) -> None:
    """It takes a copy that exists for a sign that the mark was made."""
    if "copied" in annotations_of(source):
        return
    copy = copy_of(source, namespace)
    try:
        await client.get(CONFIG_MAP, copy["metadata"]["name"], namespace)
    except NotFound:
        await client.create(CONFIG_MAP, copy)
        await mark(client, namespace, source)


async def lavish(client: Client, namespace: str, source: Obj) -> None:
    """Its copies have random names, so that one that it does not know of is made again."""
    if "copied" in annotations_of(source):
        return
    await client.create(CONFIG_MAP, copy_of(source, namespace, generateName="copy-"))
    await mark(client, namespace, source)


def restless() -> Step:
    """Once it has seen an error it writes for ever."""
    failed: list[Exception] = []

    async def step(client: Client, namespace: str, source: Obj) -> None:
        try:
            await careful(client, namespace, source)
        except NOT_YET as error:
            failed.append(error)
        if failed:
            body = {"metadata": {"annotations": {"again": str(asyncio.get_running_loop().time())}}}
            await client.patch(CONFIG_MAP, source["metadata"]["name"], body, namespace)

    return step


async def one_source(cluster: TestCluster) -> None:
    await cluster.create(CONFIG_MAP, {"metadata": {"name": "source-a"}, "data": {"text": "a"}})


def settings(step: Step, *names: str) -> Settings:
    return Settings(programs=(copier(step),), options=BARE, disturbances=names or CRASHES, quiet=5.0, limit=60.0)


def failed(report: module.Report) -> list[str]:
    return [str(failure.point) for failure in report.failures]


def test_a_careful_program_passes_at_every_point() -> None:
    report = explore(one_source, settings(careful, *DISTURBANCES))
    report.check()
    assert report.writes == 2
    assert report.points == {
        name: {Scope.WRITE: 2, Scope.RUN: 1}[d.scope] for name, d in DISTURBANCES.items() if d.scope is not Scope.KIND
    }
    assert report.points.total() == report.possible
    assert not report.unreached
    assert str(report).startswith("one_source: 2 writes, 30 points, 0 failed\n  dies-before: 2\n")


def test_what_is_lost_between_two_writes_is_found_and_named() -> None:
    report = explore(one_source, settings(forgetful))
    assert failed(report) == ["dies-before@2", "dies-after@1", "away-before@2", "away-after@1"]
    with pytest.raises(ExplorationFailed) as raised:
        report.check()
    assert (
        "one_source dies-before@2 (at PATCH /api/v1/namespaces/test/configmaps/source-a):\n"
        "    ConfigMap test/source-a: metadata.annotations.copied: got nothing, want 'true'\n"
    ) in str(raised.value)


def test_what_is_made_twice_is_found_though_its_name_is_random() -> None:
    report = explore(one_source, settings(lavish, "dies-before", "dies-after", "lost", "refused"))
    assert failed(report) == ["dies-before@2", "dies-after@1", "lost@1", "refused@2"]
    assert report.failures[0].lines == ["ConfigMap test/copy-* (2) should not be there"]


def test_what_repeats_for_ever_is_found() -> None:
    found = explore(one_source, settings(restless(), "refused"), only="refused@1").failures
    assert [f.lines[0] for f in found] == ["AssertionError: it has not settled after 60 s; the last writes are"]
    few = replace(settings(restless(), "refused"), limit=1000.0, most=1)
    found = explore(one_source, few, only=["refused@1"]).failures
    assert [f.lines[0] for f in found] == ["AssertionError: 103 writes are more than 102; the last are"]


def test_a_point_is_run_alone_and_a_sample_is_the_same_each_time() -> None:
    report = explore(one_source, settings(forgetful), only="away-after@1")
    assert (failed(report), report.points.total()) == (["away-after@1"], 1)
    found = list(points(CRASHES, 20, ()))
    assert len(found) == 100
    assert chosen(found, 7, 1) == chosen(found, 7, 1) != chosen(found, 7, 2)
    assert chosen(found, None, 1) == chosen(found, 1000, 1) == found
    assert explore(one_source, settings(careful), sample=3, seed=4).points.total() == 3


@pytest.mark.parametrize(
    ("point", "said"),
    [
        (
            "dies-before@9",
            "dies-before@9 was not reached: undisturbed the programs make 2 writes, counted from 1",
        ),
        ("slow@pods", "slow@pods was not reached: the programs watch "),
    ],
)
def test_a_point_that_is_asked_for_and_not_reached_fails(point: str, said: str) -> None:
    report = explore(one_source, settings(careful), only=point)
    (failure,) = report.failures
    (line,) = failure.lines
    assert line.startswith(said)
    with pytest.raises(ExplorationFailed, match=f"{point} was not reached"):
        report.check()


def test_nobody_writes_at_a_point() -> None:
    async def nothing(cluster: TestCluster) -> None:
        await cluster.clock.sleep(1)

    (failure,) = explore(nothing, settings(careful), only="lost@1").failures
    assert failure.lines == ["lost@1 was not reached: undisturbed the programs write nothing"]


def test_a_point_that_is_found_and_not_reached_is_counted_only() -> None:
    """A disturbed run may be shorter than the undisturbed one, which is no fault."""
    runs: list[int] = []

    async def once(cluster: TestCluster) -> None:
        runs.append(1)
        if len(runs) == 1:
            await one_source(cluster)

    report = explore(once, replace(settings(careful, "lost"), compared=Compared(without=(CONFIG_MAP,))))
    assert (report.unreached, report.failures) == (2, [])


def test_a_scenario_that_fails_undisturbed_is_no_exploration() -> None:
    async def fails(cluster: TestCluster) -> None:
        raise AssertionError("so it is")

    with pytest.raises(ExplorationFailed, match="fails already when nothing is disturbed:\nAssertionError: so it is"):
        explore(fails, settings(careful))


def test_what_is_documented_is_counted_and_does_not_fail() -> None:
    def known(cluster: TestCluster) -> str | None:
        return "marks" if cluster.server.backend.store.count("/configmaps") > 1 else None

    report = explore(one_source, replace(settings(forgetful), known=known))
    assert (report.failures, report.known) == ([], {"marks": 4})
    assert "ended otherwise, as documented (marks): 4" in str(report)


def test_a_program_that_does_not_come_back_fails() -> None:
    starts: list[int] = []

    @asynccontextmanager
    async def once(cluster: TestCluster) -> AsyncIterator[None]:
        starts.append(1)
        if len(starts) > 1:
            raise RuntimeError("no")
        async with copier(careful)(cluster):
            yield

    found = run_once(one_source, replace(settings(careful), programs=(once,)), Point("dies-before", "1"))
    assert found.failure == "RuntimeError: no"


async def test_exploring_in_a_coroutine_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="call it from a test that is no coroutine"):
        run_once(one_source, settings(careful))


def test_a_scenario_can_be_without_the_program() -> None:
    async def alone(cluster: TestCluster) -> None:
        async with absent():
            await one_source(cluster)
            await cluster.clock.sleep(10)
            assert await cluster.names(CONFIG_MAP) == ["source-a"]
        await cluster.eventually(lambda: cluster.get(CONFIG_MAP, "copy-a"))

    assert not run_once(alone, settings(careful)).failure


def test_points_are_written_and_read() -> None:
    names = list(DISTURBANCES)
    for point in points(names, 2, ["pods"]):
        assert parse_point(str(point)) == point
    assert parse_names("all") == tuple(names)
    assert parse_names("crashes, lost") == (*CRASHES, "lost")
    for text, said in (
        ("explodes@1", "'explodes' is no disturbance"),
        ("lost", "say at which write, counted from 1, as lost@3"),
        ("lost@0", "say at which write"),
        ("slow", "say for which resource, as slow@pods"),
        ("twice@2", "this concerns a whole run; write twice"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            parse_point(text)
    with pytest.raises(ConfigurationError, match="there are all, crashes, dies-before"):
        parse_names("some")


@pytest.mark.virtual
async def test_a_dead_process_sends_and_hears_nothing_more_and_another_one_starts() -> None:
    async with provide("embedded", BARE, (), ()) as cluster:
        seen = Disturber()
        async with processes(cluster, [copier(careful)], seen.connected, seen.processes) as (process,):
            (first,) = process.interceptors
            process.die(30.0)
            process.die(5.0)
            assert not process.up
            with pytest.raises(ConnectionFailed, match="the process has died"):
                await first.send(HttpRequest("GET", "/api/v1/namespaces/test/configmaps"))
            await one_source(cluster)
            await cluster.clock.sleep(29)
            assert (await cluster.names(CONFIG_MAP), seen.writes) == (["source-a"], [])
            await cluster.eventually(lambda: cluster.get(CONFIG_MAP, "copy-a"))
            assert process.interceptors != [first]
            assert process.deaths == 1


@pytest.mark.virtual
async def test_what_goes_on_beside_a_process_is_started_once() -> None:
    told: list[str] = []

    def part(name: str) -> Runnable:
        @asynccontextmanager
        async def run(cluster: TestCluster) -> AsyncIterator[str]:
            told.append(f"{name} begins")
            try:
                yield name
            finally:
                told.append(f"{name} ends")

        return run

    both = Restartable(process=part("program"), beside=part("webhooks"))
    async with provide("embedded", BARE, (), ()) as cluster:
        async with processes(cluster, [both], lambda connection: None, []) as (process,):
            process.die()
            await process.started()
        assert told == [
            *("webhooks begins", "program begins", "program ends", "program begins"),
            *("program ends", "webhooks ends"),
        ]
        async with both(cluster) as made:
            assert made == "program"


@pytest.mark.virtual
async def test_a_program_that_ends_by_itself_is_told() -> None:
    @asynccontextmanager
    async def fails(cluster: TestCluster) -> AsyncIterator[None]:
        raise ValueError("wrong flag")
        yield

    async with provide("embedded", BARE, (), ()) as cluster:
        with pytest.raises(ValueError, match="wrong flag"):
            async with Process(cluster, fails):
                raise AssertionError("it has not started")
        with pytest.raises(RuntimeError, match="absent"):
            async with absent():
                raise AssertionError("there is nothing to stop")
    assert issubclass(ProgramEnded, AssertionError)


@pytest.mark.virtual
async def test_ends_are_compared_without_what_differs_between_runs() -> None:
    async def state(label: str, compared: Compared) -> Any:
        async with provide("embedded", replace(BARE, seed=len(label)), (), ()) as cluster:
            await cluster.clock.sleep(len(label))
            owner = await cluster.create(CONFIG_MAP, {"metadata": {"name": "a"}, "data": {"text": "b"}})
            meta = {
                "generateName": "b-",
                "labels": {"l": label},
                "annotations": {"of": f"uid {owner['metadata']['uid']}"},
            }
            made = await cluster.create(CONFIG_MAP, {"metadata": meta})
            await cluster.create(CONFIG_MAP, {"metadata": {"name": "c"}, "data": {"see": made["metadata"]["name"]}})
            return end_state(cluster, compared)

    compared = Compared(made=(CONFIG_MAP,), ignore=["metadata.labels"])
    first, second = await state("x", compared), await state("yy", compared)
    assert changed(first, second, compared) == []
    assert first["ConfigMap test/b-*"]["metadata"]["annotations"] == {"of": "uid <ConfigMap a>"}
    assert first["ConfigMap test/c"]["data"] == {"see": "b-*"}
    assert first["made"]["ConfigMap test/b-*"] == 1
    assert changed(first, second, Compared()) == ["ConfigMap test/b-*: metadata.labels.l: got 'x', want 'yy'"]
    less = Compared(normalise=lambda obj: None if obj["metadata"]["name"] == "c" else obj)
    assert "ConfigMap test/c should not be there" in changed(first, await state("yy", less), less)
    drawn = Compared(text=lambda text: text.replace("yy", "x"))
    assert changed(await state("x", drawn), await state("yy", drawn), drawn) == []
