"""What frameworks do that their users would not expect, without assent. docs/reference/adapters.md lists each.

A test that fails says that the framework has changed: look at the page, and at what the adapter does about it.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest
from agents import Agent, RunConfig, Runner, function_tool
from claude_agent_sdk import ClaudeAgentOptions, HookMatcher, ResultMessage, query
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner as ADKRunner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.function_tool import FunctionTool
from google.genai import types
from langchain_core.output_parsers.openai_tools import parse_tool_call
from langchain_core.tools import tool
from messages import scripted
from standardwebhooks import Webhook
from suite import Made
from table import PAGE
from temporal_turn import Hears
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker
from test_google_adk import Scripted as ScriptedADK
from test_openai_agents import Scripted as ScriptedOpenAI
from test_temporal import server as temporal_server  # noqa: F401  a fixture of this module, too

ROW = re.compile(r"^\| ([\w-]+) (\S+) \| .* \| `(test_\w+)` \|$", re.M)


def test_the_page_lists_these_faults() -> None:
    rows = {name: (product, of) for product, of, name in ROW.findall(PAGE.read_text())}
    tests = {name for name in globals() if name.startswith("test_")} - {"test_the_page_lists_these_faults"}
    assert set(rows) == tests
    assert all(version(product) == of for product, of in rows.values()), "versions of the page"


def test_openai_agents_ends_a_run_at_half_a_surrogate() -> None:
    @function_tool(strict_mode=False)
    def trade(note: str) -> str:
        return "ran"

    agent = Agent[None](name="desk", model=ScriptedOpenAI([Made("trade", '{"note": "\\ud800"}')]), tools=[trade])
    with pytest.raises(UnicodeEncodeError):
        asyncio.run(Runner.run(agent, "go", run_config=RunConfig(tracing_disabled=True)))


def test_langchain_keeps_the_last_of_a_name_that_stands_twice() -> None:
    called = {"id": "1", "function": {"name": "trade", "arguments": '{"amount": 1, "amount": 20000}'}}
    parsed = parse_tool_call(called)
    assert parsed and parsed["args"] == {"amount": 20000}


def test_langchain_leaves_out_arguments_that_a_tool_does_not_know() -> None:
    @tool
    def trade(amount: int = 1) -> str:
        """Trades."""
        return f"ran with {amount}"

    assert trade.invoke({"ammount": 20000}) == "ran with 1"


def test_google_adk_confirms_after_its_plugins() -> None:
    seen: list[str] = []

    class Plugin(BasePlugin):
        async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> None:
            seen.append("plugin")

    def quote() -> str:
        seen.append("ran")
        return "quote ran"

    async def run() -> None:
        model = ScriptedADK(calls=[{"name": "quote", "args": {}, "id": "1"}])
        agent = LlmAgent(name="desk", model=model, tools=[FunctionTool(quote, require_confirmation=True)])
        sessions = InMemorySessionService()
        await sessions.create_session(app_name="desk", user_id="u", session_id="s")
        runner = ADKRunner(app=App(name="desk", root_agent=agent, plugins=[Plugin("p")]), session_service=sessions)
        message = types.Content(role="user", parts=[types.Part(text="go")])
        async for _ in runner.run_async(user_id="u", session_id="s", new_message=message):
            pass

    asyncio.run(run())
    assert seen == ["plugin"]  # it would have used an approval up, for a call that does not run


def claude(calls: list[Made], prompt: str = "go", **more: Any) -> ResultMessage:
    """A session of Claude Code in which the model makes these calls."""

    async def run() -> ResultMessage:
        with scripted(calls) as url:
            env = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "sk-nothing", "IS_SANDBOX": "1"}
            env |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "HOME": more["cwd"], **more.pop("env", {})}
            options = ClaudeAgentOptions(env={**env, "CLAUDE_CONFIG_DIR": more["cwd"]}, tools=["Bash"], **more)
            async for message in query(prompt=prompt, options=options):
                if isinstance(message, ResultMessage):
                    return message
        raise AssertionError("no result")

    return asyncio.run(run())


def hooks(seen: list[str], decision: str) -> dict[str, Any]:
    async def hook(called: Any, id: str | None, context: Any) -> Any:
        seen.append(called["tool_input"]["command"])
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": decision}}

    return {"hooks": {"PreToolUse": [HookMatcher(hooks=[hook], on_failure="block")]}}


def bash(command: str, id: str = "call_1") -> Made:
    return Made("Bash", f'{{"command": "{command}", "description": "Touch"}}', id)


def test_claude_code_drops_hooks_that_block_with_simple_mode() -> None:
    home, seen = tempfile.mkdtemp(), list[str]()
    more: dict[str, Any] = {"cwd": home, "permission_mode": "bypassPermissions", **hooks(seen, "deny")}
    claude([bash("touch held")], **more)
    assert seen == ["touch held"] and not Path(home, "held").exists()

    claude([bash("touch ran")], env={"CLAUDE_CODE_SIMPLE": "1"}, **more)
    assert seen == ["touch held"] and Path(home, "ran").exists()


def test_claude_code_forgets_all_calls_of_a_turn_but_one_that_are_put_off() -> None:
    home, seen = tempfile.mkdtemp(), list[str]()
    first = claude([bash("touch one"), bash("touch two", "call_2")], cwd=home, **hooks(seen, "defer"))
    assert sorted(seen) == ["touch one", "touch two"] and first.deferred_tool_use is not None

    again: list[str] = []
    claude([], cwd=home, resume=first.session_id, **hooks(again, "deny"))
    assert len(again) == 1


def test_temporal_holds_up_a_workflow_for_a_signal_with_too_many_arguments() -> None:
    async def run() -> None:
        temporal = await Client.connect(os.environ["TEMPORAL_ADDRESS"])
        plain = UnsandboxedWorkflowRunner()
        async with Worker(temporal, task_queue="faults", workflows=[Hears], workflow_runner=plain):
            for args in ([1], ["a", "b"]):
                hears = await temporal.start_workflow(Hears.run, id=f"faults-{len(args)}", task_queue="faults")
                await hears.signal("say", args=args)
                await hears.signal("say", "ok")
                if len(args) == 1:
                    assert await hears.result() == "ok"  # what does not fit is passed over
                    continue
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(hears.result(), 3)
                await hears.terminate()

    asyncio.run(run())


class Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.send_response(204)
        self.end_headers()


@pytest.fixture
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_httpx_keeps_connections_of_an_event_loop_that_has_ended(url: str) -> None:
    http = httpx.AsyncClient()
    asyncio.run(http.get(url))
    with pytest.raises(RuntimeError, match="Event loop is closed"):
        asyncio.run(http.get(url))


def test_standardwebhooks_takes_a_secret_of_one_byte() -> None:
    Webhook("whsec_YQ==")
