"""Functions that are tools."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import pytest
from desk_server import Beside, Desk

from assent import AsyncClient, CallError, Client, NotRun, guard, told, tool


def test_a_tool_runs_with_what_was_approved(desk: Desk, client: Client) -> None:
    @guard(client, "desk", session="s-1", key=lambda amount, currency: f"s-1/{amount}")
    def trade(amount: int, currency: str = "USD") -> str:
        """Buys."""
        return f"{amount} {currency}"

    assert (trade.__name__, trade.__doc__) == ("trade", "Buys.")
    assert trade(5) == "5 USD"
    waits = Beside(lambda: trade(20000, currency="EUR"))
    request = desk.waiting()[0]
    assert request["revisions"][0]["call"]["args"] == '{"amount": 20000, "currency": "EUR"}'
    assert request["revisions"][0]["call"]["session"] == "s-1"
    desk.edit('{"amount": 15000}', request)
    assert waits.done() == "15000 USD"
    with pytest.raises(NotRun, match="Not run again"):
        trade(20000, currency="EUR")


def test_a_tool_that_is_denied_does_not_run(desk: Desk, client: Client) -> None:
    ran: list[str] = []

    @guard(client, "desk", "drop_table")
    def drop(name: str) -> None:
        ran.append(name)

    with pytest.raises(NotRun, match="Dropping tables is not delegated"):
        drop("users")
    with pytest.raises(CallError, match=r"drop_table can't be called with this: .*'name'"):
        drop()  # type: ignore[call-arg]
    assert ran == []


def test_an_edit_that_the_tool_does_not_take_leaves_the_permit(desk: Desk, client: Client) -> None:
    @guard(client, "desk")
    def trade(amount: int) -> int:
        return amount

    waits = Beside(lambda: trade(20000))
    desk.edit('{"amount": 15000, "note": "x"}')
    with pytest.raises(CallError, match="trade can't be called with what was approved"):
        waits.done()
    assert desk.api("GET", "/v1/requests?state=approved", desk.mara)["total"] == 1


def test_a_coroutine_is_a_tool_too(desk: Desk) -> None:
    async def main() -> None:
        async with AsyncClient(desk.url, desk.runtime) as client:

            @guard(client, "desk")
            async def trade(amount: int) -> int:
                return amount

            waits = asyncio.create_task(trade(20000))
            await asyncio.to_thread(desk.edit, '{"amount": 12000}')
            assert await waits == 12000

    asyncio.run(main())


@dataclass(frozen=True)
class Frozen(Exception):
    why: str = "oops"


def test_of_a_function_that_ran_the_model_is_never_told_that_it_did_not(desk: Desk, client: Client) -> None:
    @guard(client, "desk", "drop_table")
    def inner() -> None: ...

    def raising(error: BaseException | None) -> Callable[[], None]:
        def quote() -> None:
            if error is None:
                inner()
            else:
                raise error

        return quote

    for error in (TimeoutError("oops"), Frozen(), CallError("oops"), KeyboardInterrupt("oops"), None):
        run = raising(error)
        for act in (guard(client, "desk")(run), lambda run=run: client.do("desk", tool("quote", {}), lambda _: run())):
            with pytest.raises(BaseException) as raised:
                act()
            assert told(raised.value).startswith(f"It ran and failed ({type(raised.value).__name__}).")

    for early in ({"key": lambda: 1 / 0}, {"accept": lambda _: 1 / 0}):
        with pytest.raises(ZeroDivisionError) as before:
            guard(client, "desk", "quote", **cast(Any, early))(inner)()
        assert told(before.value).startswith("Not run. ")


def test_what_can_not_be_guarded(client: Client) -> None:
    def many(*amounts: int) -> None: ...
    def any_of(**more: Any) -> None: ...
    async def later(amount: int) -> None: ...

    for function in (many, any_of, later):
        with pytest.raises(CallError, match="guard: "):
            guard(client, "desk")(cast(Any, function))
