"""The examples as processes: one turn of a model with three calls, of which one is edited and one denied."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from desk_server import Beside, Desk

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_one_turn_with_three_answers(desk: Desk) -> None:
    answers(desk, "desk.py")


def answers(desk: Desk, name: str) -> None:
    env = {**os.environ, "ASSENT_SERVER": desk.url, "ASSENT_TOKEN": desk.runtime}
    command = [sys.executable, str(EXAMPLES / name)]
    runs = Beside(lambda: subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout)
    desk.edit('{"symbol": "ACME", "amount": 15000}')
    printed = re.sub(r"A person changed this call before it ran. It ran with: {[^}]*}\n", "", runs.done())
    assert sorted(printed.splitlines()) == [
        "call_1 quote: ACME is at 150.25",
        "call_2 trade: bought 15000 of ACME",
        "call_3 drop_table: Not run. Policy denies this call: Dropping tables is not delegated to agents. "
        "Do not try it again.",
    ]
