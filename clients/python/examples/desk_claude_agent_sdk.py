"""examples/desk.py with the Claude Agent SDK: the same three calls, by a model that is a script."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ToolResultBlock,
    UserMessage,
    create_sdk_mcp_server,
    query,
    tool,
)
from desk import TOOLS, TURN

import assent_client as assent
from assent_client.adapters.claude_agent_sdk import Assent

PREFIX = "mcp__desk__"


class Local(Assent):
    def call(self, name: str, args: dict[str, Any], session: str) -> dict[str, Any]:
        return assent.tool(name.removeprefix(PREFIX), args, session=session)  # the file lists them as local tools


def made(name: str) -> Any:
    @tool(name, name, {"type": "object", "properties": {}})
    async def run(args: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": await TOOLS[name](**args)}]}

    return run


class Scripted(BaseHTTPRequestHandler):
    """The Messages API of a model that makes the calls, and ends."""

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        blocks: list[tuple[Any, Any]] = [({"type": "text", "text": ""}, {"type": "text_delta", "text": "That is all."})]
        if not any("tool_result" in json.dumps(message) for message in request["messages"]):
            blocks = [
                (
                    {"type": "tool_use", "id": id, "name": PREFIX + name, "input": {}},
                    {"type": "input_json_delta", "partial_json": json.dumps(args)},
                )
                for id, name, args in TURN
            ]
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": []}
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.event({"type": "message_start", "message": {**message, "usage": usage}})
        for index, (block, delta) in enumerate(blocks):
            self.event({"type": "content_block_start", "index": index, "content_block": block})
            self.event({"type": "content_block_delta", "index": index, "delta": delta})
            self.event({"type": "content_block_stop", "index": index})
        why = "tool_use" if len(blocks) > 1 else "end_turn"
        self.event({"type": "message_delta", "delta": {"stop_reason": why}, "usage": usage})
        self.event({"type": "message_stop"})

    def event(self, event: dict[str, Any]) -> None:
        self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())


async def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Scripted)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    home = tempfile.mkdtemp()
    env = {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.server_address[1]}", "ANTHROPIC_API_KEY": "none"}
    env |= {"CLAUDE_CONFIG_DIR": home, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    desk = create_sdk_mcp_server("desk", tools=[made(name) for name in TOOLS])
    given = ClaudeAgentOptions(mcp_servers={"desk": desk}, tools=[], cwd=home, env=env)
    names = {id: name for id, name, _ in TURN}
    async with assent.AsyncClient(os.environ["ASSENT_SERVER"], os.environ["ASSENT_TOKEN"]) as client:
        options = Local(client, "desk").options(given)
        async for message in query(prompt="Buy ACME, and tidy up.", options=options):
            for part in message.content if isinstance(message, UserMessage) else ():
                if isinstance(part, ToolResultBlock):
                    content = part.content
                    text = content if isinstance(content, str) else "".join(each["text"] for each in content or ())
                    before, _, told = text.partition(" hook error: ")
                    print(f"{part.tool_use_id} {names[part.tool_use_id]}: {told or before}")


if __name__ == "__main__":
    asyncio.run(main())
