"""examples/desk.py with Google ADK: the same three calls, by a model that is a script."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator

from desk import SESSION, TURN, drop_table, quote, trade
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types

import assent_client as assent
from assent_client.adapters.google_adk import Assent


class Scripted(BaseLlm):
    model: str = "scripted"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        parts = [types.Part(text="That is all.")]
        if len(llm_request.contents) == 1:
            calls = [types.FunctionCall(id=id, name=name, args=args) for id, name, args in TURN]
            parts = [types.Part(function_call=call) for call in calls]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


async def main() -> None:
    async with assent.AsyncClient(os.environ["ASSENT_SERVER"], os.environ["ASSENT_TOKEN"]) as client:
        agent = LlmAgent(name="desk", model=Scripted(), tools=[quote, trade, drop_table])
        app = App(name="desk", root_agent=agent, plugins=[Assent(client, "desk")])
        sessions = InMemorySessionService()
        await sessions.create_session(app_name="desk", user_id="user", session_id=SESSION)
        said = types.Content(role="user", parts=[types.Part(text="Buy ACME, and tidy up.")])
        runner = Runner(app=app, session_service=sessions)
        async for event in runner.run_async(user_id="user", session_id=SESSION, new_message=said):
            for answer in event.get_function_responses():
                result = answer.response or {}
                print(f"{answer.id} {answer.name}: {result.get('result') or result.get('error')}")


if __name__ == "__main__":
    asyncio.run(main())
