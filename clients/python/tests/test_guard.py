"""Functions that are tools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pytest
from desk_server import Beside, Desk, until
from pydantic import BaseModel, SecretStr

from assent_client import AsyncClient, CallError, Client, MisuseError, NotRun, guard, told, tool


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
    def several(amount: int) -> Any:
        yield amount

    async def several_later(amount: int) -> Any:
        yield amount

    for function in (many, any_of, later, several, several_later, staticmethod(later), Order):
        with pytest.raises(CallError, match="guard: "):
            guard(client, "desk")(cast(Any, function))


class Order(BaseModel):
    symbol: str
    limit: Decimal = Decimal("1.10")


@dataclass
class Note:
    text: str
    lines: tuple[str, ...] = ("a",)


def test_arguments_of_a_functions_own_types_come_back_as_they_were_shown(desk: Desk, client: Client) -> None:
    @guard(client, "desk", "quote", ask="look at it")
    def trade(
        amount: Decimal, at: datetime, order: Order, note: Note, path: Path, data: bytes, ids: tuple[int, ...] = (1, 2)
    ) -> Any:
        return amount, at, order, note, path, data

    at = datetime(2026, 11, 28, 12, 30, tzinfo=timezone.utc)
    given = (Decimal("20000.10"), at, Order(symbol="ACME"), Note("x"), Path("/srv/a"), b"\xff")
    waits = Beside(lambda: trade(*given))
    shown = json.loads(desk.waiting()[0]["revisions"][0]["call"]["args"])
    assert shown["order"] == {"symbol": "ACME", "limit": "1.10"} and shown["ids"] == [1, 2]
    desk.vote("approve")
    assert waits.done() == given
    for place, wrong in ((1, "noon"), (2, {"limit": "1"})):
        with pytest.raises(CallError, match=r"can't be called with this: (at|order): "):
            trade(*cast(Any, [*given[:place], wrong, *given[place + 1 :]]))


def test_what_would_come_back_as_something_else_is_not_presented(desk: Desk, client: Client) -> None:
    @guard(client, "desk")
    def quote(symbol: SecretStr) -> None: ...

    @guard(client, "desk")
    def trade(amount) -> Any:  # type: ignore[no-untyped-def]
        return amount

    with pytest.raises(CallError, match="would not come back"):
        quote(SecretStr("x"))
    with pytest.raises(CallError, match="expected what JSON can hold"):
        trade(Decimal("1"))


def test_the_object_of_a_method_is_no_argument(desk: Desk, client: Client) -> None:
    class Broker:
        def __init__(self) -> None:
            self.sum = 0

        @guard(client, "desk")
        def trade(self, amount: int) -> int:
            self.sum += amount
            return self.sum

        @classmethod
        @guard(client, "desk", "quote")
        def quote(cls, symbol: str) -> str:
            return f"{cls.__name__} {symbol}"

        @staticmethod
        @guard(client, "desk", "quote")
        def other(symbol: str) -> str:
            return symbol

    broker = Broker()
    waits = Beside(lambda: broker.trade(20000))
    assert desk.waiting()[0]["revisions"][0]["call"]["args"] == '{"amount": 20000}'
    desk.edit('{"amount": 15000}')
    assert (waits.done(), broker.trade(5)) == (15000, 15005)
    assert (broker.quote("A"), Broker.quote(symbol="B"), broker.other("C")) == ("Broker A", "Broker B", "C")


def test_equal_calls_without_a_key_run_once_each(desk: Desk, client: Client) -> None:
    ran: list[int] = []

    @guard(client, "desk")
    def trade(amount: int) -> None:
        ran.append(amount)

    both = [Beside(lambda: trade(20000)) for _ in range(2)]
    for count in (1, 2):
        desk.vote("approve")
        until(lambda count=count: len(ran) >= count, "it does not run")  # type: ignore[misc]
    for each in both:
        each.done()
    assert ran == [20000, 20000]


def test_a_client_of_another_loop_is_the_developers_error(desk: Desk) -> None:
    client = AsyncClient(desk.url, desk.runtime)
    asyncio.run(client.decide("desk", tool("quote", {})))
    with pytest.raises(MisuseError, match="the loop of its first call") as raised:
        asyncio.run(client.decide("desk", tool("quote", {})))
    with pytest.raises(MisuseError):
        told(raised.value)
