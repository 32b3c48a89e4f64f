"""Google ADK: a plugin, behind which every tool of a runner runs only as a call that may.

    runner = Runner(app=App(name="desk", root_agent=agent, plugins=[Assent(client, "desk")]), session_service=sessions)

The call is presented right before its tool runs, and the tool runs with what was approved. Where it may not run the
model is told why. A tool confirmation lets a call go on, and approves nothing: the server is asked.
"""

from __future__ import annotations

from typing import Any, cast

from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext

from ..aio import AsyncClient
from ..arguments import by_schema, by_signature
from ..call import key_of, tool
from ..errors import CallError, StillPending, not_run
from ..wire import Taken
from .notes import noted


class Assent(BasePlugin):
    """Every tool of every agent of the runner asks. It is the last plugin, so that none changes a call after it.

    `agent` is the id of its file at the server. `wait` is how many seconds a call waits for people; after that it ends
    the run with ADK's request for confirmation. Answer that with any confirmation, in any process: what people have
    answered by then counts, and nothing else. Further keywords are fields of Asking.
    """

    def __init__(self, client: AsyncClient, agent: str, wait: float | None = None, **asking: Any) -> None:
        super().__init__(name="assent")
        self.client, self.agent, self.asking = client, agent, {"wait": wait, **asking}
        self._notes: dict[tuple[str, str], str] = {}  # about edits, by session and call, until the tool has ended

    def call(self, asked: BaseTool, args: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        """The call as people are shown it. Override it for tools of MCP servers, and for principals."""
        return tool(asked.name, args, session=context.session.id)

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        """None where the tool may run, with what is then in tool_args; else what the model is told."""
        try:
            self._last(tool, tool_context)
            taken = await self._taken(tool, tool_args, tool_context)
        except StillPending as e:
            tool_context.request_confirmation(hint=str(e), payload={"assent": e.request.id})
            tool_context.actions.skip_summarization = True  # else the model is asked at once, and makes the call again
            return {"error": str(e)}
        except Exception as e:
            return {"error": not_run(e)}
        tool_args.clear()
        tool_args.update(taken.args)
        if taken.note is not None:
            self._notes[_place(tool_context)] = taken.note
        return None

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: Any
    ) -> dict[str, Any] | None:
        """The tool's result with the line about an edit; None if nobody changed the call."""
        note = self._notes.pop(_place(tool_context), None)
        return None if note is None else dict(noted(result if isinstance(result, dict) else {"result": result}, note))

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> dict[str, Any] | None:
        self._notes.pop(_place(tool_context), None)
        return None

    async def _taken(self, asked: BaseTool, given: dict[str, Any], context: ToolContext) -> Taken:
        args = _read(asked, given)

        def accept(values: dict[str, Any]) -> None:
            _read(asked, values)

        key = key_of(context.session.id, context.function_call_id or "")
        asking = {"key": key, "accept": accept, **self.asking}
        return await self.client.take(self.agent, self.call(asked, args, context), **asking)

    def _last(self, asked: BaseTool, context: ToolContext) -> None:
        """Refuses calls that something else could change, or hold up, after they were approved."""
        invocation = context.get_invocation_context()
        if invocation.plugin_manager.plugins[-1] is not self:
            raise CallError("Assent has to be the last plugin: a later one could change what was approved")
        if getattr(asked, "_require_confirmation", False):  # ADK would hold the call up after this
            raise CallError(f"{asked.name} has ADK's require_confirmation: leave it out, as assent asks people")
        if getattr(invocation.agent, "canonical_before_tool_callbacks", None):
            raise CallError("a before_tool_callback of the agent could change what was approved: make a plugin of it")


def _place(context: ToolContext) -> tuple[str, str]:
    return context.session.id, context.function_call_id or ""


def _read(asked: BaseTool, args: dict[str, Any]) -> dict[str, Any]:
    """The arguments as the tool reads them. Refuses those that it does not take, which ADK leaves out."""
    if isinstance(asked, FunctionTool):
        ignored = tuple(asked._ignore_params)
        return dict(cast(dict[str, Any], by_signature(asked.name, args, asked.func, ignored)))
    schema = getattr(asked._get_declaration(), "parameters_json_schema", None)
    return dict(cast(dict[str, Any], by_schema(asked.name, args, schema))) if isinstance(schema, dict) else args
