"""The engine in process: every recorded answer, and what happens when it breaks."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from desk_server import BIG, HERE, binary

from assent_client import AssentError, CallError, told, tool
from assent_client.engine import Engine, EngineError, Plan, files_of

RECORDED = Path(__file__).parents[2] / "wasm" / "testdata" / "answers.jsonl"


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine()


@pytest.fixture
def plan(engine: Engine) -> Iterator[Plan]:
    with engine.plan(files_of(HERE / "desk"), "agent.agf.yaml", policies=["policies"]) as made:
        yield made


def recorded() -> Iterator[tuple[str, str]]:
    """Requests with their answers, whose line breaks the record leaves out."""
    for line in RECORDED.read_text().splitlines():
        begin = len('{"request":')
        _, end = json.JSONDecoder().raw_decode(line, begin)
        yield line[begin:end], line[end + len(',"answer":') : -1]


def test_every_recorded_answer_byte_for_byte(engine: Engine) -> None:
    rows = list(recorded())
    assert len(rows) >= 20
    for request, answer in rows:
        assert engine.run(request).replace("\n", "") == answer


def test_calls_one_by_one_are_decided_as_together(engine: Engine) -> None:
    decided = 0
    for text, _ in recorded():
        request: dict[str, Any] = json.loads(text)
        given: dict[str, Any] = {name: request[name] for name in ("policies", "parents", "config") if name in request}
        if not request.get("calls"):
            continue
        try:
            plan = engine.plan(request["files"], request["agent"], **given)
        except EngineError:
            assert '"answer":[]' in engine.run(text)
            continue
        for line in filter(str.strip, request["calls"].splitlines()):
            assert f'"answer":[{plan.decide_text(line)}]' in engine.run({**request, "calls": line})
            decided += 1
        plan.close()
    assert decided > 60


def test_the_command_decides_alike(plan: Plan) -> None:
    calls = [tool("quote", {}), tool("trade", BIG), tool("wire", {}), tool("drop_table", {})]
    command = [binary(), "decide", "--agent", "agent.agf.yaml", "--policies", "policies"]
    lines = "".join(json.dumps(call) + "\n" for call in calls)
    ran = subprocess.run(command, cwd=HERE / "desk", input=lines, capture_output=True, text=True, check=True)
    assert [plan.decide_text(json.dumps(call)) for call in calls] == ran.stdout.splitlines()
    assert [plan.decide(call).outcome for call in calls] == ["allow", "ask", "deny", "deny"]


def test_files_that_make_no_plan(engine: Engine) -> None:
    with pytest.raises(EngineError, match=r"a\.agf\.yaml:1: "):
        engine.plan({"a.agf.yaml": "{"}, "a.agf.yaml")
    with pytest.raises(EngineError, match="none of the files"):
        engine.plan({}, "a.agf.yaml")


def test_whatever_is_no_decision_runs_nothing(engine: Engine, plan: Plan) -> None:
    with pytest.raises(CallError):
        plan.decide(tool("quote", '{"a": 1, "a": 2}'))
    assert json.loads(plan.decide_text("no JSON"))["outcome"] == "deny"
    with pytest.raises(EngineError, match="surrogates"):
        plan.decide_text('{"kind": "tool", "tool": "quote", "args": {"symbol": "\ud800"}}')
    plan.close()
    with pytest.raises(EngineError) as closed:
        plan.decide(tool("quote", {}))
    assert isinstance(closed.value, AssentError) and told(closed.value).startswith("Not run.")
    with pytest.raises(EngineError, match="no room"):
        engine.run(" " * (65 << 20))


def test_an_engine_that_breaks_is_started_again() -> None:
    engine = Engine(memory=128 << 20)
    plan = engine.plan(files_of(HERE / "desk"), "agent.agf.yaml", policies=["policies"])
    with pytest.raises(EngineError, match="broke off"):
        engine.run('{"kind": "lint", "files": {"a.yaml": "' + "a: 1 \\n" * 4_000_000 + '"}}')
    assert engine.starts == 2
    assert plan.decide(tool("trade", BIG)).outcome == "ask"


def test_threads_share_one_plan(plan: Plan) -> None:
    def outcome(amount: int) -> str:
        return plan.decide(tool("trade", {"amount": amount, "currency": "USD"})).outcome

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(outcome, [1, 20000] * 50)) == ["allow", "ask"] * 50
