"""The whole way of a call, against a real server."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import httpx
import pytest
from desk_server import BIG, Beside, Desk, until

import assent_client as assent
from assent_client import (
    AsyncClient,
    CallError,
    Client,
    NotRun,
    Options,
    ProblemError,
    StillPending,
    UnreachableError,
    key_of,
    tool,
)

QUICK = Options(attempts=3, pause=0.01, max_pause=0.05)


def taking(client: Client, call: Any = None, **asking: Any) -> Beside:
    return Beside(lambda: client.take("desk", call or tool("trade", BIG), **asking))


def test_decide_asks_nobody(desk: Desk, client: Client) -> None:
    assert client.decide("desk", tool("quote", {})).outcome == "allow"
    assert client.decide("desk", tool("trade", BIG)).outcome == "ask"
    denied = client.decide("desk", tool("wire", {}))
    assert (denied.outcome, denied.reasons[0].code) == ("deny", "not_declared")


def test_allowed_runs_at_once_with_what_was_sent(desk: Desk, client: Client) -> None:
    ran: list[Any] = []
    client.do("desk", tool("quote", '{"b": 1.50, "a": 9007199254740993}'), ran.append)
    assert ran == [{"b": 1.5, "a": 9007199254740993}]
    assert client.take("desk", tool("quote", '{"b": 1.50}')).text == '{"b": 1.50}'


def test_arguments_that_change_while_they_are_decided_run_as_they_were(desk: Desk) -> None:
    args = {"symbol": "ACME"}
    http = httpx.Client(event_hooks={"response": [lambda _: args.update(symbol="OTHER")]})
    with Client(desk.url, desk.runtime, http=http) as client:
        assert client.take("desk", tool("quote", args)).args == {"symbol": "ACME"}


def test_what_accept_makes_of_arguments_does_not_run(client: Client) -> None:
    taken = client.take("desk", tool("quote", {"symbol": "ACME"}), accept=lambda args: args.update(symbol="OTHER"))
    assert (taken.args, taken.text) == ({"symbol": "ACME"}, '{"symbol": "ACME"}')


def test_no_time_for_people_is_not_all_the_time_there_is(client: Client) -> None:
    with pytest.raises(ProblemError, match="within"):
        client.open("desk", tool("trade", BIG), within=timedelta(0))


def test_an_empty_key_is_none_of_a_model_call(client: Client) -> None:
    with pytest.raises(ProblemError, match="Idempotency-Key"):
        client.open("desk", tool("trade", BIG), key="")


def test_approved_runs_once(desk: Desk, client: Client) -> None:
    key = key_of("s-1", "call_1")
    waits = taking(client, key=key)
    desk.vote("approve")
    taken = waits.done()
    assert (taken.args, taken.edited, taken.request.state) == (BIG, False, "consumed")
    with pytest.raises(NotRun, match=r"^Not run again\. The approval has been used already\.$"):
        client.take("desk", tool("trade", BIG), key=key)


def test_denied_tells_who_and_why(desk: Desk, client: Client) -> None:
    waits = taking(client)
    desk.vote("deny", reason="not from this branch")
    with pytest.raises(
        NotRun, match=r"^Not run\. mara@example\.com denied this call: not from this branch\. Do not try it"
    ):
        waits.done()
    with pytest.raises(NotRun, match="A person has just denied this same call"):
        client.take("desk", tool("trade", BIG))


def test_answered_instead(desk: Desk, client: Client) -> None:
    waits = taking(client)
    desk.vote("respond", response="Use the copy.")
    with pytest.raises(NotRun, match=r"^Not run\. A person answered instead: Use the copy\.$"):
        waits.done()


def test_policy_denies(desk: Desk, client: Client) -> None:
    with pytest.raises(NotRun, match="Policy denies this call: Dropping tables is not delegated"):
        client.take("desk", tool("drop_table", {}))


def test_runs_what_the_approver_edited(desk: Desk, client: Client) -> None:
    waits = taking(client)
    desk.edit('{"currency": "USD", "amount": 15000.50}')
    taken = waits.done()
    assert taken.text == '{"currency": "USD", "amount": 15000.50}'
    assert taken.edited and list(taken.args) == ["currency", "amount"]


def test_an_edit_that_can_not_be_run_is_not_taken(desk: Desk, client: Client) -> None:
    def accept(args: dict[str, Any]) -> None:
        if "note" in args:
            raise CallError("the tool has no note")

    waits = taking(client, accept=accept)
    desk.edit('{"amount": 15000, "note": "x"}')
    with pytest.raises(CallError, match="no note"):
        waits.done()
    assert desk.api("GET", "/v1/requests?state=approved", desk.mara)["total"] == 1
    waits = taking(client, tool("trade", {"amount": 30000}))
    desk.edit('{"amount": 0.12345678901234567890123}')
    with pytest.raises(CallError, match="no float"):
        waits.done()


def test_deadline_is_no_denial(desk: Desk, client: Client) -> None:
    with pytest.raises(NotRun, match=r"Nobody decided about this call in time \(until .* UTC\)\. That is no denial\."):
        client.take("desk", tool("hurry", {}))
    with pytest.raises(NotRun, match="Nobody decided"):
        client.take("desk", tool("trade", BIG), within=timedelta(seconds=1))


def test_taken_back_by_another(desk: Desk, client: Client) -> None:
    waits = taking(client)
    client.cancel(desk.waiting()[0]["id"], "the run was stopped")
    with pytest.raises(NotRun, match=r"taken back: the run was stopped\.$"):
        waits.done()


def test_a_wait_that_ends_leaves_the_request_open_or_takes_it_back(desk: Desk, client: Client) -> None:
    with pytest.raises(StillPending) as left:
        client.take("desk", tool("trade", BIG), key="k", wait=0.2)
    waits = taking(client, key="k")  # the same question, not a second one
    assert [each["id"] for each in desk.waiting()] == [left.value.request.id]
    desk.vote("approve")
    assert waits.done().request.id == left.value.request.id
    with pytest.raises(StillPending) as gone:
        client.take("desk", tool("trade", {"amount": 30000}), wait=0.2, cancel="stopped")
    assert client.request(gone.value.request.id).state == "cancelled"


def test_a_cancelled_task_takes_its_request_back(desk: Desk) -> None:
    async def main() -> str:
        async with AsyncClient(desk.url, desk.runtime) as client:
            task = asyncio.create_task(client.take("desk", tool("trade", BIG), cancel="the run was stopped"))
            waiting = await asyncio.to_thread(desk.waiting)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return (await client.request(waiting[0]["id"])).state

    assert asyncio.run(main()) == "cancelled"


def test_async_goes_the_same_way(desk: Desk) -> None:
    async def main() -> None:
        async with AsyncClient(desk.url, desk.runtime) as client:
            assert (await client.decide("desk", tool("quote", {}))).outcome == "allow"
            ran: list[Any] = []

            async def run(args: dict[str, Any]) -> None:
                ran.append(args)

            waits = asyncio.create_task(client.do("desk", tool("trade", BIG), run))
            await asyncio.to_thread(desk.edit, '{"amount": 10001}')
            await waits
            assert ran == [{"amount": 10001}]
            with pytest.raises(NotRun, match="Policy denies"):
                await client.take("desk", tool("drop_table", {}))

    asyncio.run(main())


def test_a_frozen_agent_runs_nothing(desk: Desk, client: Client) -> None:
    waits = taking(client)
    request = desk.waiting()[0]
    desk.freeze()
    with pytest.raises(NotRun, match="The agent is frozen by its operators"):
        client.take("desk", tool("quote", {}))
    desk.vote("approve", request)
    with pytest.raises(ProblemError) as refused:
        waits.done()
    assert (refused.value.code, refused.value.problem.status, refused.value.problem.outcome) == ("frozen", 423, "deny")
    assert assent.told(refused.value) == "Not run. The agent is frozen by its operators. Do not try it again."


def test_rules_that_change_ask_once_more(desk: Desk, client: Client) -> None:
    asked = client.open("desk", tool("trade", BIG), key="k").request
    assert asked is not None
    desk.vote("approve")
    desk.change_agent("gt: 10000", "gt: 9000")
    waits = taking(client, key="k")
    again = desk.waiting()[0]
    assert again["id"] != asked.id
    desk.vote("approve", again)
    assert waits.done().request.id == again["id"]


def test_the_same_key_for_another_call_is_refused(desk: Desk, client: Client) -> None:
    client.open("desk", tool("trade", BIG), key="k")
    with pytest.raises(ProblemError) as refused:
        client.take("desk", tool("trade", {"amount": 30000}), key="k")
    assert (refused.value.code, refused.value.problem.outcome) == ("key_reuse", "deny")


def test_a_server_that_is_killed_while_waiting_comes_back(desk: Desk, client: Client) -> None:
    waits = taking(client)
    request = desk.waiting()[0]
    desk.kill()
    desk.start()
    desk.vote("approve", request)
    assert waits.done().request.id == request["id"]


def test_no_server_no_run(desk: Desk) -> None:
    with Client(desk.url, desk.runtime, options=QUICK) as client:
        waits = taking(client)
        desk.waiting()
        desk.kill()
        with pytest.raises(UnreachableError) as lost:
            waits.done()
        with pytest.raises(UnreachableError):
            client.take("desk", tool("quote", {}))
        assert desk.runtime not in str(lost.value) + repr(client)
        assert assent.told(lost.value).startswith("Not run.")


def test_a_wrong_token_runs_nothing(desk: Desk) -> None:
    with Client(desk.url, "assent_" + "x" * 43) as client, pytest.raises(ProblemError) as refused:
        client.take("desk", tool("quote", {}))
    assert refused.value.code == "unauthenticated"


def test_events_go_on_where_they_were(desk: Desk, client: Client) -> None:
    client.take("desk", tool("quote", {}))
    client.open("desk", tool("trade", BIG))
    first = next(client.events(assent.FROM_START))
    seen: list[int] = []
    reader = client.events(first.index)

    def read() -> None:
        for event in reader:
            seen.append(event.index)
            if event.type == "request_cancelled":
                return

    reads = Beside(read)
    until(lambda: len(seen) > 0, "no event comes")
    waiting = desk.waiting()[0]
    desk.kill()
    desk.start()
    client.cancel(waiting["id"])
    reads.done()
    assert seen == list(range(first.index + 1, first.index + 1 + len(seen)))

    async def last() -> str:
        async with AsyncClient(desk.url, desk.runtime) as other:
            async for event in other.events(seen[-2]):
                return event.type
        return ""

    assert asyncio.run(last()) == "request_cancelled"


def test_what_was_opened_is_taken_without_its_key(desk: Desk, client: Client) -> None:
    call = tool("trade", BIG)
    opened = client.open("desk", call)
    with pytest.raises(StillPending):
        client.take("desk", call, opened=opened, wait=0)
    desk.vote("approve")
    with pytest.raises(CallError, match="was opened for another call"):
        client.take("desk", tool("trade", {**BIG, "amount": 30000}), opened=opened)
    with pytest.raises(CallError, match="was opened for another call"):
        client.take("desk", tool("ship", BIG), opened=opened)
    assert client.take("desk", call, opened=opened).args == BIG
    with pytest.raises(NotRun, match=r"^Not run again\. The approval has been used already\.$"):
        client.take("desk", call, opened=opened)
