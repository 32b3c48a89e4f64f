"""The workflows of tests, in a module of their own: Temporal imports it once more in its sandbox."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy

from assent_client.adapters.temporal import Calls

QUICK = RetryPolicy(maximum_attempts=2, initial_interval=timedelta(milliseconds=100))


@workflow.defn
class TurnOfCalls:
    """A model makes its calls in one turn, and is told what became of them."""

    @workflow.init
    def __init__(self, made: list[list[str]], poll: float = 1) -> None:
        beat = timedelta(seconds=2)
        self.calls = Calls("desk", poll=timedelta(seconds=poll), retry=QUICK, heartbeat_timeout=beat)

    @workflow.run
    async def run(self, made: list[list[str]], poll: float = 1) -> list[str]:
        return list(await asyncio.gather(*(self.calls.run(id, tool, args) for id, tool, args in made)))

    @workflow.query
    def waiting(self) -> dict[str, str]:
        return self.calls.waiting


@workflow.defn
class Hears:
    """Ends with what a signal says."""

    said = ""

    @workflow.signal
    def say(self, word: str) -> None:
        self.said = word

    @workflow.run
    async def run(self) -> str:
        await workflow.wait_condition(lambda: bool(self.said))
        return self.said
