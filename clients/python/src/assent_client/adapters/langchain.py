"""LangChain and LangGraph: a middleware, behind which every tool of an agent runs only as a call that may.

    agent = create_agent(model, tools, middleware=[Assent(client, "desk")])

The call is presented right before its tool runs, and the tool runs with what was approved. Where it may not run the
model is told why. Nothing in a graph's state or in the value of a resume approves anything: the server is asked.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any, cast

from langchain.agents.middleware import AgentMiddleware, ToolCallRequest
from langchain_core.messages import ToolMessage
from langgraph.config import get_config
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from ..aio import AsyncClient
from ..arguments import by_model, by_schema
from ..call import key_of, tool
from ..errors import CallError, MisuseError, StillPending, not_run
from ..sync import Client
from ..wire import Taken
from .notes import noted

SCRATCHPAD = "__pregel_scratchpad"  # where LangGraph keeps the answers that a resume replays
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
        waits = self._waits()
        while True:
            try:
                if not isinstance(self.client, Client):
                    raise MisuseError("an agent that is not awaited takes a Client")
                asking = self._asking(request, next(waits))
                taken = self.client.take(self.agent, self.call(_filled(request)), **asking)
                break
            except StillPending as e:
                pending = e.request.id
            except Exception as e:
                return _refused(request, e)
            interrupt({"assent": pending})  # what it returns was not said by people whom the server knows
        return _noted(request, handler(_approved(request, taken)), taken)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Answer]]
    ) -> Answer:
        waits = self._waits()
        while True:
            try:
                if not isinstance(self.client, AsyncClient):
                    raise MisuseError("an agent that is awaited takes an AsyncClient")
                asking = self._asking(request, next(waits))
                taken = await self.client.take(self.agent, self.call(_filled(request)), **asking)
                break
            except StillPending as e:
                pending = e.request.id
            except Exception as e:
                return _refused(request, e)
            interrupt({"assent": pending})
        return _noted(request, await handler(_approved(request, taken)), taken)

    def _waits(self) -> Iterator[float | None]:
        """How long each attempt waits: those that a resume replays not at all, the one after them as long as it may."""
        scratchpad = get_config().get("configurable", {}).get(SCRATCHPAD)
        if scratchpad is not None and self.asking["wait"] is not None:
            answered = len(scratchpad.resume) + (scratchpad.get_null_resume(False) is not None)
            yield from itertools.repeat(0, answered)
        yield from itertools.repeat(self.asking["wait"])

    def _asking(self, request: ToolCallRequest, wait: float | None) -> dict[str, Any]:
        thread, id = _thread(request), request.tool_call["id"]
        key = key_of(thread, id) if thread and id else None

        def accept(args: dict[str, Any]) -> None:
            _read(request, args)

        return {"key": key, "accept": accept, **self.asking, "wait": wait}


def _thread(request: ToolCallRequest) -> str | None:
    thread = request.runtime.config.get("configurable", {}).get("thread_id")
    return str(thread) if thread else None


def _filled(request: ToolCallRequest) -> ToolCallRequest:
    """The request with the defaults of the tool, which people are shown too."""
    args = _read(request, request.tool_call["args"])
    return request.override(tool_call={**request.tool_call, "args": args})


def _read(request: ToolCallRequest, args: dict[str, Any]) -> dict[str, Any]:
    """The arguments as the tool reads them. Refuses those that it does not take, which LangChain leaves out."""
    name, schema = request.tool_call["name"], request.tool.tool_call_schema if request.tool else None
    if isinstance(schema, dict):
        return dict(cast(dict[str, Any], by_schema(name, args, schema)))
    if not isinstance(schema, type) or not issubclass(schema, BaseModel):
        return args
    filled = by_model(name, args, schema)
    known = {each for field, of in schema.model_fields.items() for each in (field, of.alias, of.validation_alias)}
    if schema.model_config.get("extra") != "allow" and (unknown := args.keys() - known):
        raise CallError(f"{name} can't be called with this: it takes no {', '.join(sorted(unknown))}")
    return filled


def _noted(request: ToolCallRequest, answer: Answer, taken: Taken) -> Answer:
    """The tool's answer with the line about an edit."""
    if taken.note is None:
        return answer
    if isinstance(answer, ToolMessage):
        content = answer.content
        if isinstance(content, list):
            return answer.model_copy(update={"content": [{"type": "text", "text": taken.note}, *content]})
        return answer.model_copy(update={"content": noted(content, taken.note)})
    update: Any = answer.update
    messages = update.get("messages") if isinstance(update, dict) else None
    if not isinstance(messages, list):
        return answer
    own = request.tool_call["id"]
    changed = [
        _noted(request, each, taken) if isinstance(each, ToolMessage) and each.tool_call_id == own else each
        for each in messages
    ]
    return replace(answer, update={**update, "messages": changed})


def _approved(request: ToolCallRequest, taken: Taken) -> ToolCallRequest:
    return request.override(tool_call={**request.tool_call, "args": taken.args})


def _refused(request: ToolCallRequest, error: Exception) -> ToolMessage:
    call = request.tool_call
    return ToolMessage(content=not_run(error), name=call["name"], tool_call_id=call["id"], status="error")
