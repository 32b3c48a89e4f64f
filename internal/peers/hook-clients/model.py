"""A model that says what it is told: serves Anthropic's Messages API, and asks for the tool that the prompt names.

A prompt "CALL NAME {arguments}" becomes one call of that tool; once its result is there, the answer is the result. Its own words are
written to the file that is its first argument, one JSON text a line, so that a test can see what the product told the model."""

import http.server
import json
import sys

TOLD = open(sys.argv[1], "a", encoding="utf-8")


def texts(message):
    content = message["content"]
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in content if part["type"] == "text"]


def results(message):
    content = message["content"]
    if isinstance(content, str):
        return []
    return [part for part in content if part["type"] == "tool_result"]


def answer(request):
    """The content of the model's turn, and why it ends."""
    for message in reversed(request["messages"]):
        for result in results(message):
            TOLD.write(json.dumps(result) + "\n")
            TOLD.flush()
            return {"type": "text", "text": "done"}, "end_turn"
        for text in texts(message):
            if request.get("tools") and "CALL " in text:
                name, args = text[text.index("CALL ") + 5 :].split(" ", 1)
                call = {"type": "tool_use", "id": "toolu_1", "name": name, "input": json.JSONDecoder().raw_decode(args)[0]}
                return call, "tool_use"
    return {"type": "text", "text": "nothing"}, "end_turn"


def events(request):
    content, why = answer(request)
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": request["model"], "content": []}
    yield {"type": "message_start", "message": message | {"stop_reason": None, "stop_sequence": None, "usage": usage}}
    if content["type"] == "text":
        yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": content["text"]}}
    else:
        yield {"type": "content_block_start", "index": 0, "content_block": content | {"input": {}}}
        part = {"type": "input_json_delta", "partial_json": json.dumps(content["input"])}
        yield {"type": "content_block_delta", "index": 0, "delta": part}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": why, "stop_sequence": None}, "usage": usage}
    yield {"type": "message_stop"}


class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.path.startswith("/v1/messages") or "count_tokens" in self.path:
            body, kind = json.dumps({"input_tokens": 1}), "application/json"
        elif request.get("stream"):
            body = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events(request))
            kind = "text/event-stream"
        else:
            content, why = answer(request)
            whole = {"id": "msg_1", "type": "message", "role": "assistant", "model": request["model"], "content": [content]}
            body = json.dumps(whole | {"stop_reason": why, "usage": {"input_tokens": 1, "output_tokens": 1}})
            kind = "application/json"
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
print(server.server_address[1], flush=True)
server.serve_forever()
