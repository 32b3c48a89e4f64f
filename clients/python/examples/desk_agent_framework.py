"""examples/desk.py with Microsoft Agent Framework: the same three calls, by a model that is a script."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    FunctionTool,
    Message,
)
from desk import SESSION, TURN, drop_table, quote, trade

import assent_client as assent
from assent_client.adapters.agent_framework import Assent


class Scripted(FunctionInvocationLayer[Any], BaseChatClient[Any]):
    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **more: Any) -> Any:
        contents = [Content.from_text("That is all.")]
        if len(messages) == 1:
            contents = [Content.from_function_call(id, name, arguments=args) for id, name, args in TURN]

        async def response() -> ChatResponse[Any]:
            return ChatResponse(messages=[Message(role="assistant", contents=contents)])

        return response()


async def main() -> None:
    names = {id: name for id, name, _ in TURN}
    async with assent.AsyncClient(os.environ["ASSENT_SERVER"], os.environ["ASSENT_TOKEN"]) as client:
        tools = [FunctionTool(name=each.__name__, func=each) for each in (quote, trade, drop_table)]
        agent = Agent(client=Scripted(), tools=tools, middleware=[Assent(client, "desk")])
        result = await agent.run("Buy ACME, and tidy up.", session=AgentSession(session_id=SESSION))
        for message in result.messages:
            for part in message.contents:
                if part.type == "function_result":
                    print(f"{part.call_id} {names[part.call_id or '']}: {part.result}")


if __name__ == "__main__":
    asyncio.run(main())
