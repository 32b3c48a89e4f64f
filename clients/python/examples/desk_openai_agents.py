"""examples/desk.py with the OpenAI Agents SDK: the same three calls, by a model that is a script."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, ModelResponse, RunConfig, Runner, Usage, function_tool
from agents.models.interface import Model
from desk import SESSION, TURN, drop_table, quote, trade
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

import assent_client as assent
from assent_client.adapters.openai_agents import Assent


class Scripted(Model):
    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **more: Any) -> ModelResponse:
        text = ResponseOutputText(text="That is all.", type="output_text", annotations=[])
        output: list[Any] = [
            ResponseFunctionToolCall(call_id=id, name=name, arguments=json.dumps(args), type="function_call")
            for id, name, args in TURN
        ]
        if any(each.get("type") == "function_call_output" for each in input if isinstance(each, dict)):
            output = [
                ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
            ]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **more: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


async def main() -> None:
    async with assent.AsyncClient(os.environ["ASSENT_SERVER"], os.environ["ASSENT_TOKEN"]) as client:
        tools = Assent(client, "desk", SESSION).tools([function_tool(each) for each in (quote, trade, drop_table)])
        agent = Agent(name="desk", model=Scripted(), tools=tools)
        result = await Runner.run(agent, "Buy ACME, and tidy up.", run_config=RunConfig(tracing_disabled=True))
        names = {id: name for id, name, _ in TURN}
        for item in result.new_items:
            if item.type == "tool_call_output_item":
                answer: Any = item.raw_item
                print(f"{answer['call_id']} {names[answer['call_id']]}: {item.output}")


if __name__ == "__main__":
    asyncio.run(main())
