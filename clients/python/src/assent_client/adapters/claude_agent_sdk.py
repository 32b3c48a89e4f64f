"""Claude Agent SDK: a PreToolUse hook, behind which every tool of a session runs only as a call that may.

    async for message in query(prompt="Buy ACME.", options=Assent(client, "desk").options(options)):

The call is presented right before its tool runs, and the tool runs with what was approved. Where it may not run the
model is told why. Permission modes, rules and a resumed session approve nothing: the server is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher
from claude_agent_sdk.types import HookContext, HookInput, HookJSONOutput

from ..aio import AsyncClient
from ..call import key_of, tool
from ..errors import CallError, StillPending, not_run
from ..wire import Taken

LONGEST = 2_000_000  # seconds: the longest time for people that Claude Code's clock holds
SAFE = 2**53 - 1  # Claude Code reads and writes numbers as JavaScript does
REFUSED = {
    "can_use_tool": "it could change what was approved",
    "permission_prompt_tool_name": "it could change what was approved",
    "setting_sources": "hooks of settings could change what was approved",
    "settings": "hooks of settings could change what was approved",
    "plugins": "hooks of plugins could change what was approved",
    "extra_args": "they could bring in hooks, or turn them off",
}


class Assent:
    """Every tool of the session asks, built-in ones and those of MCP servers, also in subagents.

    `agent` is the id of its file at the server. `wait` is how many seconds a call waits for people; after that it ends
    the run with the SDK's deferred_tool_use. Resume the session with any prompt, in any process: what people have
    answered by then counts, and nothing else. Further keywords are fields of Asking.
    """

    def __init__(self, client: AsyncClient, agent: str, wait: float | None = None, **asking: Any) -> None:
        self.client, self.agent, self.asking = client, agent, {"wait": wait, **asking}

    def call(self, name: str, args: dict[str, Any], session: str) -> dict[str, Any]:
        """The call as people are shown it. Override it for principals, and for tools with other names in the file."""
        server, _, own = name.removeprefix("mcp__").partition("__")
        if name.startswith("mcp__") and server and own:
            return tool(own, args, server=server, session=session)
        return tool(name, args, session=session)

    def options(self, given: ClaudeAgentOptions | None = None) -> ClaudeAgentOptions:
        """The same options, with the hook. Those by which a call could run as another one are refused."""
        given = given or ClaudeAgentOptions()
        for name, why in REFUSED.items():
            if getattr(given, name):
                raise CallError(f"{name} of ClaudeAgentOptions has to be empty: {why}")
        for event in ("PreToolUse", "PermissionRequest"):
            if (given.hooks or {}).get(cast(Any, event)):
                raise CallError(f"another hook for {event} could change what was approved")
        if self.asking["wait"] is not None and (
            given.allowed_tools or given.permission_mode not in (None, "default", "dontAsk")
        ):
            raise CallError(
                "with wait no tool and no permission_mode may be allowed beforehand: assent allows each call"
            )
        env = {**given.env, "CLAUDE_CODE_SIMPLE": "0"}  # with "1", also from outside, Claude Code runs no hook
        hook = HookMatcher(hooks=[self.hook], timeout=LONGEST, on_failure="block")
        return replace(given, hooks={**(given.hooks or {}), "PreToolUse": [hook]}, setting_sources=[], env=env)

    async def hook(self, called: HookInput, tool_use_id: str | None, context: HookContext) -> HookJSONOutput:
        given = cast(dict[str, Any], called)
        try:
            taken = await self._taken(given)
        except StillPending as e:  # a subagent can't be resumed at its call
            return _says("deny" if "agent_id" in given else "defer", str(e))
        except Exception as e:
            return _says("deny", not_run(e))
        more = {} if taken.note is None else {"additionalContext": taken.note}
        return _says("allow", "", updatedInput=taken.args, **more)

    async def _taken(self, given: Mapping[str, Any]) -> Taken:
        session, args = given["session_id"], given["tool_input"]
        _kept(args)
        asking = {"key": key_of(session, given["tool_use_id"]), "accept": _kept, **self.asking}
        return await self.client.take(self.agent, self.call(given["tool_name"], args, session), **asking)


def _kept(value: Any) -> None:
    """Refuses what Claude Code could run as something else than what people saw."""
    if isinstance(value, Mapping):
        if "__proto__" in value:
            raise CallError("Claude Code loses a member that is named __proto__")
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            _kept(each)
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) > SAFE and value == int(value):
        raise CallError(f"Claude Code keeps no number beyond {SAFE} exactly")


def _says(decision: str, why: str, **more: Any) -> HookJSONOutput:
    said = {"hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": why, **more}
    return cast(HookJSONOutput, {"hookSpecificOutput": said})
