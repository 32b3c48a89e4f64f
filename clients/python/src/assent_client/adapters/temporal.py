"""Temporal: tools as activities that run only as calls that may, and workflows that wait for people durably.

    worker = Worker(temporal, task_queue="desk", workflows=[Desk], plugins=[Assent(client, "desk", [quote, trade])])

    calls = Calls("desk")  # in the workflow
    text = await calls.run("call_1", "trade", '{"amount": 20000}')

The call is presented right before its tool runs, and the tool runs with what was approved. Where it may not run the
model is told why. A signal wakes a workflow, and approves nothing: the server is asked.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception
from temporalio.plugin import SimplePlugin
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from ..aio import AsyncClient
from ..arguments import by_signature
from ..call import Arguments, key_of, text_of, tool
from ..errors import CallError, NotRun, ProblemError, StillPending, UnreachableError, not_run
from ..models import Opened
from ..webhook import Message
from ..wire import mends
from .notes import noted

OUTAGE = RetryPolicy(maximum_attempts=10, maximum_interval=timedelta(minutes=1))  # four minutes of pauses
ONCE = RetryPolicy(maximum_attempts=1)
RAISED = "raised by the tool"
UNKNOWN = "It is not known whether this call ran: its worker was lost. Find out before you try it again."


@dataclass
class Asked:
    """A call on its way to an activity."""

    id: str
    tool: str
    args: str  # a JSON text
    opened: str = ""  # what the server answered when the call was presented; empty where nobody is asked
    request: str = ""


@dataclass
class Step:
    """What an activity says of a call. By default it may run."""

    told: str = ""  # why it did not run
    again: bool = False  # that is only because the server could not be asked
    opened: str = ""
    request: str = ""
    pending: bool = False
    ran: bool = False
    result: Any = None


class Assent(SimplePlugin):
    """The activities of one agent, for a worker. `agent` is the id of its file at the server.

    Tools are functions, with values of JSON as arguments and results. Further keywords are fields of Asking.
    """

    def __init__(self, client: AsyncClient, agent: str, tools: Sequence[Callable[..., Any]], **asking: Any) -> None:
        self.client, self.agent, self.asking = client, agent, asking
        self.tools = {each.__name__: each for each in tools}

        @activity.defn(name=f"assent.{agent}.ask")
        async def ask(asked: Asked) -> Step:
            async with _beating():
                return await self._ask(asked)

        @activity.defn(name=f"assent.{agent}.run")
        async def run(asked: Asked) -> Step:
            async with _beating():
                return await self._run(asked)

        super().__init__(f"assent.{agent}", activities=[ask, run], workflow_runner=_passed)

    def call(self, asked: Asked, workflow: str) -> dict[str, Any]:
        """The call as people are shown it. Override it for tools of MCP servers, and for principals."""
        return tool(asked.tool, asked.args, session=workflow)

    async def _ask(self, asked: Asked) -> Step:
        """Presents a call, or looks whether people are still asked about it. It may be done again at any time."""
        try:
            if asked.request:
                return Step(pending=(await self.client.request(asked.request)).state == "pending")
            call, asking = self._asking(asked)
            opened = await self.client.open(self.agent, call, **asking)
            if opened.outcome == "deny":
                raise NotRun(opened)
        except Exception as e:
            if _mends(e):
                raise ApplicationError(not_run(e), type=type(e).__name__) from e  # Temporal tries it again
            return Step(told=not_run(e))
        if (request := opened.request) is None:
            return Step()
        kept = opened.model_dump_json(exclude_none=True)
        return Step(opened=kept, request=request.id, pending=request.state == "pending")

    async def _run(self, asked: Asked) -> Step:
        """Takes the one run of a call, and runs its tool."""
        try:
            call, asking = self._asking(asked)
            opened = Opened.model_validate_json(asked.opened) if asked.opened else None
            taken = await self.client.take(self.agent, call, **{**asking, "opened": opened, "wait": 0})
        except StillPending as e:
            return Step(request=e.request.id, pending=True)
        except Exception as e:
            return Step(told=not_run(e), again=_mends(e))
        try:
            function = self.tools[asked.tool]
            if inspect.iscoroutinefunction(function):
                return Step(ran=True, result=noted(await function(**taken.args), taken.note))
            return Step(ran=True, result=noted(await asyncio.to_thread(function, **taken.args), taken.note))
        except Exception as e:
            raise ApplicationError(str(e), RAISED, type=type(e).__name__) from e

    def _asking(self, asked: Asked) -> tuple[dict[str, Any], dict[str, Any]]:
        function = self.tools.get(asked.tool)

        def accept(args: dict[str, Any]) -> None:
            if function is None:
                raise CallError(f"this worker has no tool {asked.tool}")
            by_signature(asked.tool, args, function)

        if function is not None:
            filled = by_signature(asked.tool, asked.args, function)
            asked = replace(asked, args=text_of(filled))
        id = activity.info().workflow_id or ""
        return self.call(asked, id), {"accept": accept, **self.asking, "key": key_of(id, asked.id)}


class Calls:
    """The calls of one workflow to the tools of one agent. Make it in the workflow, once.

    People have as long as the rules give them, and no process has to live meanwhile. Their answer is looked for when
    `wake` says so, and else after pauses that grow up to `poll`. `retry` bounds how long the server may be out of
    reach. `waiting` has the requests that people are asked about, by the ids of calls. Keywords are for activities.
    """

    def __init__(
        self, agent: str, *, poll: timedelta = timedelta(minutes=5), retry: RetryPolicy = OUTAGE, **activities: Any
    ) -> None:
        self.agent, self.poll, self.retry, self.waiting = agent, poll, retry, dict[str, str]()
        self.activities = {"heartbeat_timeout": timedelta(seconds=30), **activities}
        self._woken: set[str] = set()
        workflow.set_signal_handler(f"assent.{agent}", self._wake)

    async def run(self, id: str, tool: str, args: Arguments, timeout: timedelta = timedelta(minutes=10)) -> Any:
        """What the tool returns, or why it did not run: the sentence for the model. `id` is that of the model's call.

        Give the arguments as the model's own text. What a tool raises is an ActivityError. `timeout` is for the tool.
        """
        try:
            asked = Asked(id, tool, text_of(args))
        except CallError as e:
            return not_run(e)
        step = await self._ask(asked)
        while not step.ran and not step.told:
            asked = replace(asked, opened=asked.opened or step.opened, request=step.request or asked.request)
            if step.pending:
                step = await self._answered(asked)
                continue
            step = await self._run(asked, timeout)
            if step.again:
                step = await self._ask(asked)
        return step.result if step.ran else step.told

    async def _ask(self, asked: Asked) -> Step:
        try:
            return await self._activity("ask", asked, timedelta(minutes=3), self.retry)
        except ActivityError as e:
            if is_cancelled_exception(e):
                raise
            return Step(told=e.cause.message if isinstance(e.cause, ApplicationError) else not_run(e.cause or e))

    async def _answered(self, asked: Asked) -> Step:
        self.waiting[asked.id], pause, step = asked.request, timedelta(seconds=1), Step(pending=True)
        try:
            while step.pending:
                with suppress(asyncio.TimeoutError):
                    await workflow.wait_condition(lambda: asked.request in self._woken, timeout=pause)
                self._woken.discard(asked.request)
                step, pause = await self._ask(asked), min(2 * pause, self.poll)
        finally:
            del self.waiting[asked.id]
        return step

    async def _run(self, asked: Asked, timeout: timedelta) -> Step:
        try:
            return await self._activity("run", asked, timeout, ONCE)
        except ActivityError as e:
            if is_cancelled_exception(e) or (isinstance(e.cause, ApplicationError) and RAISED in e.cause.details):
                raise
            # Its worker was lost. What people approved runs once: the server says whether that is over.
            await workflow.sleep(1)
            return Step() if asked.opened else Step(told=UNKNOWN)

    async def _activity(self, name: str, asked: Asked, timeout: timedelta, retry: RetryPolicy) -> Step:
        step: Step = await workflow.execute_activity(
            f"assent.{self.agent}.{name}",
            asked,
            result_type=Step,
            start_to_close_timeout=timeout,
            retry_policy=retry,
            summary=f"{asked.tool} {asked.id}",
            **self.activities,
        )
        return step

    def _wake(self, *said: Any) -> None:  # anything: a handler that raises would hold up the workflow for ever
        self._woken.update(each for each in self.waiting.values() if each in said)


async def wake(temporal: Client, client: AsyncClient, message: Message) -> None:
    """Wakes the workflow, if one waits for the request of a webhook's message. It then asks the server."""
    request = await client.request(str(message.data["request"]))
    if workflow_id := request.revisions[0].call.session:
        try:
            await temporal.get_workflow_handle(workflow_id).signal(f"assent.{request.agent.id}", request.id)
        except RPCError as e:
            if e.status is not RPCStatusCode.NOT_FOUND:
                raise


@asynccontextmanager
async def _beating() -> AsyncIterator[None]:
    """Tells Temporal that the worker lives."""

    async def beat() -> None:
        every = activity.info().heartbeat_timeout or timedelta(minutes=1)
        while True:
            activity.heartbeat()
            await asyncio.sleep(every.total_seconds() / 3)

    beating = asyncio.create_task(beat())
    try:
        yield
    finally:
        beating.cancel()


def _mends(error: Exception) -> bool:
    return isinstance(error, UnreachableError) or (isinstance(error, ProblemError) and mends(error.problem))


def _passed(runner: WorkflowRunner | None) -> WorkflowRunner:
    """Lets workflows import this package as it is: its part in them does no I/O."""
    if not isinstance(runner, SandboxedWorkflowRunner):
        return runner or SandboxedWorkflowRunner()
    return replace(runner, restrictions=runner.restrictions.with_passthrough_modules("assent_client"))
