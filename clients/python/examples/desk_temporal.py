"""examples/desk.py with Temporal: the same three calls, by a workflow that waits for people as long as it takes.

Run it beside `temporal server start-dev`, and as often as you like: it goes on with the workflow that it has started.
"""

from __future__ import annotations

import asyncio
import os

from temporalio import workflow
from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.worker import Worker

import assent_client as assent
from assent_client.adapters.temporal import Assent, Calls

with workflow.unsafe.imports_passed_through():
    from desk import SESSION, TURN, drop_table, quote, trade


@workflow.defn
class Desk:
    @workflow.run
    async def run(self) -> list[str]:
        calls = Calls("desk")
        return list(await asyncio.gather(*(calls.run(id, name, args) for id, name, args in TURN)))


async def main() -> None:
    temporal = await Client.connect(os.environ.get("TEMPORAL_ADDRESS", "127.0.0.1:7233"))
    async with assent.AsyncClient(os.environ["ASSENT_SERVER"], os.environ["ASSENT_TOKEN"]) as client:
        gate = Assent(client, "desk", [quote, trade, drop_table])
        async with Worker(temporal, task_queue="desk", workflows=[Desk], plugins=[gate]):
            same = WorkflowIDConflictPolicy.USE_EXISTING
            answers = await temporal.execute_workflow(Desk.run, id=SESSION, task_queue="desk", id_conflict_policy=same)
    for (id, name, _), text in zip(TURN, answers, strict=True):
        print(f"{id} {name}: {text}")


if __name__ == "__main__":
    asyncio.run(main())
