"""Holds the requests that assent's adapter for OpenAI sends to the types of the official SDK, as strict servers do."""

import json
import sys
from pathlib import Path

from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter, ValidationError

messages, items = TypeAdapter(ChatCompletionMessageParam), TypeAdapter(ResponseInputItemParam)
written = {"message", "function_call", "function_call_output", "reasoning", "mcp_call", "mcp_approval_request", "mcp_approval_response"}
counts = {"messages": 0, "items": 0}
for file in sorted((Path(sys.argv[1]) / "agent/openai/testdata").glob("*.json")):
    for exchange in json.loads(file.read_text()):
        body = exchange["request"].get("body") or {}
        for message in body.get("messages", []):
            messages.validate_python(message)
            counts["messages"] += 1
        for item in body.get("input", []):
            if item["type"] not in written:
                continue  # of the service, and goes back as it came
            if item["type"] == "reasoning" and "id" not in item:
                continue  # the type wants an id, and a service that stores nothing refuses one
            if isinstance(item.get("error"), str):
                continue  # goes back as it came: a text from services of before, an object today
            items.validate_python(item)
            counts["items"] += 1
assert min(counts.values()) > 10, counts
try:
    items.validate_python({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "A cat."}]})
except ValidationError:
    print(f"{counts['messages']} messages and {counts['items']} items of recorded requests fit the types of the SDK")
else:
    sys.exit("the types take anything")
