"""A model that says what it is told: speaks Anthropic's Messages API, OpenAI's Responses API and Google's Gemini API, and asks for
the tool that the prompt names.

A prompt "CALL NAME {arguments}" becomes a call of that tool, and one with several becomes one after the other, where session_id is what
the last one told; then the answer is "done". What the product told the model of its calls is written to the file that is this
program's first argument, one line each: [how many calls have ended, what it told of the last one]. A second argument is the prompt in
place of one that names no call."""

import http.server
import json
import re
import sys

TOLD = open(sys.argv[1], "a", encoding="utf-8")
OTHER = sys.argv[2] if len(sys.argv) > 2 else ""


def turn(texts, results):
    """What the model says next: the call that it is to make now, as (name, arguments), or a text.

    results are what the product told of the calls so far."""
    for result in results[-1:]:
        TOLD.write(json.dumps([len(results), result]) + "\n")
        TOLD.flush()
    prompt = next((text for text in reversed(texts) if "CALL " in text), OTHER if texts else "")
    calls = re.finditer(r"CALL (\w+) (?=\{)", prompt)
    wanted = [(call[1], json.JSONDecoder().raw_decode(prompt, call.end())[0]) for call in calls]
    if len(results) >= len(wanted):
        return "done"
    name, args = wanted[len(results)]
    if "session_id" in args:
        args["session_id"] = int(re.findall(r"session ID (\d+)", json.dumps(results[-1]))[-1])
    return name, args


def anthropic(request):
    parts = []
    for message in request["messages"]:
        content = message["content"]
        parts += [{"type": "text", "text": content}] if isinstance(content, str) else content
    results = [part for part in parts if part["type"] == "tool_result"]
    texts = [part["text"] for part in parts if part["type"] == "text"] if request.get("tools") else []
    said = turn(texts, results)
    why, block = "end_turn", {"type": "text", "text": said}
    if not isinstance(said, str):
        why, block = "tool_use", {"type": "tool_use", "id": f"toolu_{len(results) + 1}", "name": said[0], "input": said[1]}
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": request["model"]}
    if not request.get("stream"):
        return message | {"content": [block], "stop_reason": why, "usage": usage}

    empty, delta = block | {"text": ""}, {"type": "text_delta", "text": said}
    if why == "tool_use":
        empty, delta = block | {"input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(said[1])}
    return [
        {"type": "message_start", "message": message | {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": why, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]


def openai(request):
    results = [item for item in request["input"] if item["type"] in ("function_call_output", "custom_tool_call_output")]
    texts = [part["text"] for item in request["input"] if item["type"] == "message" and item["role"] == "user" for part in item["content"]]
    said = turn(texts, results)
    item = {"type": "message", "role": "assistant", "id": "msg_1", "content": [{"type": "output_text", "text": said}]}
    if not isinstance(said, str):
        name, args = said
        call = {"id": f"fc_{len(results)}", "call_id": f"call_{len(results)}", "name": name}
        item = call | {"type": "function_call", "arguments": json.dumps(args)}
        if list(args) == ["input"]:  # a tool that takes a text
            item = call | {"type": "custom_tool_call", "input": args["input"]}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    return [
        {"type": "response.created", "response": {"id": "resp_1"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": "resp_1", "usage": usage}},
    ]


def gemini(request):
    parts = [part for content in request["contents"] for part in content["parts"]]
    results = [part["functionResponse"] for part in parts if "functionResponse" in part]
    texts = [part["text"] for part in parts if "text" in part] if request.get("tools") else []
    said = turn(texts, results)
    part = {"text": said} if isinstance(said, str) else {"functionCall": {"name": said[0], "args": said[1]}}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}}


def answer(path, request):
    """One JSON value, or a list of events."""
    if "count_tokens" in path:
        return {"input_tokens": 1}
    if path.startswith("/v1/messages"):
        return anthropic(request)
    if path.endswith("/responses"):
        return openai(request)
    said = gemini(request) if "generatecontent" in path.lower() else {"totalTokens": 1}
    return [said] if "streamGenerateContent" in path else said


class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = answer(self.path, request)
        body, kind = json.dumps(said), "application/json"
        if isinstance(said, list):
            names = [f"event: {event['type']}\n" if "type" in event else "" for event in said]
            body = "".join(f"{name}data: {json.dumps(event)}\n\n" for name, event in zip(names, said))
            kind = "text/event-stream"
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
print(server.server_address[1], flush=True)
server.serve_forever()
