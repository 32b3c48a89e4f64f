"""An MCP server on standard input and output, whose one tool asks its user for a seat and returns what it was answered."""

import json
import sys

SEAT = {"type": "object", "properties": {"seat": {"type": "string", "enum": ["aisle", "window"]}}, "required": ["seat"]}
TOOL = {"name": "book", "description": "Book a seat", "inputSchema": {"type": "object"}}


def say(message):
    print(json.dumps({"jsonrpc": "2.0"} | message), flush=True)


def read():
    line = sys.stdin.readline()
    if not line:
        sys.exit()
    return json.loads(line)


def book():
    """What the user answered: the result of the question, as JSON."""
    params = {"message": "Which seat?", "requestedSchema": SEAT}
    say({"id": "seat", "method": "elicitation/create", "params": params})
    while True:
        message = read()
        if message.get("id") == "seat" and "method" not in message:
            return json.dumps(message.get("result", message.get("error")))


def answer(message):
    match message["method"]:
        case "initialize":
            known = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}}}
            return known | {"serverInfo": {"name": "trains", "version": "1"}}
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            return {"content": [{"type": "text", "text": book()}]}
    return {}


while True:
    asked = read()
    if "id" in asked and "method" in asked:
        say({"id": asked["id"], "result": answer(asked)})
