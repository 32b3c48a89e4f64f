"""Carries requests to the SDK's protobuf types and answers back."""

import json
import subprocess
import sys

from a2a.helpers import new_data_part, new_text_part
from a2a.types import Message, Role, Task, TaskState
from google.protobuf import json_format

probe = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
ANSWER = "application/vnd.assent.input-response+json"


def ask(do, **line):
    print(json.dumps({"do": do, "shapes": ["dotnet"], **line}), file=probe.stdin, flush=True)
    answer = json.loads(probe.stdout.readline())
    return answer.get("out"), answer.get("error")


def task_of(request):
    """The task that asks, as the SDK reads it; every member must be known to it, and nothing may get lost on the way."""
    raw, error = ask("status", content=request)
    assert error is None, error
    task = json_format.ParseDict(raw, Task())
    assert task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED and task.status.message.role == Role.ROLE_AGENT
    assert json_format.MessageToDict(task) == raw, (json_format.MessageToDict(task), raw)
    return task, task.status.message.parts[0].text


def message_of(task, *parts):
    """A message that the SDK makes."""
    m = Message(message_id="m2", task_id=task.id, context_id=task.context_id, role=Role.ROLE_USER, parts=parts)
    return json_format.MessageToDict(m)


def answered(request, data):
    """What assent makes of an answer in the SDK's words."""
    task, _ = task_of(request)
    return ask("answers", content=request, message=message_of(task, new_data_part(data, media_type=ANSWER)))


def request_about(arguments, kind="functionCall", **more):
    call = {"$type": kind, "callId": "call_1", "name": "transfer", "arguments": arguments, **more}
    return {"$type": "toolApprovalRequest", "requestId": "r1", "toolCall": call}


def response_to(request, approved=True, **more):
    """A copy of what was asked, through the SDK's own types."""
    task, _ = task_of(request)
    shown = json_format.MessageToDict(task.status.message.parts[1].data)
    return {"$type": "toolApprovalResponse", "requestId": "r1", "approved": approved, "toolCall": shown["toolCall"], **more}


plain = request_about({"to": "Zoë 😀 \u2028", "amount": 5, "rate": 0.1, "nested": {"list": [1, "x", None, True]}})
for approved in (True, False):
    out, error = answered(plain, response_to(plain, approved, reason="why <not>"))
    assert error is None and out["approved"] is approved and out["reason"] == "why <not>", (out, error)
    assert out["toolCall"]["arguments"] == plain["toolCall"]["arguments"]

hosted = request_about({"path": "/"}, kind="mcpServerToolCall", serverName="drive")
assert 'on the server "drive"' in task_of(hosted)[1], "the server is not shown"
out, error = answered(hosted, response_to(hosted))
assert error is None and out["toolCall"]["serverName"] == "drive", (out, error)

edited = {**response_to(plain), "$type": "toolApprovalEdit", "editedCall": {**plain["toolCall"], "arguments": {"to": "bob", "amount": 4}}}
out, error = answered(plain, edited)
assert error is None and out["editedCall"]["arguments"] == {"to": "bob", "amount": 4}, (out, error)

for request, data in [
    ({"$type": "textApprovalRequest", "requestId": "r1", "text": "Agree?"}, {"$type": "textApprovalResponse", "requestId": "r1", "approved": False}),
    ({"$type": "structuredInputRequest", "requestId": "r1", "text": "Where?", "schema": {"type": "object", "properties": {"n": {"type": "integer"}}}},
     {"$type": "structuredInputResponse", "requestId": "r1", "structuredData": {"n": 3}}),
]:
    out, error = answered(request, data)
    assert error is None and out["$type"] == data["$type"], (out, error)

# What must be refused. The SDK keeps numbers as doubles, so it can't show a call with a larger whole number.
large = request_about({"id": 9007199254740993})
task, _ = task_of(request_about({"id": 5}))
text, _ = task_of(plain)
for request, data, words in [
    (plain, {**response_to(plain), "requestId": "r2"}, "no such request"),
    (plain, response_to(request_about({"amount": 6})), "another call"),
    (plain, {"$type": "textApprovalResponse", "requestId": "r1", "approved": True}, "not answered by"),
]:
    out, error = answered(request, data)
    assert out is None and words in error, (out, error)
raw, _ = ask("status", content=large)
shown = json_format.MessageToDict(json_format.ParseDict(raw, Task()).status.message.parts[1].data)
assert shown["toolCall"]["arguments"]["id"] != 9007199254740993, "the SDK keeps large numbers: the contract may say so"
out, error = ask("answers", content=large, message=message_of(task, new_data_part({**response_to(plain), "toolCall": shown["toolCall"]}, media_type=ANSWER)))
assert out is None and "rounded numbers" in error, (out, error)
out, error = ask("answers", content=plain, message=message_of(text, new_text_part("I approve")))
assert out is None and error, "a text has approved a call"
print("approval, rejection, edit, hosted call, text and data both ways; 5 wrong answers refused, rounded numbers by name")
