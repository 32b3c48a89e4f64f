"""A model that is a script, for the Claude Code CLI: Anthropic's Messages API on the loopback interface."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from suite import Made


@contextmanager
def scripted(calls: Sequence[Made]) -> Iterator[str]:
    """Serves a model that makes these calls once, in one turn, and ends. A call's text goes out as it is."""
    left = list(calls)

    class Model(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            made = left[:] if request.get("tools") else []
            del left[: len(made)]
            each = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events(request, made))
            body = "".join(each).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def events(request: Any, made: list[Made]) -> Iterator[dict[str, Any]]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": request["model"], "content": []}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}}
    blocks: list[tuple[Any, Any]] = [({"type": "text", "text": ""}, {"type": "text_delta", "text": "done"})]
    if made:
        blocks = [
            (
                {"type": "tool_use", "id": call.id, "name": call.tool, "input": {}},
                {"type": "input_json_delta", "partial_json": call.args},
            )
            for call in made
        ]
    for index, (block, delta) in enumerate(blocks):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    why = "tool_use" if made else "end_turn"
    yield {"type": "message_delta", "delta": {"stop_reason": why, "stop_sequence": None}, "usage": usage}
    yield {"type": "message_stop"}
