"""LangChain and LangGraph: a middleware, behind which every tool of an agent runs only as a call that may.

    agent = create_agent(model, tools, middleware=[Assent(client, "desk")])

The call is presented right before its tool runs, and the tool runs with what was approved. Where it may not run the
model is told why. Nothing in a graph's state or in the value of a resume approves anything: the server is asked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ToolCallRequest
from langchain_core.messages import ToolMessage
from langgraph.types import Command, interrupt
from pydantic import BaseModel, ValidationError

from ..aio import AsyncClient
from ..call import key_of, tool
from ..errors import CallError, StillPending, told
from ..sync import Client
from ..wire import Taken

Answer = ToolMessage | Command[Any]


class Assent(AgentMiddleware[Any, Any]):
    """Every tool of the agent asks. Put it last, so that no other middleware changes a call after it.

    `agent` is the id of its file at the server. An agent that is invoked takes a Client, one that is awaited an
    AsyncClient. `wait` is how many seconds a call waits for people; after that it interrupts the graph, which needs a
    checkpointer. Resume it with any value, in any process: what people have answered by then counts, and nothing else.
    Further keywords are fields of Asking.
    """

    def __init__(self, client: Client | AsyncClient, agent: str, wait: float | None = None, **asking: Any) -> None:
        super().__init__()
        self.client, self.agent, self.asking = client, agent, {"wait": wait, **asking}

    def call(self, request: ToolCallRequest) -> dict[str, Any]:
        """The call as people are shown it. Override it for tools of MCP servers, and for principals."""
        return tool(request.tool_call["name"], request.tool_call["args"], session=_thread(request))

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Answer]) -> Answer:
        while True:
            try:
                if not isinstance(self.client, Client):
                    raise CallError("an agent that is not awaited takes a Client")
                taken = self.client.take(self.agent, self.call(request), **self._asking(request))
                break
            except StillPending as e:
                waits = e.request.id
            except Exception as e:
                return _refused(request, e)
            interrupt({"assent": waits})  # what it returns was not said by people whom the server knows
        return handler(_approved(request, taken))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Answer]]
    ) -> Answer:
        while True:
            try:
                if not isinstance(self.client, AsyncClient):
                    raise CallError("an agent that is awaited takes an AsyncClient")
                taken = await self.client.take(self.agent, self.call(request), **self._asking(request))
                break
            except StillPending as e:
                waits = e.request.id
            except Exception as e:
                return _refused(request, e)
            interrupt({"assent": waits})
        return await handler(_approved(request, taken))

    def _asking(self, request: ToolCallRequest) -> dict[str, Any]:
        thread, id = _thread(request), request.tool_call["id"]
        key = key_of(thread, id) if thread and id else None

        def accept(args: dict[str, Any]) -> None:
            schema = request.tool.tool_call_schema if request.tool else None
            if isinstance(schema, type) and issubclass(schema, BaseModel):
                _fits(request.tool_call["name"], schema, args)

        return {"key": key, "accept": accept, **self.asking}


def _thread(request: ToolCallRequest) -> str | None:
    thread = request.runtime.config.get("configurable", {}).get("thread_id")
    return str(thread) if thread else None


def _fits(name: str, schema: type[BaseModel], args: dict[str, Any]) -> None:
    """Refuses arguments that the tool does not take, which LangChain leaves out, and those that it refuses."""
    try:
        schema.model_validate(args)
    except ValidationError as e:
        raise CallError(f"{name} can't be called with what was approved") from e
    known = {each for field, of in schema.model_fields.items() for each in (field, of.alias, of.validation_alias)}
    if schema.model_config.get("extra") != "allow" and (unknown := args.keys() - known):
        raise CallError(f"{name} can't be called with what was approved: it takes no {', '.join(sorted(unknown))}")


def _approved(request: ToolCallRequest, taken: Taken) -> ToolCallRequest:
    return request.override(tool_call={**request.tool_call, "args": taken.args})


def _refused(request: ToolCallRequest, error: Exception) -> ToolMessage:
    call = request.tool_call
    return ToolMessage(content=told(error), name=call["name"], tool_call_id=call["id"], status="error")
