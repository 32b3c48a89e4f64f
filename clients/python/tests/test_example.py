"""examples/desk.py as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from desk_server import Beside, Desk

EXAMPLE = Path(__file__).parents[1] / "examples" / "desk.py"


def test_one_turn_with_three_answers(desk: Desk) -> None:
    env = {**os.environ, "ASSENT_SERVER": desk.url, "ASSENT_TOKEN": desk.runtime}

    def run() -> str:
        return subprocess.run(
            [sys.executable, str(EXAMPLE)], env=env, check=True, capture_output=True, text=True
        ).stdout

    runs = Beside(run)
    desk.edit('{"symbol": "ACME", "amount": 15000}')
    assert runs.done().splitlines() == [
        "call_1 quote: ACME is at 150.25",
        "call_2 trade: bought 15000 of ACME",
        "call_3 drop_table: Not run. Policy denies this call: Dropping tables is not delegated to agents. "
        "Do not try it again.",
    ]
