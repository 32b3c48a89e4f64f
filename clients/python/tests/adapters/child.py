"""One gated call in a process that is killed before or after it uses the permit: child.py MODULE before|after."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys

import httpx
from suite import BIG, SESSION, Framework, Made, Steps

from assent_client import AsyncClient


async def main(framework: Framework, when: str) -> None:
    die = {"consume": lambda: os._exit(9)}
    http = httpx.AsyncClient(transport=Steps(die, {}) if when == "before" else Steps({}, die))
    async with AsyncClient(os.environ["ASSENT_SERVER"], os.environ["ASSENT_TOKEN"], http=http) as client:
        await framework.turn(client, [Made("trade", BIG)], SESSION)


if __name__ == "__main__":
    asyncio.run(main(importlib.import_module(sys.argv[1]).FRAMEWORK, sys.argv[2]))
