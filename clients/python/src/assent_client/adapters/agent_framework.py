"""Microsoft Agent Framework: a function middleware, behind which every tool of an agent runs only as a call that may.

    agent = Agent(client=model, tools=tools, middleware=[Assent(client, "desk")])

The call is presented right before its tool runs, and the tool runs with what was approved. Where it may not run the
model is told why. An approval of the framework lets a call go on, and approves nothing: the server is asked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

from agent_framework import Content, FunctionInvocationContext, FunctionMiddleware, MiddlewareTermination
from pydantic import BaseModel, ValidationError
from pydantic_core import to_jsonable_python

from ..aio import AsyncClient
from ..arguments import by_model, by_schema, reasons
from ..call import key_of, tool
from ..errors import CallError, StillPending, not_run
from ..wire import Taken
from .notes import noted


class Assent(FunctionMiddleware):
    """Every function of the agent asks. It is the last middleware, also of a run, so that none changes a call after it.

    `agent` is the id of its file at the server. Runs need an AgentSession. `wait` is how many seconds a call waits for
    people; after that it ends the run with the framework's request for approval. Answer that with any approval, in any
    process: what people have answered by then counts, and nothing else. Further keywords are fields of Asking.
    """

    def __init__(self, client: AsyncClient, agent: str, wait: float | None = None, **asking: Any) -> None:
        self.client, self.agent, self.asking = client, agent, {"wait": wait, **asking}

    def call(self, context: FunctionInvocationContext) -> dict[str, Any]:
        """The call as people are shown it. Override it for tools of MCP servers, and for principals."""
        session = context.session.session_id if context.session else None
        return tool(context.function.name, _values(context), session=session)

    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        try:
            if getattr(call_next, "__name__", "") != "final_wrapper":  # what the framework calls the run of the tool
                raise CallError("Assent has to be the last function middleware: a later one could change the call")
            taken = await self._taken(context)
        except StillPending as e:
            context.result = _asked(context, e.request.id)
            raise MiddlewareTermination(str(e)) from e
        except Exception as e:
            context.result = not_run(e)
            return
        if "approval_response" not in context.metadata:  # else the framework runs what it has paused for
            context.arguments = taken.args
        await call_next()
        if taken.note is not None and isinstance(context.result, list):
            context.result = [Content.from_text(taken.note), *context.result]
        else:
            context.result = noted(context.result, taken.note)

    async def _taken(self, context: FunctionInvocationContext) -> Taken:
        def accept(values: dict[str, Any]) -> None:
            if "approval_response" in context.metadata and values != _values(context):
                raise CallError("Agent Framework runs a call that it has paused for unchanged, and people changed it")
            _fits(context, values)

        session = context.session.session_id if context.session else ""
        asking = {"key": key_of(session, context.metadata["call_id"]), "accept": accept, **self.asking}
        return await self.client.take(self.agent, self.call(context), **asking)


def _values(context: FunctionInvocationContext) -> dict[str, Any]:
    """The arguments as values of JSON, with the defaults of the tool."""
    given, function = _given(context), context.function
    if function.input_model is not None:
        given = by_model(function.name, given, function.input_model)
    else:
        given = dict(cast(dict[str, Any], by_schema(function.name, given, function.parameters())))
    return given


def _given(context: FunctionInvocationContext) -> dict[str, Any]:
    given = context.arguments
    values: dict[str, Any] = to_jsonable_python(
        given.model_dump(exclude_unset=True) if isinstance(given, BaseModel) else dict(given)
    )
    return values


def _fits(context: FunctionInvocationContext, values: dict[str, Any]) -> None:
    model = context.function.input_model
    if model is None:
        return
    try:
        taken = to_jsonable_python(model.model_validate(values).model_dump(exclude_unset=True))
    except ValidationError as e:
        raise CallError(f"{context.function.name} can't be called with this: {reasons(e)}") from e
    if taken != values:  # what a model leaves out, or reads as something else, people have not approved
        raise CallError(f"{context.function.name} can't be called with this: it would take {taken}")


def _asked(context: FunctionInvocationContext, request: str) -> Content:
    """The framework's request for approval, which ends the run. It lets the same call go on later."""
    call_id = context.metadata["call_id"]
    id = context.metadata.get("function_call_occurrence_id", call_id)
    call = Content.from_function_call(call_id, context.function.name, arguments=_given(context), id=id)
    return Content.from_function_approval_request(id=id, function_call=call, additional_properties={"assent": request})
