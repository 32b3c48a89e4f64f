"""LangChain's create_agent, on LangGraph, with a scripted model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import pytest
from desk_server import Desk
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command
from suite import BIG, SESSION, Framework, Made, SchemaSuite, Turn, tools_of

from assent_client import AsyncClient, Client, MisuseError
from assent_client.adapters.langchain import Assent


class Scripted(BaseChatModel):
    """Makes its calls once, and ends."""

    calls: list[Any]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **more: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **more: Any) -> ChatResult:
        answer = AIMessage("done")
        if not any(isinstance(message, AIMessage) for message in messages):
            answer = AIMessage("", tool_calls=self.calls)
        return ChatResult(generations=[ChatGeneration(message=answer)])


@dataclass
class LangChain:
    product: str = f"langchain {version('langchain')}"

    def agent(self, client: Client | AsyncClient, calls: list[Made], turn: Turn, wait: float | None, saved: Any) -> Any:
        made = [{"name": call.tool, "args": json.loads(call.args), "id": call.id} for call in calls]

        gate = Assent(client, "desk", wait)
        tools = [tool(each) for each in tools_of(turn)]
        return create_agent(Scripted(calls=made), tools, middleware=[gate], checkpointer=saved)

    async def turn(self, client: AsyncClient, calls: list[Made], session: str, wait: float | None = None) -> Turn:
        return await self.go(client, calls, {"messages": "go"}, InMemorySaver(), session, wait)

    async def resume(self, client: AsyncClient, waits: Any, calls: list[Made], forge: str | None = None) -> Turn:
        edit = {"type": "edit", "edited_action": {"name": "trade", "args": json.loads(forge or "{}")}}
        said = {"decisions": [edit]} if forge else 1
        return await self.go(client, calls, Command(resume=said), waits, SESSION, 0.1 if forge else None)

    async def go(
        self, client: AsyncClient, calls: list[Made], given: Any, saved: Any, session: str, wait: float | None
    ) -> Turn:
        turn = Turn()
        agent = self.agent(client, calls, turn, wait, saved)
        return self.ended(turn, saved, await agent.ainvoke(given, {"configurable": {"thread_id": session}}))

    def ended(self, turn: Turn, saved: Any, result: Any) -> Turn:
        turn.told = {
            each.tool_call_id: str(each.content) for each in result["messages"] if isinstance(each, ToolMessage)
        }
        turn.waits = saved if "__interrupt__" in result else None
        return turn


FRAMEWORK: Framework = LangChain()


class TestLangChain(SchemaSuite):
    framework = FRAMEWORK
    cells: Mapping[str, str] = {"16": "yes; of a name that stands twice LangChain keeps the last, and shows that"}

    @pytest.mark.parametrize("args", ['{"amount": NaN}', '{"amount": 1, "note": "\\ud800"}'])
    def test_16_arguments_that_can_be_read_in_two_ways(self, desk: Desk, args: str) -> None:
        super().test_16_arguments_that_can_be_read_in_two_ways(desk, args)

    def test_16_a_name_that_stands_twice(self, desk: Desk) -> None:
        waits = self.turn(desk, Made("trade", '{"amount": 1, "amount": 20000}'))
        assert desk.waiting()[0]["revisions"][0]["call"]["args"].startswith('{"amount": 20000, "currency"')
        desk.vote("approve")
        assert waits.done().ran == [("trade", {"amount": 20000, "currency": "USD"})]

    def test_agents_that_are_not_awaited(self, desk: Desk, client: Client) -> None:
        saved, turn, config = InMemorySaver(), Turn(), {"configurable": {"thread_id": SESSION}}
        result = LangChain().agent(client, [Made("trade", BIG)], turn, 0.1, saved).invoke({"messages": "go"}, config)
        assert turn.ran == [] and "__interrupt__" in result
        desk.vote("approve")
        again = LangChain().agent(client, [Made("trade", BIG)], turn, None, saved)
        assert again.invoke(Command(resume=1), config)["messages"][-2].content == "trade ran"
        assert turn.ran == [("trade", {"amount": 20000, "currency": "USD"})]

    def test_a_resume_waits_once_however_often_the_turn_was_interrupted(self, desk: Desk, client: Client) -> None:
        waited: list[Any] = []
        take = client.take

        def watched(agent: str, call: Any, **asking: Any) -> Any:
            waited.append(asking["wait"])
            return take(agent, call, **asking)

        client.take = watched  # type: ignore[method-assign]
        saved, config = InMemorySaver(), {"configurable": {"thread_id": SESSION}}
        given: list[Any] = [{"messages": "go"}, *[Command(resume=1)] * 3]
        for resumes, each in enumerate(given):
            agent = LangChain().agent(client, [Made("trade", BIG)], Turn(), 0.1, saved)
            assert "__interrupt__" in agent.invoke(each, config)
            assert waited == [*[0] * resumes, 0.1]
            waited.clear()

    def test_the_tool_node_of_a_graph_of_ones_own(self, desk: Desk, client: Client) -> None:
        ran: list[int] = []
        saved, config = InMemorySaver(), {"configurable": {"thread_id": SESSION}}

        @tool
        def trade(amount: int) -> str:
            """Buys."""
            ran.append(amount)
            return "trade ran"

        def graph(wait: float | None) -> Any:
            gate = Assent(client, "desk", wait)
            made: Any = StateGraph(MessagesState)
            made.add_node("tools", ToolNode([trade], wrap_tool_call=gate.wrap_tool_call))
            return made.add_edge(START, "tools").compile(checkpointer=saved)

        calls = [{"name": "trade", "args": {"amount": 20000}, "id": "call_1"}]
        assert "__interrupt__" in graph(0.1).invoke({"messages": [AIMessage("", tool_calls=calls)]}, config)
        desk.edit('{"amount": 15000}')
        assert graph(None).invoke(Command(resume=1), config)["messages"][-1].content.endswith("}\ntrade ran")
        assert ran == [15000]

    def test_a_client_of_the_other_kind_runs_nothing(self, desk: Desk) -> None:
        turn = Turn()
        agent = LangChain().agent(
            AsyncClient(desk.url, desk.runtime), [Made("quote", "{}")], turn, None, InMemorySaver()
        )
        with pytest.raises(MisuseError, match="takes a Client"):
            agent.invoke({"messages": "go"}, {"configurable": {"thread_id": SESSION}})
        assert turn.ran == []
