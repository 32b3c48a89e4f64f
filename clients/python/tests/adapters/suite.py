"""The cases that every adapter passes, with the real framework and its scripted model, against a real server.

A test class of an adapter is a Suite with a framework. Every case has a number; table.py keeps the page of them.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import httpx
import pytest
from desk_server import Beside, Desk
from test_example import answers

from assent_client import AsyncClient, Options

QUICK = Options(attempts=2, pause=0.01)
SESSION = "s-1"
BIG = '{"amount": 20000, "currency": "USD"}'


@dataclass
class Turn:
    """What became of the calls of one turn."""

    told: dict[str, str] = field(default_factory=dict)  # what the model was told, by the call's id
    ran: list[tuple[str, dict[str, Any]]] = field(default_factory=list)  # tools with their arguments
    waits: Any = None  # where the turn is not over: what the framework goes on with


@dataclass(frozen=True)
class Made:
    """A call of the scripted model."""

    tool: str
    args: str
    id: str = "call_1"


def tools_of(turn: Turn) -> list[Callable[..., Any]]:
    """The desk's tools: functions, one of which is a coroutine's, that tell the turn with what they ran."""

    async def quote(symbol: str = "ACME") -> str:
        """Says a price."""
        turn.ran.append(("quote", {"symbol": symbol}))
        return "quote ran"

    def trade(amount: Any, currency: str = "USD", note: Any = None) -> str:
        """Buys."""
        args = {"amount": amount, "currency": currency} | ({"note": note} if note is not None else {})
        turn.ran.append(("trade", args))
        return "trade ran"

    def hurry() -> str:
        """Hurries."""
        turn.ran.append(("hurry", {}))
        return "hurry ran"

    def drop_table() -> str:
        """Drops a table."""
        turn.ran.append(("drop_table", {}))
        return "drop_table ran"

    return [quote, trade, hurry, drop_table]


class Framework(Protocol):
    product: str

    async def turn(self, client: AsyncClient, calls: list[Made], session: str, wait: float | None = None) -> Turn:
        """A model makes these calls in one turn, is told what became of them, and ends."""

    async def resume(self, client: AsyncClient, waits: Any, calls: list[Made], forge: str | None = None) -> Turn:
        """Goes on with a turn in which people were still asked. With forge, traffic approves these arguments."""


class Steps(httpx.AsyncHTTPTransport):
    """Calls before and after each exchange of a step: open, wait, consume."""

    def __init__(self, before: Mapping[str, Callable[[], None]], after: Mapping[str, Callable[[], None]]) -> None:
        super().__init__()
        self.before, self.after = before, after

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        name = request.url.path.rsplit("/", 1)[-1]
        step = {"requests": "open", "consume": "consume"}.get(name, "wait")
        self.before.get(step, lambda: None)()
        response = await super().handle_async_request(request)
        self.after.get(step, lambda: None)()
        return response


class Suite:
    framework: Framework
    hears_of_edits = True  # whether the line about an edit is in the tool's result
    cells: Mapping[str, str] = {}  # what the page says of cases that the framework makes other ones, by their numbers

    def turn(self, desk: Desk, *calls: Made, session: str = SESSION, **more: Any) -> Beside:
        return Beside(lambda: self.now(desk, *calls, session=session, **more))

    def now(
        self, desk: Desk, *calls: Made, session: str = SESSION, steps: Steps | None = None, wait: float | None = None
    ) -> Turn:
        def act(client: AsyncClient) -> Coroutine[Any, Any, Turn]:
            return self.framework.turn(client, list(calls), session, wait)

        return self.with_client(desk, act, steps)

    def with_client(
        self, desk: Desk, act: Callable[[AsyncClient], Coroutine[Any, Any, Turn]], steps: Steps | None = None
    ) -> Turn:
        async def main() -> Turn:
            http = httpx.AsyncClient(transport=steps or Steps({}, {}))
            async with AsyncClient(desk.url, desk.runtime, http=http, options=QUICK) as client:
                return await act(client)

        return asyncio.run(main())

    def test_01_allowed(self, desk: Desk) -> None:
        turn = self.now(desk, Made("quote", '{"symbol": "ACME"}'))
        assert turn.ran == [("quote", {"symbol": "ACME"})]
        assert turn.told == {"call_1": "quote ran"}
        assert desk.api("GET", "/v1/requests", desk.mara)["total"] == 0

    def test_02_granted(self, desk: Desk) -> None:
        waits = self.turn(desk, Made("trade", BIG))
        desk.vote("approve", grant={"max_uses": 3})
        assert len(waits.done().ran) == 1
        again = self.now(desk, Made("trade", BIG, "call_2"))
        assert again.ran == [("trade", {"amount": 20000, "currency": "USD"})]
        assert desk.api("GET", "/v1/requests", desk.mara)["total"] == 1

    def test_03_denied_by_policy(self, desk: Desk) -> None:
        turn = self.now(desk, Made("drop_table", "{}"))
        self.denied(turn, "Not run. Policy denies this call: Dropping tables is not delegated to agents.")

    def test_04_denied_by_a_person(self, desk: Desk) -> None:
        waits = self.turn(desk, Made("trade", BIG))
        desk.vote("deny", reason="not from this branch")
        self.denied(
            waits.done(), "Not run. mara@example.com denied this call: not from this branch. Do not try it again."
        )

    def test_05_answered_instead(self, desk: Desk) -> None:
        waits = self.turn(desk, Made("trade", BIG))
        desk.vote("respond", response="Use the copy.")
        self.denied(waits.done(), "Not run. A person answered instead: Use the copy.")

    def test_06_edited(self, desk: Desk) -> None:
        waits = self.turn(desk, Made("trade", BIG))
        desk.edit('{"note": {"z": 9007199254740993, "a": 2.50}, "amount": 15000}')
        turn = waits.done()
        assert [(name, args["amount"], args["note"]) for name, args in turn.ran] == [
            ("trade", 15000, {"z": 9007199254740993, "a": 2.5})
        ]
        assert list(turn.ran[0][1]["note"]) == ["z", "a"]
        assert "trade ran" in turn.told["call_1"]
        told = turn.told["call_1"].replace("\\", "")
        assert self.hears_of_edits is False or told.count("A person changed this call before it ran. It ran with:") == 1
        assert self.hears_of_edits is False or '"amount": 15000}' in told

    def test_07_edit_that_the_rules_deny(self, desk: Desk) -> None:
        waits = self.turn(desk, Made("trade", BIG))
        request = desk.waiting()[0]
        with pytest.raises(AssertionError, match="edit_denied"):
            desk.edit('{"amount": 1, "Amount": 2}', request)
        desk.vote("deny", request, reason="no")
        self.denied(waits.done(), "Not run. mara@example.com denied this call: no. Do not try it again.")

    def test_08_expired(self, desk: Desk) -> None:
        self.denied(self.now(desk, Made("hurry", "{}")), "Not run. Nobody decided about this call in time (until ")

    def test_09_taken_back(self, desk: Desk) -> None:
        waits = self.turn(desk, Made("trade", BIG))
        request = desk.waiting()[0]
        desk.api("POST", f"/v1/requests/{request['id']}/cancel", desk.runtime, {"reason": "the run was stopped"})
        self.denied(waits.done(), "Not run. The request was taken back: the run was stopped.")

    def test_10_frozen_while_pending(self, desk: Desk) -> None:
        waits = self.turn(desk, Made("trade", BIG))
        request = desk.waiting()[0]
        desk.freeze()
        desk.vote("approve", request)
        self.denied(waits.done(), "Not run. The agent is frozen by its operators. Do not try it again.")

    @pytest.mark.parametrize("step", ["open", "wait", "consume"])
    def test_11_server_down(self, desk: Desk, step: str) -> None:
        waits = self.turn(desk, Made("trade", BIG), steps=Steps({step: desk.kill}, {}))
        if step == "consume":
            with suppress(httpx.TransportError):  # the server may be gone before it has answered the vote
                desk.vote("approve")
        self.denied(waits.done(), "Not run. It could not be established that this call may run: POST /v1/", "GET /v1/")

    def test_12_killed_before_the_permit_is_used(self, desk: Desk) -> None:
        child = self.child(desk, "before")
        request = desk.waiting()[0]
        desk.vote("approve", request)
        assert child.done() == 9
        turn = self.now(desk, Made("trade", BIG))
        assert turn.ran == [("trade", {"amount": 20000, "currency": "USD"})]
        assert desk.api("GET", "/v1/requests", desk.mara)["total"] == 1

    def test_12_killed_before_the_run(self, desk: Desk) -> None:
        child = self.child(desk, "after")
        desk.vote("approve")
        assert child.done() == 9
        self.denied(self.now(desk, Made("trade", BIG)), "Not run again. The approval has been used already.")

    def test_13_the_same_call_twice(self, desk: Desk) -> None:
        waits = self.turn(desk, Made("trade", BIG))
        desk.vote("approve")
        assert len(waits.done().ran) == 1
        self.denied(self.now(desk, Made("trade", BIG)), "Not run again. The approval has been used already.")
        turn = self.now(desk, Made("trade", '{"amount": 30000}'))
        assert turn.ran == [] and "key_reuse" in turn.told["call_1"]

    def test_14_two_calls_of_one_turn(self, desk: Desk) -> None:
        waits = self.turn(desk, Made("trade", BIG), Made("trade", '{"amount": 30000}', "call_2"))
        for request in desk.waiting(2):
            big = json.loads(request["revisions"][0]["call"]["args"])["amount"] == 20000
            desk.vote("approve" if big else "deny", request, **({} if big else {"reason": "too much"}))
        turn = waits.done()
        assert turn.ran == [("trade", {"amount": 20000, "currency": "USD"})]
        assert turn.told["call_1"] == "trade ran"
        assert turn.told["call_2"].startswith("Not run. mara@example.com denied this call: too much.")

    def test_15_forged_approval(self, desk: Desk) -> None:
        turn = self.now(desk, Made("trade", BIG), wait=0.1)
        assert turn.waits is not None and turn.ran == []
        forged = self.goes_on(desk, turn, BIG)
        assert forged.ran == []
        assert forged.waits is not None or forged.told["call_1"].startswith("Not run.")
        forged = self.goes_on(desk, turn, '{"amount": 99999}')
        assert forged.ran == []
        assert desk.api("GET", "/v1/requests?state=pending", desk.mara)["total"] >= 1

    def test_15_people_answer_after_the_process_has_ended(self, desk: Desk) -> None:
        turn = self.now(desk, Made("trade", BIG), wait=0.1)
        desk.vote("approve")
        assert self.goes_on(desk, turn).ran == [("trade", {"amount": 20000, "currency": "USD"})]
        turn = self.now(desk, Made("trade", '{"amount": 40000}', "call_2"), wait=0.1)
        desk.vote("deny", reason="no")
        denied = self.goes_on(desk, turn, call=Made("trade", '{"amount": 40000}', "call_2"))
        assert denied.ran == [] and denied.told["call_2"].startswith("Not run. mara@example.com denied")

    @pytest.mark.parametrize(
        "args", ['{"amount": 1, "amount": 20000}', '{"amount": NaN}', '{"amount": 1, "note": "\\ud800"}']
    )
    def test_16_arguments_that_can_be_read_in_two_ways(self, desk: Desk, args: str) -> None:
        turn = self.now(desk, Made("trade", args))
        assert turn.ran == []
        assert desk.api("GET", "/v1/requests", desk.mara)["total"] == 0

    def test_16_numbers_that_no_float_holds(self, desk: Desk) -> None:
        waits = self.turn(desk, Made("trade", '{"amount": 9007199254740993}'))
        assert '{"amount": 9007199254740993' in desk.waiting()[0]["revisions"][0]["call"]["args"]
        desk.vote("approve")
        assert waits.done().ran[0][1]["amount"] == 9007199254740993

    def test_the_example(self, desk: Desk) -> None:
        answers(desk, f"desk_{type(self).__module__.removeprefix('test_')}.py")

    def goes_on(self, desk: Desk, turn: Turn, forge: str | None = None, call: Made | None = None) -> Turn:
        calls = [call or Made("trade", BIG)]
        return self.with_client(desk, lambda client: self.framework.resume(client, turn.waits, calls, forge))

    def denied(self, turn: Turn, *begins: str) -> None:
        """Nothing ran, and the model was told why, in words that begin as one of these."""
        assert turn.ran == []
        told = turn.told["call_1"]
        assert told.startswith(begins[0]) or any(each in told and told.startswith("Not run.") for each in begins[1:]), (
            told
        )

    def child(self, desk: Desk, when: str) -> Beside:
        """The same turn in a process of its own, which is killed before or after the permit is used."""
        here = Path(__file__).parent
        path = os.pathsep.join([str(here), str(here.parent), os.environ.get("PYTHONPATH", "")])
        env = {**os.environ, "PYTHONPATH": path, "ASSENT_SERVER": desk.url, "ASSENT_TOKEN": desk.runtime}
        command = [sys.executable, str(here / "child.py"), type(self).__module__, when]

        def run() -> int:
            child = subprocess.Popen(command, env=env, start_new_session=True)
            code = child.wait()
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)  # what the framework started, and left behind
            return code

        return Beside(run)


class ReadingSuite(Suite):
    """The suite of a framework whose tools have schemas, by which the adapter reads calls."""

    def test_people_see_defaults(self, desk: Desk) -> None:
        waits = self.turn(desk, Made("trade", '{"amount": 20000}'))
        shown = json.loads(desk.waiting()[0]["revisions"][0]["call"]["args"])
        assert shown == {"amount": 20000, "currency": "USD", **({"note": None} if "note" in shown else {})}
        desk.vote("approve")
        assert waits.done().ran == [("trade", {"amount": 20000, "currency": "USD"})]

    def test_people_are_not_asked_about_a_call_that_can_not_run(self, desk: Desk) -> None:
        turn = self.now(desk, Made("trade", '{"currency": "EUR"}'))
        assert turn.ran == [] and "amount" in turn.told["call_1"]
        assert desk.api("GET", "/v1/requests", desk.mara)["total"] == 0


class SchemaSuite(ReadingSuite):
    """The suite of a framework by whose schemas the adapter also reads edits."""

    @pytest.mark.parametrize("edit", ['{"currency": "USD"}', '{"amount": 1, "other": 2}'])
    def test_an_edit_that_the_tool_does_not_take(self, desk: Desk, edit: str) -> None:
        waits = self.turn(desk, Made("trade", BIG))
        desk.edit(edit)
        refused = "Not run. It could not be established that this call may run: trade can't be called with this: "
        self.denied(waits.done(), refused)
        assert desk.api("GET", "/v1/requests?state=approved", desk.mara)["total"] == 1
