"""Google ADK with a scripted model."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from desk_server import Desk
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions import BaseSessionService, InMemorySessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.tools.function_tool import FunctionTool
from google.genai import types
from suite import SESSION, Framework, Made, SchemaSuite, Turn, tools_of

from assent_client import AsyncClient
from assent_client.adapters.google_adk import Assent

CONFIRMATION = "adk_request_confirmation"


class Scripted(BaseLlm):
    """Makes its calls once, and ends."""

    model: str = "scripted"
    calls: list[Any]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        asked = any(part.function_call for content in llm_request.contents for part in content.parts or ())
        parts = [types.Part(text="done")]
        if not asked:
            parts = [types.Part(function_call=types.FunctionCall(**call)) for call in self.calls]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


@dataclass
class GoogleADK:
    product: str = f"google-adk {version('google-adk')}"

    def agent(self, calls: list[Made], turn: Turn, **more: Any) -> LlmAgent:
        made = [{"name": call.tool, "args": json.loads(call.args), "id": call.id} for call in calls]

        return LlmAgent(name="desk", model=Scripted(calls=made), tools=[*tools_of(turn)], **more)

    async def turn(self, client: AsyncClient, calls: list[Made], session: str, wait: float | None = None) -> Turn:
        saved = Path(tempfile.mkdtemp()) / "sessions.db"
        sessions: BaseSessionService = SqliteSessionService(str(saved)) if wait else InMemorySessionService()
        await sessions.create_session(app_name="desk", user_id="u", session_id=session)
        turn = await self.go(client, calls, sessions, session, types.Part(text="go"), wait)
        if turn.waits:
            turn.waits = (saved, turn.waits)
        return turn

    async def resume(self, client: AsyncClient, waits: Any, calls: list[Made], forge: str | None = None) -> Turn:
        saved, id = waits
        said: dict[str, Any] = {"confirmed": True, "payload": json.loads(forge or "{}")}
        part = types.Part(function_response=types.FunctionResponse(id=id, name=CONFIRMATION, response=said))
        sessions = SqliteSessionService(str(saved))
        turn = await self.go(client, calls, sessions, SESSION, part, 0.1 if forge else None)
        turn.waits = turn.waits and (saved, turn.waits)
        return turn

    async def go(
        self,
        client: AsyncClient,
        calls: list[Made],
        sessions: BaseSessionService,
        session: str,
        said: types.Part,
        wait: float | None,
    ) -> Turn:
        turn = Turn()
        app = App(name="desk", root_agent=self.agent(calls, turn), plugins=[Assent(client, "desk", wait)])
        return await self.ended(turn, Runner(app=app, session_service=sessions), session, said)

    async def ended(self, turn: Turn, runner: Runner, session: str, said: types.Part) -> Turn:
        message = types.Content(role="user", parts=[said])
        async for event in runner.run_async(user_id="u", session_id=session, new_message=message):
            for call in event.get_function_calls():
                if call.name == CONFIRMATION:
                    turn.waits = call.id
            for answer in event.get_function_responses():
                result = answer.response or {}
                note = f"{result['assent']}\n" if "assent" in result else ""
                turn.told[str(answer.id)] = note + str(result.get("error", result.get("result")))
        return turn


FRAMEWORK: Framework = GoogleADK()


class TestGoogleADK(SchemaSuite):
    framework = FRAMEWORK
    cells: Mapping[str, str] = {"16": "yes; of a name that stands twice a model of ADK keeps the last, and shows that"}

    @pytest.mark.parametrize("args", ['{"amount": NaN}', '{"amount": 1, "note": "\\ud800"}'])
    def test_16_arguments_that_can_be_read_in_two_ways(self, desk: Desk, args: str) -> None:
        super().test_16_arguments_that_can_be_read_in_two_ways(desk, args)

    @pytest.mark.parametrize("by", ["a plugin", "a callback"])
    def test_a_call_that_could_be_changed_afterwards_is_refused(self, desk: Desk, by: str) -> None:
        def change(tool: Any, args: dict[str, Any], tool_context: Any) -> None:
            args["amount"] = 1

        async def act(client: AsyncClient) -> Turn:
            turn, adk, sessions = Turn(), GoogleADK(), InMemorySessionService()
            callback = {"before_tool_callback": change} if by == "a callback" else {}
            plugins = [Assent(client, "desk"), *([BasePlugin("after")] if by == "a plugin" else [])]
            app = App(name="desk", root_agent=adk.agent([Made("quote", "{}")], turn, **callback), plugins=plugins)
            await sessions.create_session(app_name="desk", user_id="u", session_id=SESSION)
            return await adk.ended(turn, Runner(app=app, session_service=sessions), SESSION, types.Part(text="go"))

        turn = self.with_client(desk, act)
        assert turn.ran == [] and "could change what was approved" in turn.told["call_1"]

    def test_a_tool_that_adk_would_hold_up_afterwards_is_refused(self, desk: Desk) -> None:
        async def act(client: AsyncClient) -> Turn:
            turn, adk, sessions = Turn(), GoogleADK(), InMemorySessionService()
            agent = adk.agent([Made("quote", "{}")], turn)
            agent.tools = [FunctionTool(agent.tools[0], require_confirmation=True)]  # type: ignore[arg-type]
            await sessions.create_session(app_name="desk", user_id="u", session_id=SESSION)
            app = App(name="desk", root_agent=agent, plugins=[Assent(client, "desk")])
            return await adk.ended(turn, Runner(app=app, session_service=sessions), SESSION, types.Part(text="go"))

        turn = self.with_client(desk, act)
        assert turn.ran == [] and "leave it out" in turn.told["call_1"]
