"""Contents of the library through assent and back, and the lines of docs/contracts/contents.md through the library."""

import inspect
import json
import re
import sys
from pathlib import Path

from agent_framework import Content, Message

from probe import ask, carry, refused

root = Path(sys.argv[2])
text = Content.from_text("Zoë \u2028 😀 <b>")
call = Content.from_function_call("call_1", "transfer", arguments={"amount": 5.5, "to": "Zoë"}, id="r1")
local = Content.from_function_call("call_1", "transfer", arguments='{"amount": 5}', id="af-call-1", server_name="a name alone")
hosted = Content.from_function_call("call_2", "list", arguments='{"path":"/"}', hosted=True, server_name="drive")
labelled = Content.from_function_call("call_2", "list", arguments="{}", hosted=True, server_name="drive", additional_properties={"server_label": "drive"})
nameless = Content.from_function_call("call_3", "list", arguments="{}", hosted=True)
approval, about_hosted = (Content.from_function_approval_request(id="r1", function_call=c) for c in (call, hosted))

# What must come back as it went, also through .NET's and Go's shapes.
same = [
    text,
    Content.from_text("x", annotations=[{"type": "citation", "title": "t"}], additional_properties={"k": [1, None]}),
    Content.from_text_reasoning(text="hm", protected_data="c2VhbGVk"),
    Content.from_uri("https://example.com/a.png", media_type="image/png"),
    Content.from_uri("data:image/png;base64,iVBORw0=", media_type="image/png"),
    Content.from_error(message="no", error_code="E1", error_details="really"),
    Content.from_usage({"input_token_count": 10, "output_token_count": 20, "total_token_count": 30}),
    local,
    Content.from_function_call("call_4", "now", informational_only=True),
    Content.from_function_result("call_1", result="done"),
    Content.from_mcp_server_tool_call("call_2", "list", server_name="drive", arguments='{"path":"/"}'),
    Content.from_mcp_server_tool_result("call_2", output=[Content.from_text("a.txt")]),
    Content.from_function_approval_request(id="af-call-1", function_call=local),
    Content.from_function_approval_request(id="r2", function_call=labelled),
    Content.from_function_approval_request(id="r3", function_call=nameless),
    Content.from_function_approval_response(True, "af-call-1", local),
    Content.from_function_approval_response(False, "r2", labelled),
    Content.from_function_approval_response(False, "af-call-1", local, additional_properties={"tool_approval": {"reason": "over the limit"}}),
    Content.from_function_approval_response(True, "af-call-1", local, additional_properties={"tool_approval": {"always_approve": "tool"}}),
]
for content in same:
    for via in [(), ("dotnet",), ("go",), ("dotnet", "go")]:
        back = Content.from_dict(carry(content.to_dict(), *via))
        assert back == content, f"{via}:\n{content.to_dict()}\ncame back as\n{back.to_dict()}"

# What is unknown to assent stays as it is.
unknown = [
    Content.from_hosted_file("f1"), Content.from_hosted_vector_store("v1"), Content.from_oauth_consent_request("https://example.com/consent"),
    Content.from_code_interpreter_tool_call(call_id="c", inputs=[text]), Content.from_image_generation_tool_call(image_id="i"),
]
for content in unknown:
    assert carry(content.to_dict()) == content.to_dict()

# A sign-in that a service wants is one here, too.
consent = Content.from_oauth_consent_request("https://login.example/consent?flow=1")
assert consent.user_input_request and ask("consent", consent.to_dict()) == "login.example"
assert "expected a consent" in refused(ask, "consent", Content.from_oauth_consent_request("http://login.example/").to_dict())

# Outputs of MCP servers of any kind.
for output in [{"a": 1}, 5, True, [1, "x"], [{"a": 1}], []]:
    content = Content.from_mcp_server_tool_result("call_2", output=output)
    assert Content.from_dict(carry(content.to_dict())) == content, output

# Arguments as a mapping become their text, which says the same.
back = Content.from_dict(carry(approval.to_dict()))
assert back.function_call.parse_arguments() == call.parse_arguments() and back.function_call.hosted is False

# Hosted calls: whoever runs them stays, whichever way they are marked.
for via in [(), ("dotnet",), ("go",)]:
    asked = Content.from_dict(carry(about_hosted.to_dict(), *via)).function_call
    assert asked.hosted is True and asked.server_name == "drive", (via, asked.to_dict())
legacy = {**about_hosted.to_dict(), "function_call": {"type": "function_call", "call_id": "c", "name": "list", "additional_properties": {"server_label": "drive"}}}
assert Content.from_dict(carry(legacy)).function_call.hosted is True
history = Content.from_dict(carry(hosted.to_dict(), "dotnet"))
assert history.hosted is True and history.informational_only and history.server_name == "drive"
for members in [{"hosted": False, "additional_properties": {"server_label": "drive"}}, {"hosted": None},
                {"hosted": True, "server_name": "a", "additional_properties": {"server_label": "b"}}]:
    doubtful = {"type": "function_approval_request", "id": "r", "function_call": {"type": "function_call", "call_id": "c", "name": "list", **members}}
    assert "function_call" in refused(carry, doubtful)

# The page of the contract, line by line. The library refuses members that it doesn't know.
page = (root / "docs/contracts/contents.md").read_text()
blocks = re.findall(r"```json (python(?: \w+)*)\n(.*?)```", page, re.S)
known = set(list(inspect.signature(Content.__init__).parameters)[1:])
assert sorted(known) == sorted((root / "agent/content/testdata/python_members.txt").read_text().split()), "agent/content/testdata/python_members.txt is of another release"
counts = {"read": 0, "refused": 0}
for kind, lines in blocks:
    lines = [json.loads(line) for line in lines.strip().splitlines()]
    if "read" in kind.split():
        lines = lines[1::2]
    for line in lines:
        if "message" in kind.split():
            assert Message.from_dict(line).to_dict()["role"] == line["role"]
            counts["read"] += 1
        elif set(line) <= known:
            assert Content.from_dict(line).type == line["type"]
            counts["read"] += 1
        else:
            assert "unexpected keyword" in refused(Content.from_dict, line)
            counts["refused"] += 1
assert counts["refused"] == 3 and counts["read"] > 20, counts
print(f"{len(same)} contents of the library the same through four ways, {len(unknown)} unknown ones untouched; {counts['read']} lines of the page read, {counts['refused']} refused as it says")
