"""What agents are told: the sentences of every client of assent, word for word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from assent_client import CallError, NotRun, Opened, Problem, ProblemError, Request, UnreachableError, told

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


def test_only_of_an_error_of_this_package_the_agent_is_told_that_nothing_ran() -> None:
    used = Problem(type="", title="used", status=409, code="consumed", next_action="none")
    for error in [UnreachableError("gone"), CallError("no JSON"), ProblemError(used)]:
        assert told(error).startswith("Not run")
    for other in [RuntimeError("oops"), KeyError("oops"), KeyboardInterrupt("oops")]:
        assert (
            told(other) == f"It failed ({type(other).__name__}), and it may have run. Find out before you try it again."
        )
