"""pydantic-ai with its FunctionModel."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pydantic_ai
import pytest
from desk_server import Desk
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, TextOutput, ToolApproved
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from suite import Framework, Made, ReadingSuite, Turn, tools_of

from assent_client import AsyncClient, CallError
from assent_client.adapters.pydantic_ai import Assent


@dataclass
class PydanticAI:
    product: str = f"pydantic-ai {pydantic_ai.__version__}"

    def agent(self, client: AsyncClient, calls: list[Made], turn: Turn, wait: float | None) -> Agent[None, Any]:
        made = [ToolCallPart(call.tool, call.args, tool_call_id=call.id) for call in calls]

        def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            asked = any(isinstance(message, ModelResponse) for message in messages)
            return ModelResponse([TextPart("done")] if asked else list(made))

        agent = Agent(
            FunctionModel(model), capabilities=[Assent(client, "desk", wait)], output_type=[str, DeferredToolRequests]
        )

        for each in tools_of(turn):
            agent.tool_plain(each)
        return agent

    async def turn(self, client: AsyncClient, calls: list[Made], session: str, wait: float | None = None) -> Turn:
        turn = Turn()
        result = await self.agent(client, calls, turn, wait).run("go", conversation_id=session)
        return self.ended(turn, result)

    async def resume(self, client: AsyncClient, waits: Any, calls: list[Made], forge: str | None = None) -> Turn:
        history = pydantic_ai.messages.ModelMessagesTypeAdapter.validate_json(waits)
        answers = DeferredToolResults()
        for call in calls:
            answers.approvals[call.id] = ToolApproved(override_args=json.loads(forge) if forge else None)
        turn = Turn()
        agent = self.agent(client, calls, turn, 0.1 if forge else None)
        return self.ended(turn, await agent.run(message_history=history, deferred_tool_results=answers))

    def ended(self, turn: Turn, result: Any) -> Turn:
        for message in result.all_messages():
            for part in message.parts:
                if isinstance(part, ToolReturnPart) or part.part_kind == "retry-prompt":
                    turn.told[part.tool_call_id] = str(part.content)
        if isinstance(result.output, DeferredToolRequests):
            turn.waits = result.all_messages_json()
        return turn


FRAMEWORK: Framework = PydanticAI()


class TestPydanticAI(ReadingSuite):
    framework = FRAMEWORK

    @pytest.mark.parametrize("text", [False, True])
    def test_a_function_of_the_output_does_not_run(self, desk: Desk, text: bool) -> None:
        def mail(body: str) -> str:
            raise AssertionError("it ran")

        def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            made = [ToolCallPart(each.name, '{"body": "x"}') for each in info.output_tools]
            return ModelResponse(made or [TextPart("x")])

        gate = Assent[None](AsyncClient(desk.url, desk.runtime), "desk")
        agent = Agent(FunctionModel(model), capabilities=[gate], output_type=TextOutput(mail) if text else mail)
        with pytest.raises(CallError, match="mail is a function of the output"):
            agent.run_sync("go")
