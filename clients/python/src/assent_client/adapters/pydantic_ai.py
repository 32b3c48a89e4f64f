"""pydantic-ai: a capability, behind which every tool of an agent runs only as a call that may.

    agent = Agent(model, capabilities=[Assent(client, "desk")])

The call is presented with the model's own text, right before the tool runs, and the tool runs with what was approved.
Where it may not run the model is told why. Nothing in a message history approves anything: the server is asked.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pydantic import ValidationError
from pydantic_ai import ApprovalRequired, RunContext, ToolFailed
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.messages import ModelResponse, ToolCallPart, ToolReturn
from pydantic_ai.output import OutputContext
from pydantic_ai.tools import AgentDepsT
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset

from ..aio import AsyncClient
from ..arguments import by_schema, reasons, with_unset
from ..call import key_of, tool, values_of
from ..errors import CallError, StillPending, not_run
from .notes import noted


@dataclass
class Assent(AbstractCapability[AgentDepsT]):
    """Every tool of the agent asks. It stands inside of all other capabilities, right before the tools.

    `agent` is the id of its file at the server. `wait` is how many seconds a run waits for people; after that it ends
    with DeferredToolRequests, which the agent's output_type has to allow. Run it again with the message history and any
    approval of these calls, in any process: what people have answered by then counts, and nothing else.
    """

    client: AsyncClient
    agent: str
    wait: float | None = None
    asking: Mapping[str, Any] = field(default_factory=dict)  # further fields of Asking

    def call(self, ctx: RunContext[AgentDepsT], asked: ToolsetTool[AgentDepsT], args: str) -> dict[str, Any]:
        """The call as people are shown it. Override it for tools of MCP servers, and for principals."""
        return tool(asked.tool_def.name, args, session=ctx.conversation_id)

    def get_wrapper_toolset(self, toolset: AbstractToolset[AgentDepsT]) -> AbstractToolset[AgentDepsT]:
        return _Asked(toolset, self)

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="innermost")

    async def before_output_process(
        self, ctx: RunContext[AgentDepsT], *, output_context: OutputContext, output: Any
    ) -> Any:
        """Refuses functions of `output_type`: the model calls them as it calls tools, and no toolset sees it."""
        if output_context.has_function:
            name = output_context.function_name or "it"
            raise CallError(f"{name} is a function of the output, before which nothing stands: make a tool of it")
        return output


@dataclass
class _Asked(WrapperToolset[AgentDepsT]):
    gate: Assent[AgentDepsT]

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[AgentDepsT], tool: ToolsetTool[AgentDepsT]
    ) -> Any:
        try:
            args, note = await self._approved(ctx, tool)
        except StillPending as e:
            raise ApprovalRequired(metadata={"assent": e.request.id}) from e
        except Exception as e:
            raise ToolFailed(not_run(e)) from e
        result = await super().call_tool(name, args, ctx, tool)
        if isinstance(result, ToolReturn):
            return replace(result, return_value=noted(result.return_value, note))
        return noted(result, note)

    async def _approved(
        self, ctx: RunContext[AgentDepsT], asked: ToolsetTool[AgentDepsT]
    ) -> tuple[dict[str, Any], str | None]:
        """The arguments to run with, as the tool's own schema reads them, and the line about an edit."""

        def read(text: str) -> dict[str, Any]:
            try:
                values: dict[str, Any] = asked.args_validator.validate_json(text, context=ctx.validation_context)
            except ValidationError as e:
                raise CallError(f"{asked.tool_def.name} can't be called with this: {reasons(e)}") from e
            return values

        gate, call = self.gate, self.gate.call(ctx, asked, _filled(asked, _sent(ctx), read))
        asking = {"key": key_of(ctx.conversation_id or "", ctx.tool_call_id or ""), "wait": gate.wait, **gate.asking}
        taken = await gate.client.take(
            gate.agent, call, accept=lambda values: read(json.dumps(values, ensure_ascii=False)), **asking
        )
        args = read(taken.text)
        if taken.edited and asked.args_validator_func is not None:
            checked = asked.args_validator_func(ctx, **args)
            if inspect.isawaitable(checked):
                await checked
        return args, taken.note


def _filled(asked: ToolsetTool[Any], sent: str, read: Callable[[str], Any]) -> str:
    """The model's own text, or one with the defaults of the tool, which people are shown too."""
    name, schema = asked.tool_def.name, asked.tool_def.parameters_json_schema
    given = values_of(sent)
    filled = dict(cast(dict[str, Any], by_schema(name, given, schema)))
    filled = with_unset(name, filled, read(sent), schema.get("properties") or {})
    return sent if filled == given else json.dumps(filled, ensure_ascii=False)


def _sent(ctx: RunContext[Any]) -> str:
    """The arguments of the call as the model wrote them."""
    for message in reversed(ctx.messages):
        for part in message.parts if isinstance(message, ModelResponse) else ():
            if isinstance(part, ToolCallPart) and part.tool_call_id == ctx.tool_call_id:
                return part.args if isinstance(part.args, str) and part.args else json.dumps(part.args or {})
    raise CallError(f"no message has the call {ctx.tool_call_id}")
