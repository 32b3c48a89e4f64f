"""OpenAI Agents SDK with a scripted model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import pytest
from agents import (
    Agent,
    HostedMCPTool,
    ModelResponse,
    RunConfig,
    Runner,
    RunState,
    Tool,
    Usage,
    WebSearchTool,
    function_tool,
    tool_namespace,
)
from agents.exceptions import ModelBehaviorError
from agents.models.interface import Model
from desk_server import Desk
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from openai.types.responses.response_output_item import McpApprovalRequest
from suite import BIG, SESSION, Framework, Made, ReadingSuite, Turn, tools_of

from assent_client import AsyncClient, CallError
from assent_client.adapters.openai_agents import Assent


class Scripted(Model):
    """Makes its calls once, and ends."""

    def __init__(self, calls: list[Made]) -> None:
        self.calls = calls

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **more: Any) -> ModelResponse:
        text = ResponseOutputText(text="done", type="output_text", annotations=[])
        output: list[Any] = [
            ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
        ]
        if isinstance(input, str) or not any(each.get("type") == "function_call_output" for each in input):
            output = [
                ResponseFunctionToolCall(call_id=call.id, name=call.tool, arguments=call.args, type="function_call")
                for call in self.calls
            ]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **more: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


@dataclass
class OpenAIAgents:
    product: str = f"openai-agents {version('openai-agents')}"

    def agent(self, gate: Assent, calls: list[Made], turn: Turn) -> Agent[None]:
        tools = [function_tool(each, strict_mode=False) for each in tools_of(turn)]
        return Agent(name="desk", model=Scripted(calls), tools=gate.tools(tools))

    async def turn(self, client: AsyncClient, calls: list[Made], session: str, wait: float | None = None) -> Turn:
        turn, gate = Turn(), Assent(client, "desk", session, pause=wait is not None)
        return await self.go(gate, self.agent(gate, calls, turn), "go", turn, wait)

    async def resume(self, client: AsyncClient, waits: Any, calls: list[Made], forge: str | None = None) -> Turn:
        turn, gate = Turn(), Assent(client, "desk", SESSION, pause=True, wait=0.1 if forge else None)
        agent = self.agent(gate, calls, turn)
        if forge is None:
            state: RunState[Any, Any] = await RunState.from_string(agent, waits)
            assert await gate.answer(state)
        else:
            state = await RunState.from_string(agent, waits)
            for item in state.get_interruptions():
                state.approve(item, always_approve=True)
        return await self.go(gate, agent, state, turn, None)

    async def go(self, gate: Assent, agent: Agent[None], given: Any, turn: Turn, wait: float | None) -> Turn:
        config = RunConfig(tracing_disabled=True)
        result = await Runner.run(agent, given, run_config=config)
        while result.interruptions:
            state = result.to_state()
            if not await gate.answer(state, wait=wait):
                turn.waits = state.to_string()
                break
            result = await Runner.run(agent, state, run_config=config)
        for item in result.new_items:
            if item.type == "tool_call_output_item":
                answer: Any = item.raw_item
                turn.told[answer["call_id"]] = item.output
        return turn


FRAMEWORK: Framework = OpenAIAgents()


class TestOpenAIAgents(ReadingSuite):
    framework = FRAMEWORK
    cells: Mapping[str, str] = {"16": "yes; a lone surrogate ends the run in the SDK"}

    @pytest.mark.parametrize("args", ['{"amount": 1, "amount": 20000}', '{"amount": NaN}'])
    def test_16_arguments_that_can_be_read_in_two_ways(self, desk: Desk, args: str) -> None:
        super().test_16_arguments_that_can_be_read_in_two_ways(desk, args)

    def test_16_a_lone_surrogate(self, desk: Desk) -> None:
        with pytest.raises(UnicodeEncodeError):
            self.now(desk, Made("trade", '{"amount": 1, "note": "\\ud800"}'))

    def test_15_arguments_changed_in_a_state(self, desk: Desk) -> None:
        waits = self.now(desk, Made("trade", BIG), wait=0.1).waits
        changed = waits.replace(json.dumps(BIG)[1:-1], json.dumps('{"amount": 99999}')[1:-1])
        assert changed != waits
        with pytest.raises(ModelBehaviorError):
            self.goes_on(desk, Turn(waits=changed), BIG)

    def test_a_pause_for_a_call_that_is_allowed_is_none(self, desk: Desk) -> None:
        assert self.now(desk, Made("quote", "{}"), wait=0.1).told == {"call_1": "quote ran"}

    def test_tools_that_run_elsewhere_are_refused(self, desk: Desk) -> None:
        with pytest.raises(CallError, match="web_search is no function of this program"):
            Assent(AsyncClient(desk.url, desk.runtime), "desk", SESSION).tools([WebSearchTool()])

    def test_a_call_of_a_tool_that_is_not_behind_assent_is_not_approved(self, desk: Desk) -> None:
        @function_tool(needs_approval=True)
        def free() -> str:
            raise AssertionError("it ran")

        async def run() -> int:
            gate = Assent(AsyncClient(desk.url, desk.runtime), "desk", SESSION, pause=True)
            agent = Agent[None](name="desk", model=Scripted([Made("free", "{}")]), tools=[free])
            config = RunConfig(tracing_disabled=True)
            state = (await Runner.run(agent, "go", run_config=config)).to_state()
            assert await gate.answer(state)
            return len((await Runner.run(agent, state, run_config=config)).interruptions)

        assert asyncio.run(run()) == 1

    @pytest.mark.parametrize("runs", ["here", "at OpenAI"])
    def test_a_call_of_a_namesake_that_is_not_behind_assent_is_not_approved(self, desk: Desk, runs: str) -> None:
        @function_tool(name_override="quote")
        def gated() -> str:
            return "quote ran"

        @function_tool(name_override="quote", needs_approval=True)
        def free() -> str:
            raise AssertionError("it ran")

        hosted: Any = {"type": "mcp", "server_label": "s", "server_url": "https://x", "require_approval": "always"}
        others: dict[str, tuple[Tool, Any]] = {
            "here": (
                tool_namespace(name="other", description="Others.", tools=[free])[0],
                ResponseFunctionToolCall(
                    call_id="call_1", name="quote", namespace="other", arguments="{}", type="function_call"
                ),
            ),
            "at OpenAI": (
                HostedMCPTool(tool_config=hosted),
                McpApprovalRequest(
                    id="call_1", name="quote", arguments="{}", server_label="s", type="mcp_approval_request"
                ),
            ),
        }
        other, made = others[runs]

        class Calls(Scripted):
            async def get_response(self, *args: Any, **more: Any) -> ModelResponse:
                return ModelResponse(output=[made], usage=Usage(), response_id=None)

        async def run() -> int:
            gate = Assent(AsyncClient(desk.url, desk.runtime), "desk", SESSION, pause=True)
            agent = Agent[None](name="desk", model=Calls([]), tools=[*gate.tools([gated]), other])
            config = RunConfig(tracing_disabled=True)
            state = (await Runner.run(agent, "go", run_config=config)).to_state()
            assert await gate.answer(state)
            return len((await Runner.run(agent, state, run_config=config, max_turns=2)).interruptions)

        assert asyncio.run(run()) == 1
