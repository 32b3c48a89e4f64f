"""An agent whose tools ask: a scripted model makes three calls in one turn, and is told what became of each.

Run it beside a server that has tests/desk, with ASSENT_SERVER and ASSENT_TOKEN, and answer in the inbox.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any

import assent_client as assent

SESSION = "s-1"
TURN: list[tuple[str, str, dict[str, Any]]] = [
    ("call_1", "quote", {"symbol": "ACME"}),
    ("call_2", "trade", {"symbol": "ACME", "amount": 20000}),
    ("call_3", "drop_table", {"name": "trades"}),
]


async def quote(symbol: str) -> str:
    return f"{symbol} is at 150.25"


async def trade(symbol: str, amount: int) -> str:
    return f"bought {amount} of {symbol}"


async def drop_table(name: str) -> str:
    return f"{name} is gone"


TOOLS: dict[str, Callable[..., Awaitable[str]]] = {"quote": quote, "trade": trade, "drop_table": drop_table}


async def answer(client: assent.AsyncClient, id: str, name: str, args: dict[str, Any]) -> str:
    """What the model is told about one of its calls."""
    call = assent.tool(name, args, session=SESSION)
    try:
        taken = await client.take("desk", call, key=assent.key_of(SESSION, id))
    except Exception as e:
        return assent.told(e)
    return await TOOLS[name](**taken.args)


async def main() -> None:
    async with assent.AsyncClient(os.environ["ASSENT_SERVER"], os.environ["ASSENT_TOKEN"]) as client:
        answers = await asyncio.gather(*(answer(client, *each) for each in TURN))
        for (id, name, _), text in zip(TURN, answers, strict=True):
            print(f"{id} {name}: {text}")


if __name__ == "__main__":
    asyncio.run(main())
