"""What agents are told: the sentences of every client of assent, word for word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assent import CallError, NotRun, Opened, Problem, ProblemError, Request, UnreachableError, told

ROWS = json.loads((Path(__file__).parents[3] / "client" / "testdata" / "texts.json").read_text())


def test_there_are_rows() -> None:
    assert len(ROWS) >= 35


@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
def test_text(row: dict[str, Any]) -> None:
    error: Exception
    if "problem" in row:
        error = ProblemError(Problem.model_validate(row["problem"]))
    else:
        opened = Opened.model_validate(row["opened"])
        error = NotRun(opened, Request.model_validate(row["request"]) if "request" in row else None)
        assert told(error) == row["text"]
    assert str(error) == row["text"]


def test_whatever_went_wrong_the_agent_is_told_that_nothing_ran() -> None:
    used = Problem(type="", title="used", status=409, code="consumed", next_action="none")
    for error in [UnreachableError("gone"), CallError("no JSON"), ProblemError(used), RuntimeError("oops"), KeyError()]:
        assert told(error).startswith("Not run")
    assert "oops" not in told(RuntimeError("oops"))  # a program's own error may hold what no model should read
