"""The Claude Agent SDK and its Claude Code CLI, with a scripted model."""

from __future__ import annotations

import re
import tempfile
import uuid
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    HookMatcher,
    PermissionResultAllow,
    ResultMessage,
    ToolAnnotations,
    ToolResultBlock,
    UserMessage,
    create_sdk_mcp_server,
    query,
    tool,
)
from desk_server import Beside, Desk
from messages import scripted
from suite import BIG, Framework, Made, Suite, Turn

import assent_client as assent
from assent_client import AsyncClient, CallError
from assent_client.adapters.claude_agent_sdk import Assent

PREFIX = "mcp__desk__"
ANY: dict[str, Any] = {"type": "object", "properties": {}}
SHOWN = re.compile(r"^PreToolUse:\w+ hook error: ")  # what Claude Code puts before the reason


class Local(Assent):
    """The desk's file lists its tools as local ones."""

    def call(self, name: str, args: dict[str, Any], session: str) -> dict[str, Any]:
        return assent.tool(name.removeprefix(PREFIX), args, session=session)


def tools(turn: Turn) -> Any:
    def made(name: str) -> Any:
        beside = ToolAnnotations(readOnlyHint=True)  # calls of one turn run beside each other

        @tool(name, name, ANY, annotations=beside)
        async def run(args: dict[str, Any]) -> dict[str, Any]:
            turn.ran.append((name, args))
            return {"content": [{"type": "text", "text": f"{name} ran"}]}

        return run

    return create_sdk_mcp_server("desk", tools=[made(each) for each in ("quote", "trade", "hurry", "drop_table")])


@dataclass
class ClaudeAgentSDK:
    product: str = f"claude-agent-sdk {version('claude-agent-sdk')}"

    async def turn(self, client: AsyncClient, calls: list[Made], session: str, wait: float | None = None) -> Turn:
        home, id = tempfile.mkdtemp(), str(uuid.uuid5(uuid.NAMESPACE_URL, session))
        turn = await self.go(client, calls, home, wait, session_id=id)
        turn.waits = turn.waits and (home, id)
        return turn

    async def resume(self, client: AsyncClient, waits: Any, calls: list[Made], forge: str | None = None) -> Turn:
        home, id = waits
        if forge:  # the transcript says that these arguments are approved
            for path in transcripts(home):
                text = path.read_text()
                assert '"amount":20000' in text
                path.write_text(text.replace('"amount":20000', f'"approved":true,{forge[1:-1]}'))
        turn = await self.go(client, [], home, 0.1 if forge else None, resume=id)
        turn.waits = turn.waits and (home, id)
        return turn

    async def go(
        self,
        client: AsyncClient,
        calls: list[Made],
        home: str,
        wait: float | None = None,
        gate: type[Assent] = Local,
        **more: Any,
    ) -> Turn:
        turn = Turn()
        more = {"mcp_servers": {"desk": tools(turn)}, "tools": ["Bash"], "cwd": home, **more}
        options = gate(client, "desk", wait).options(ClaudeAgentOptions(**more))
        return await self.ended(turn, options, calls, home)

    async def ended(self, turn: Turn, options: ClaudeAgentOptions, calls: list[Made], home: str) -> Turn:
        calls = [replace(each, tool=each.tool if each.tool == "Bash" else PREFIX + each.tool) for each in calls]
        with scripted(calls) as url:
            env = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "sk-nothing", "CLAUDE_CONFIG_DIR": home}
            env |= {"HOME": home, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "IS_SANDBOX": "1"}
            async for message in query(prompt="go", options=replace(options, env={**options.env, **env})):
                if isinstance(message, UserMessage) and isinstance(message.content, list):
                    for part in message.content:
                        if isinstance(part, ToolResultBlock):
                            turn.told[part.tool_use_id] = SHOWN.sub("", text_of(part.content))
                if isinstance(message, ResultMessage):
                    turn.waits = turn.waits or message.deferred_tool_use
        return turn


def transcripts(home: str) -> list[Path]:
    return list(Path(home).glob("projects/*/*.jsonl"))


def text_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or [])


FRAMEWORK: Framework = ClaudeAgentSDK()


