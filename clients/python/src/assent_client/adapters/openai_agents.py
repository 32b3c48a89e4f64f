"""OpenAI Agents SDK: function tools that run only as calls that may.

    agent = Agent(name="desk", tools=Assent(client, "desk", session).tools([get_quote, execute_trade]))

The call is presented with the model's own text, right before its tool runs, and the tool runs with what was approved.
Where it may not run the model is told why. Approvals in a RunState let a run go on, and approve nothing: the server is
asked.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

from agents import FunctionTool, RunState, Tool, ToolOutputText
from agents.tool_context import ToolContext

from ..aio import AsyncClient
from ..arguments import by_schema
from ..call import key_of, tool
from ..errors import CallError, not_run
from .notes import noted

OUTPUTS = ("text", "image", "file", "input_text", "input_image", "input_file")  # types that the SDK passes on


class Assent:
    """The tools of one conversation, `session`, of the agent whose file has the id `agent`.

    Without `pause` a run waits for people. With it every call interrupts its run: `answer` then says whether the run
    can go on, in any process that has its RunState. `wait` bounds how many seconds a tool itself waits.
    """

    def __init__(
        self,
        client: AsyncClient,
        agent: str,
        session: str,
        *,
        pause: bool = False,
        wait: float | None = None,
        **asking: Any,
    ) -> None:
        self.client, self.agent, self.session, self.pause = client, agent, session, pause
        self.asking = {"wait": wait, **asking}
        self._gated: list[FunctionTool] = []

    def call(self, name: str, args: str) -> dict[str, Any]:
        """The call as people are shown it. Override it for principals."""
        return tool(name, args or "{}", session=self.session)

    def tools(self, tools: Sequence[Tool]) -> list[Tool]:
        """The same tools, which ask. Those that OpenAI runs, and others that are no functions, are refused."""
        for each in tools:
            if not isinstance(each, FunctionTool):
                raise CallError(f"the tool {each.name} is no function of this program, so nothing can stand before it")
        return [self._asked(each) for each in tools if isinstance(each, FunctionTool)]

    async def answer(self, state: RunState[Any, Any], *, wait: float | None = None) -> bool:
        """Lets the calls of a state go on to their tools that nobody needs to be asked about any more.

        It waits for people so many seconds for each; None: as long as they have. The answer is whether the run can go
        on: give the state to Runner.run then. It is False while people are still asked: keep the state, and come again.

        Calls of tools that are not behind assent stay as they are: they are the program's to answer.
        """
        left = 0
        for item in state.get_interruptions():
            given = [each for each in item.agent.tools if each.name == item.name]  # several, in several namespaces
            asks = given and all(any(one is each for one in self._gated) for each in given)
            if not asks or getattr(item.raw_item, "type", None) != "function_call":
                continue
            if await self._open(given[0], item.arguments or "", item.call_id or "", wait):
                left += 1
            else:
                state.approve(item, always_approve=False)
        return left == 0

    async def _open(self, function: Tool, args: str, id: str, wait: float | None) -> bool:
        """Whether people are still asked about a call."""
        key = key_of(self.session, id)
        fields = {name: value for name, value in self.asking.items() if name != "wait"}
        try:
            call = self.call(function.name, _read(function, args))
        except CallError:
            return False  # the tool is let go on, and refuses it
        request = (await self.client.open(self.agent, call, **{**fields, "key": key})).request
        while request is not None and request.state == "pending":
            before, step = request.version, 60.0 if wait is None else min(wait, 60.0)
            request = await self.client.request(request.id, before, step)
            wait = None if wait is None else wait - step
            if wait is not None and wait <= 0:
                break
        return request is not None and request.state == "pending"

    def _asked(self, function: FunctionTool) -> FunctionTool:
        async def invoke(ctx: ToolContext[Any], args: str) -> Any:
            try:
                key = key_of(self.session, ctx.tool_call_id)
                call = self.call(function.name, _read(function, args))
                asking = {"accept": lambda edited: _read(function, json.dumps(edited)), **self.asking, "key": key}
                taken = await self.client.take(self.agent, call, **asking)
            except Exception as e:
                return not_run(e)
            return _noted(await function.on_invoke_tool(ctx, taken.text), taken.note)

        asked = copy.copy(function)
        asked.on_invoke_tool = invoke
        if self.pause:
            asked.needs_approval = True
        self._gated.append(asked)
        return asked


def _read(function: Tool, args: str) -> str:
    """The model's own text, or one with the defaults of the tool. Refuses a call without an argument that it needs."""
    if not isinstance(function, FunctionTool):
        return args
    filled = by_schema(function.name, args or "{}", function.params_json_schema)
    return filled if isinstance(filled, str) else json.dumps(filled, ensure_ascii=False)


def _noted(result: Any, note: str | None) -> Any:
    """The tool's result with the line about an edit. Images and files stay outputs of their own."""
    if note is None or isinstance(result, str):
        return noted(result, note)
    outputs = result if isinstance(result, list) else [result]
    if outputs and all(_kind(each) in OUTPUTS for each in outputs):
        return [ToolOutputText(text=note), *outputs]
    return f"{note}\n{result}"


def _kind(output: Any) -> Any:
    return output.get("type") if isinstance(output, dict) else getattr(output, "type", None)
