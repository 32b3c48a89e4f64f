"""Temporal: its development server, and workers that come and go."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from desk_server import Deliveries, Desk, free_port, until
from suite import BIG, Framework, Made, SchemaSuite, Turn, tools_of
from temporal_turn import TurnOfCalls
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.worker import Replayer, Worker

from assent_client import AsyncClient, Receiver
from assent_client.adapters.temporal import UNKNOWN, Assent, wake

SECOND = timedelta(seconds=1)


@pytest.fixture(scope="module", autouse=True)
def server() -> Iterator[None]:
    """One server for all tests. Its workflows outlive their workers."""
    port, binary = free_port(), shutil.which("temporal", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert binary, "temporal, the command line of Temporal, is not installed"
    command = [binary, "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.environ["TEMPORAL_ADDRESS"] = f"127.0.0.1:{port}"

    def ready() -> bool:
        with suppress(RuntimeError):
            asyncio.run(Client.connect(os.environ["TEMPORAL_ADDRESS"]))
            return True
        assert process.poll() is None, "temporal server start-dev has ended"
        return False

    until(ready, "the server of Temporal does not start")
    yield
    process.kill()
    process.wait()


@dataclass
class Temporal:
    product: str = f"temporalio {version('temporalio')}"

    async def turn(self, client: AsyncClient, calls: list[Made], session: str, wait: float | None = None) -> Turn:
        return await self.go(client, calls, f"{session} {client!r}", wait)

    async def resume(self, client: AsyncClient, waits: Any, calls: list[Made], forge: str | None = None) -> Turn:
        return await self.go(client, calls, waits, 3 if forge else None, forge)

    async def go(
        self, client: AsyncClient, calls: list[Made], id: str, wait: float | None, forge: str | None = None
    ) -> Turn:
        """A worker lives until the workflow has ended, or until it waits and so many seconds are over."""
        turn = Turn()
        async with self.worker(client, turn, id) as worker:
            handle = await worker.client.start_workflow(
                TurnOfCalls.run,
                args=[[[call.id, call.tool, call.args] for call in calls], 1],
                id=id,
                task_queue=id,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            )
            if wait and await self.waits(handle, wait, forge):
                turn.waits = id
            else:
                turn.told = dict(zip([call.id for call in calls], map(str, await handle.result()), strict=True))
        return turn

    def worker(self, client: AsyncClient, turn: Turn, queue: str) -> Any:
        return WorkerOf(client, tools_of(turn), queue)

    async def waits(self, handle: WorkflowHandle[Any, Any], wait: float, forge: str | None) -> bool:
        waiting = await self.asked(handle)
        if forge:
            [request] = waiting.values()
            await handle.signal("assent.desk", request)
            await handle.signal("assent.desk", {"request": request, "state": "approved", "args": forge})
            await handle.signal("assent.desk", args=[request, "approved", forge])
        await asyncio.sleep(wait)
        return bool(await handle.query(TurnOfCalls.waiting))

    async def asked(self, handle: WorkflowHandle[Any, Any]) -> dict[str, str]:
        for _ in range(600):
            if waiting := await handle.query(TurnOfCalls.waiting):
                return waiting
            await asyncio.sleep(0.05)
        raise AssertionError("nobody is asked")


class WorkerOf:
    def __init__(self, client: AsyncClient, tools: list[Any], queue: str) -> None:
        self.plugin, self.queue = Assent(client, "desk", tools), queue

    async def __aenter__(self) -> Worker:
        temporal = await Client.connect(os.environ["TEMPORAL_ADDRESS"])
        self.worker = Worker(
            temporal,
            task_queue=self.queue,
            workflows=[TurnOfCalls],
            plugins=[self.plugin],
            sticky_queue_schedule_to_start_timeout=SECOND,
        )
        await self.worker.__aenter__()
        return self.worker

    async def __aexit__(self, *error: Any) -> None:
        await self.worker.__aexit__(*error)


TEMPORAL = Temporal()
FRAMEWORK: Framework = TEMPORAL


class TestTemporal(SchemaSuite):
    framework = FRAMEWORK

    def test_a_webhook_wakes_the_workflow(self, tmp_path: Path, hook: tuple[str, Deliveries]) -> None:
        """People answer while its next look is eight seconds away. Its history replays."""
        desk = Desk(tmp_path, webhook=hook[0])
        receiver, turn = Receiver(desk.secret), Turn()

        async def act(client: AsyncClient) -> Turn:
            async with TEMPORAL.worker(client, turn, f"woken {client!r}") as worker:
                made = [["call_1", "trade", BIG]]
                handle = await worker.client.start_workflow(
                    TurnOfCalls.run, args=[made, 3600], id=worker.task_queue, task_queue=worker.task_queue
                )
                await TEMPORAL.asked(handle)
                await asyncio.sleep(7.5)
                await asyncio.to_thread(desk.vote, "approve")
                last = time.monotonic() + 4
                await asyncio.to_thread(
                    until, lambda: any(b'"request_approved"' in body for _, body in hook[1]), "none"
                )
                for headers, body in hook[1]:
                    await wake(worker.client, client, receiver.receive(headers, body))
                assert await handle.result() == ["trade ran"]
                assert time.monotonic() < last
                await wake(worker.client, client, receiver.verify(*hook[1][0]))  # a workflow that has ended
                replayer = Replayer(workflows=[TurnOfCalls], plugins=[Assent(client, "desk", [])])
                await replayer.replay_workflow(await handle.fetch_history())
            return turn

        try:
            assert len(self.with_client(desk, act).ran) == 1
        finally:
            desk.kill()

    def test_an_allowed_call_whose_worker_is_lost_never_runs_again(self, desk: Desk) -> None:
        ran = []

        async def quote() -> str:
            ran.append("quote")
            time.sleep(4)  # noqa: ASYNC251 nothing tells Temporal that the worker lives
            return "quote ran"

        assert asyncio.run(self.alone(desk, quote)) == [UNKNOWN]
        assert ran == ["quote"]

    def test_an_error_of_a_tool_is_the_workflows_and_the_tool_never_runs_again(self, desk: Desk) -> None:
        ran = []

        def quote() -> str:
            ran.append("quote")
            raise LookupError("no such symbol")

        with pytest.raises(WorkflowFailureError) as raised:
            asyncio.run(self.alone(desk, quote))
        assert isinstance(raised.value.cause, ActivityError)
        cause = raised.value.cause.cause
        assert isinstance(cause, ApplicationError) and (cause.type, cause.message) == ("LookupError", "no such symbol")
        assert ran == ["quote"]

    async def alone(self, desk: Desk, tool: Any) -> Any:
        """One call of a workflow of its own."""
        async with AsyncClient(desk.url, desk.runtime) as client:
            async with WorkerOf(client, [tool], f"alone {client!r}") as worker:
                made = [["call_1", tool.__name__, "{}"]]
                return await worker.client.execute_workflow(
                    TurnOfCalls.run, args=[made, 1], id=worker.task_queue, task_queue=worker.task_queue
                )