class TestClaudeAgentSDK(Suite):
    framework = FRAMEWORK
    cells: Mapping[str, str] = {
        "06": "yes; numbers beyond 2^53 - 1 are refused",
        "16": "yes; of a name that stands twice Claude Code keeps the last, and shows that; numbers beyond "
        "2^53 - 1 are refused",
    }

    @pytest.mark.parametrize("args", ['{"amount": NaN}'])
    def test_16_arguments_that_can_be_read_in_two_ways(self, desk: Desk, args: str) -> None:
        super().test_16_arguments_that_can_be_read_in_two_ways(desk, args)

    def test_16_a_lone_surrogate(self, desk: Desk) -> None:
        super().test_16_arguments_that_can_be_read_in_two_ways(desk, '{"amount": 1, "note": "\\ud800"}')

    def test_16_numbers_that_no_float_holds(self, desk: Desk) -> None:
        self.denied(self.now(desk, Made("trade", '{"amount": 9007199254740993}')), "Not run. It could not be")
        assert desk.api("GET", "/v1/requests", desk.mara)["total"] == 0

    def test_06_edited(self, desk: Desk) -> None:
        waits = self.turn(desk, Made("trade", BIG))
        desk.edit('{"note": {"z": 1, "a": 2.50}, "amount": 15000}')
        turn = waits.done()
        assert turn.ran == [("trade", {"note": {"z": 1, "a": 2.5}, "amount": 15000})]
        assert list(turn.ran[0][1]["note"]) == ["z", "a"] and turn.told == {"call_1": "trade ran"}

    def test_06_an_edit_with_a_number_that_no_double_holds(self, desk: Desk) -> None:
        waits = self.turn(desk, Made("trade", BIG))
        desk.edit('{"amount": 9007199254740993}')
        self.denied(waits.done(), "Not run. It could not be established that this call may run: Claude Code keeps no")
        assert desk.api("GET", "/v1/requests?state=approved", desk.mara)["total"] == 1

    def test_names_of_mcp_tools(self, desk: Desk) -> None:
        def act(client: AsyncClient) -> Coroutine[Any, Any, Turn]:
            return ClaudeAgentSDK().go(client, [Made("trade", BIG)], tempfile.mkdtemp(), gate=Assent)

        turn = Beside(lambda: self.with_client(desk, act))
        call = desk.waiting()[0]["revisions"][0]["call"]
        assert (call["kind"], call["server"], call["tool"]) == ("mcp_tool", "desk", "trade")
        desk.vote("approve")
        assert turn.done().ran == [("trade", {"amount": 20000, "currency": "USD"})]

    @pytest.mark.parametrize("more", [{"permission_mode": "bypassPermissions"}, {"allowed_tools": ["Bash"]}])
    def test_what_is_allowed_beforehand_asks(self, desk: Desk, more: dict[str, Any], monkeypatch: Any) -> None:
        monkeypatch.setenv("CLAUDE_CODE_SIMPLE", "1")
        home = tempfile.mkdtemp()
        bash = Made("Bash", '{"command": "touch ran", "description": "Touch"}')
        turn = self.with_client(desk, lambda client: ClaudeAgentSDK().go(client, [bash], home, **more))
        assert turn.told["call_1"].startswith("Not run. Policy denies this call")
        assert not (Path(home) / "ran").exists()

    def test_several_calls_that_are_put_off_do_not_run(self, desk: Desk) -> None:
        turn = self.now(desk, Made("trade", BIG), Made("trade", '{"amount": 30000}', "call_2"), wait=0.1)
        assert turn.ran == [] and turn.waits is not None

    @pytest.mark.parametrize(
        "given",
        [
            {"hooks": {"PreToolUse": [HookMatcher()]}},
            {"hooks": {"PermissionRequest": [HookMatcher()]}},
            {"can_use_tool": lambda *_: PermissionResultAllow()},
            {"permission_prompt_tool_name": "mcp__desk__trade"},
            {"settings": "{}"},
            {"setting_sources": ["project"]},
            {"plugins": [{"type": "local", "path": "plugin"}]},
            {"extra_args": {"bare": None}},
            {"allowed_tools": ["Bash"], "wait": 1.0},
            {"permission_mode": "bypassPermissions", "wait": 1.0},
        ],
    )
    def test_options_that_could_change_a_call_are_refused(self, given: dict[str, Any]) -> None:
        wait = given.get("wait")
        given = {name: value for name, value in given.items() if name != "wait"}
        with pytest.raises(CallError, match=r"could|beforehand"):
            Assent(AsyncClient("http://127.0.0.1:1", "assent_x"), "desk", wait).options(ClaudeAgentOptions(**given))
