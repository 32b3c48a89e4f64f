"""Measures the engine in process: python dev/measure.py, where assent-client[engine] is installed."""

from __future__ import annotations

import json
import time
import timeit
from functools import partial
from importlib.resources import files
from pathlib import Path

from assent_client.engine import Engine, files_of

DESK = Path(__file__).resolve().parents[3] / "examples" / "trading-desk"
CALLS = 500  # of which the best of 20 rounds counts


def main() -> None:
    size = len((files("assent_client") / "engine.wasm").read_bytes())
    print(f"module: {size / 1e6:.1f} MB")
    for _ in range(2):
        began = time.perf_counter()
        engine = Engine()
        print(f"load: {time.perf_counter() - began:.2f} s")
    began = time.perf_counter()
    plan = engine.plan(files_of(DESK), "agent.agf.yaml", policies=["policies"])
    print(f"plan: {(time.perf_counter() - began) * 1e3:.1f} ms")
    for line in (DESK / "calls.jsonl").read_text().splitlines()[:7:6]:
        best = min(timeit.repeat(partial(plan.decide_text, line), number=CALLS, repeat=20)) / CALLS
        print(f"{json.loads(plan.decide_text(line))['outcome']}: {best * 1e6:.0f} µs a call")


if __name__ == "__main__":
    main()
