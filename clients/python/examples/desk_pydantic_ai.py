"""examples/desk.py with pydantic-ai: the same three calls, by a model that is a script."""

from __future__ import annotations

import asyncio
import os

from desk import TURN, drop_table, quote, trade
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import assent_client as assent
from assent_client.adapters.pydantic_ai import Assent


def scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    if len(messages) > 1:
        return ModelResponse([TextPart("That is all.")])
    return ModelResponse([ToolCallPart(name, args, tool_call_id=id) for id, name, args in TURN])


async def main() -> None:
    async with assent.AsyncClient(os.environ["ASSENT_SERVER"], os.environ["ASSENT_TOKEN"]) as client:
        agent = Agent(FunctionModel(scripted), tools=[quote, trade, drop_table], capabilities=[Assent(client, "desk")])
        result = await agent.run("Buy ACME, and tidy up.")
        for message in result.all_messages():
            for part in message.parts if isinstance(message, ModelRequest) else ():
                if isinstance(part, ToolReturnPart):
                    print(f"{part.tool_call_id} {part.tool_name}: {part.content}")


if __name__ == "__main__":
    asyncio.run(main())
