"""examples/desk.py with LangChain: the same three calls, by a model that is a script."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from desk import SESSION, TURN, drop_table, quote, trade
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool

import assent_client as assent
from assent_client.adapters.langchain import Assent


class Scripted(BaseChatModel):
    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **more: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **more: Any) -> ChatResult:
        answer = AIMessage("That is all.")
        if not any(isinstance(message, AIMessage) for message in messages):
            answer = AIMessage("", tool_calls=[{"name": name, "args": args, "id": id} for id, name, args in TURN])
        return ChatResult(generations=[ChatGeneration(message=answer)])


async def main() -> None:
    async with assent.AsyncClient(os.environ["ASSENT_SERVER"], os.environ["ASSENT_TOKEN"]) as client:
        tools = [
            StructuredTool.from_function(coroutine=each, description="a tool") for each in (quote, trade, drop_table)
        ]
        agent = create_agent(Scripted(), tools, middleware=[Assent(client, "desk")])
        said: Any = {"messages": "Buy ACME, and tidy up."}
        result = await agent.ainvoke(said, {"configurable": {"thread_id": SESSION}})
        for message in result["messages"]:
            if isinstance(message, ToolMessage):
                print(f"{message.tool_call_id} {message.name}: {message.content}")


if __name__ == "__main__":
    asyncio.run(main())
