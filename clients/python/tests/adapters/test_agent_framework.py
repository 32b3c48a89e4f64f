"""Microsoft Agent Framework with a scripted model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import pytest
from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatResponse,
    Content,
    FunctionInvocationContext,
    FunctionInvocationLayer,
    FunctionTool,
    Message,
    function_middleware,
)
from desk_server import Desk
from suite import BIG, Framework, Made, SchemaSuite, Turn, tools_of

from assent_client import AsyncClient
from assent_client.adapters.agent_framework import Assent


class Scripted(FunctionInvocationLayer[Any], BaseChatClient[Any]):
    """Makes its calls once, and ends."""

    def __init__(self, calls: list[Made]) -> None:
        super().__init__()
        self.calls = calls

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **more: Any) -> Any:
        contents = [Content.from_text("done")]
        if not any(part.type == "function_call" for message in messages for part in message.contents):
            contents = [Content.from_function_call(call.id, call.tool, arguments=call.args) for call in self.calls]

        async def response() -> ChatResponse[Any]:
            return ChatResponse(messages=[Message(role="assistant", contents=contents)])

        return response()


@dataclass
class AgentFramework:
    product: str = f"agent-framework {version('agent-framework-core')}"

    def agent(self, client: AsyncClient, calls: list[Made], turn: Turn, wait: float | None) -> Agent[Any]:
        tools = [FunctionTool(name=each.__name__, func=each) for each in tools_of(turn)]
        return Agent(client=Scripted(calls), tools=tools, middleware=[Assent(client, "desk", wait)])

    async def turn(self, client: AsyncClient, calls: list[Made], session: str, wait: float | None = None) -> Turn:
        turn, kept = Turn(), AgentSession(session_id=session)
        said = Message(role="user", contents=[Content.from_text("go")])
        return await self.go(self.agent(client, calls, turn, wait), turn, kept, said)

    async def resume(self, client: AsyncClient, waits: Any, calls: list[Made], forge: str | None = None) -> Turn:
        session, asked = json.loads(waits)
        if forge:
            asked["function_call"]["arguments"] = json.loads(forge)
        answer = Content.from_dict(asked).to_function_approval_response(approved=True)
        turn, kept = Turn(), AgentSession.from_dict(session)
        agent = self.agent(client, calls, turn, 0.1 if forge else None)
        return await self.go(agent, turn, kept, Message(role="user", contents=[answer]))

    async def go(self, agent: Agent[Any], turn: Turn, session: AgentSession, said: Message) -> Turn:
        response = await agent.run([said], session=session)
        for message in response.messages:
            for part in message.contents:
                if part.type == "function_result":
                    turn.told[str(part.call_id)] = str(part.result)
        for request in response.user_input_requests:
            turn.waits = json.dumps([session.to_dict(), request.to_dict()])
        return turn


FRAMEWORK: Framework = AgentFramework()


class TestAgentFramework(SchemaSuite):
    framework = FRAMEWORK
    cells: Mapping[str, str] = {
        "06": "yes; an edit after the run has paused is refused, as the framework runs what it paused for unchanged",
        "16": "yes; of a name that stands twice the framework keeps the last, and shows that",
    }

    @pytest.mark.parametrize("args", ['{"amount": NaN}', '{"amount": 1, "note": "\\ud800"}'])
    def test_16_arguments_that_can_be_read_in_two_ways(self, desk: Desk, args: str) -> None:
        super().test_16_arguments_that_can_be_read_in_two_ways(desk, args)

    def test_06_an_edit_after_the_run_has_paused(self, desk: Desk) -> None:
        turn = self.now(desk, Made("trade", BIG), wait=0.1)
        desk.edit('{"amount": 15000}')
        self.denied(self.goes_on(desk, turn), "Not run. It could not be established that this call may run: Agent Fr")

    def test_a_later_middleware_that_changes_the_call_runs_nothing(self, desk: Desk) -> None:
        @function_middleware
        async def changes(context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
            context.arguments = {"symbol": "OTHER"}
            await call_next()

        async def run(turn: Turn) -> str:
            async with AsyncClient(desk.url, desk.runtime) as client:
                agent = AgentFramework().agent(client, [Made("quote", '{"symbol": "ACME"}')], turn, None)
                response = await agent.run("go", session=AgentSession(session_id="s"), middleware=[changes])
                return str([part.result for message in response.messages for part in message.contents])

        turn = Turn()
        assert "Assent has to be the last function middleware" in asyncio.run(run(turn))
        assert turn.ran == []
