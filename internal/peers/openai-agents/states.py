"""Agents of the SDK with a scripted model: what assent reads in a saved state is what the SDK asks, and its answers decide what runs."""

import asyncio
import json
import subprocess
import sys

from agents import Agent, HostedMCPTool, Runner, RunState, function_tool, set_tracing_disabled
from agents.items import ModelResponse
from agents.models.interface import Model
from agents.usage import Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from openai.types.responses.response_output_item import McpApprovalRequest

set_tracing_disabled(True)
process = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
ran = []


def probe(**line):
    print(json.dumps(line), file=process.stdin, flush=True)
    answer = json.loads(process.stdout.readline())
    assert "error" not in answer, answer
    return answer["out"]


class Scripted(Model):
    def __init__(self, *turns):
        self.turns, self.given = list(turns), []

    async def get_response(self, system_instructions, input, *args, **kwargs):
        self.given.append(input)
        return ModelResponse(output=self.turns.pop(0), usage=Usage(), response_id=None)

    def stream_response(self, *args, **kwargs):
        raise NotImplementedError


def call(id, name, arguments):
    return ResponseFunctionToolCall(type="function_call", id="fc_" + id, call_id=id, name=name, arguments=json.dumps(arguments))


def says(text):
    part = ResponseOutputText(type="output_text", text=text, annotations=[])
    return ResponseOutputMessage(type="message", id="m", role="assistant", status="completed", content=[part])


@function_tool(needs_approval=True)
def transfer(amount: float, to: str) -> str:
    ran.append((amount, to))
    return "done"


def bank():
    desk = Agent(name="desk", tools=[transfer], model=Scripted([call("c2", "transfer", {"amount": 7, "to": "eve"})], [says("Settled.")]))
    drive = HostedMCPTool(tool_config={"type": "mcp", "server_label": "drive", "server_url": "https://drive.example/mcp", "require_approval": "always"})
    ask = McpApprovalRequest(type="mcp_approval_request", id="mcpr_1", name="list", arguments='{"path":"/"}', server_label="drive")
    model = Scripted([call("c1", "transfer", {"amount": 5.5, "to": "Zoë \u2028"}), call("c3", "ask_desk", {"input": "pay"}), ask], [says("Done.")])
    return Agent(name="bank", model=model, tools=[transfer, desk.as_tool("ask_desk", "asks"), drive])


def named(raw):
    """The id under which assent asks."""
    raw = raw if isinstance(raw, dict) else raw.model_dump()
    return raw["id"] if raw["type"] == "mcp_approval_request" else raw["call_id"]


async def asked(agent):
    """A run that stops, and what assent reads in its state, after the state was text."""
    result = await Runner.run(agent, "Pay.")
    saved = result.to_state().to_string()
    requests = probe(do="interruptions", content=json.loads(saved))
    state = await RunState.from_string(agent, saved)
    items = {named(item.raw_item): item for item in state.get_interruptions()}
    return state, requests, items


async def main():
    for approves in [("c1", "c2", "mcpr_1"), ("c2",), ()]:
        ran.clear()
        agent = bank()
        state, requests, items = await asked(agent)
        assert sorted(r["requestId"] for r in requests) == sorted(items) == ["c1", "c2", "mcpr_1"], requests
        for r in requests:
            item, shown = items[r["requestId"]], r["toolCall"]
            assert shown["name"] == item.name and shown["arguments"] == json.loads(item.arguments), (shown, item)
            assert r.get("additionalProperties", {}).get("assent", {}).get("agent", "bank") == item.agent.name
            how = "approve" if r["requestId"] in approves else "reject"
            answer = probe(do="answer", shapes=["dotnet"], content=r, how=how, reason="not today")
            assert answer["requestId"] == r["requestId"]
            if answer["approved"]:
                state.approve(item)
            else:
                state.reject(item, rejection_message=answer["reason"])
        result = await Runner.run(agent, state)
        assert not result.interruptions and result.final_output == "Done.", result.interruptions
        assert sorted(ran) == sorted({"c1": (5.5, "Zoë \u2028"), "c2": (7, "eve")}[id] for id in approves if id != "mcpr_1"), ran
        told = json.dumps(agent.model.given[-1], default=str)
        assert ("not today" in told) == ("c1" not in approves), told
    print("3 states with 3 interruptions each are read as the SDK asks, and run as the answers say")


asyncio.run(main())
