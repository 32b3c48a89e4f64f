"""Permits: what every verifier decides alike, ten thousand forgeries, and a permit of a real server."""

from __future__ import annotations

import json
import random
import string
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from desk_server import BIG, Beside, Desk

from assent_client import CallError, Client, tool
from assent_client.permit import PermitRefused, Verifier

KEPT: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "approval" / "permit" / "testdata" / "attempts.json").read_text(encoding="utf-8")
)
GOOD = KEPT["attempts"][0]


def verifier(now: float = KEPT["now"], **given: Any) -> Verifier:
    return Verifier(KEPT["issuer"], KEPT["audience"], keys=KEPT["keys"], clock=lambda: now, **given)


def reason(checks: Verifier, permit: str, target: str = GOOD["target"], arguments: Any = GOOD["arguments"]) -> str:
    try:
        checks.verify(permit, target, arguments)
    except PermitRefused as e:
        return e.reason
    return ""


@pytest.mark.parametrize("attempt", KEPT["attempts"], ids=lambda attempt: attempt["name"])
def test_it_decides_as_every_verifier_does(attempt: dict[str, str]) -> None:
    assert reason(verifier(), attempt["permit"], attempt["target"], attempt["arguments"]) == attempt["reason"]


def test_ten_thousand_forgeries_are_refused() -> None:
    dice, checks, good = random.Random(1), verifier(), GOOD["permit"]
    others = [attempt["permit"] for attempt in KEPT["attempts"] if attempt["reason"] and attempt["permit"] != good]
    for _ in range(10_000):
        forged = forge(dice, good, dice.choice(others))
        if forged != good:
            assert reason(checks, forged), forged
    assert reason(checks, good) == ""


def forge(dice: random.Random, good: str, other: str) -> str:
    at, letter = dice.randrange(len(good)), dice.choice(string.ascii_letters + string.digits + "-_.")
    mine, theirs = good.split("."), other.split(".")
    mine[dice.randrange(3)] = dice.choice(theirs)
    return dice.choice(
        [
            good[:at] + letter + good[at + 1 :],
            good[:at] + good[at + 1 :],
            good[:at] + letter + good[at:],
            good[:at] + other[at:],
            ".".join(mine),
        ]
    )


def test_of_many_at_once_one_runs() -> None:
    checks, got = verifier(), list[str]()
    threads = [threading.Thread(target=lambda: got.append(reason(checks, GOOD["permit"]))) for _ in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == [""] + ["used"] * 31


def test_arguments_may_be_values() -> None:
    values = {"amount": 20000, "currency": "USD", "note": "café", "limits": [0.5, 1000, -7.0]}
    assert reason(verifier(), GOOD["permit"], arguments=values) == ""
    for other in ({**values, "amount": 2**60}, {**values, "note": "\ud800"}, {**values, "amount": float("nan")}):
        assert reason(verifier(), GOOD["permit"], arguments=other) == "arguments"


def test_a_refused_permit_is_not_used_up() -> None:
    checks = verifier()
    assert reason(checks, GOOD["permit"], arguments={}) == "arguments"
    assert reason(checks, GOOD["permit"]) == ""


def test_what_is_no_text_is_no_permit() -> None:
    others: list[Any] = [None, 5, b"x.y.z", [], {}]
    for other in others:
        assert reason(verifier(), other) == "malformed"


def test_a_memory_that_fails_lets_nothing_run() -> None:
    def broken(id: str, until: float) -> bool:
        raise OSError("postgres://user:secret@db")

    with pytest.raises(PermitRefused) as refused:
        verifier(used=broken).verify(GOOD["permit"], GOOD["target"], GOOD["arguments"])
    assert refused.value.reason == "unavailable" and "secret" not in str(refused.value)
    assert reason(verifier(used=lambda id, until: None), GOOD["permit"]) == "used"


def test_configurations_that_check_nothing_are_refused() -> None:
    for issuer, audience in [("http://assent.example.com", "a"), ("acme", "a"), ("https://assent.example.com", "")]:
        with pytest.raises(CallError):
            Verifier(issuer, audience)


def test_a_permit_of_a_real_server(desk: Desk, client: Client) -> None:
    takes = Beside(lambda: client.take("desk", tool("ship", BIG)))
    desk.vote("approve")
    taken = takes.done()
    checks = Verifier(desk.url + "/permits/default", "broker")
    got = checks.verify(taken.permit, "tool ship", taken.args)
    assert (got.request, got.agent) == (taken.request.id, "desk")
    assert reason(checks, taken.permit, "tool ship", taken.args) == "used"
    desk.kill()
    assert reason(Verifier(desk.url + "/permits/default", "broker"), taken.permit, "tool ship") == "unavailable"


def test_keys_are_loaded_again_when_one_is_unknown_but_seldom() -> None:
    answers: list[dict[str, Any]] = [{"keys": []}, KEPT["keys"]]
    loads, at = list[str](), [float(KEPT["now"])]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(answers[min(len(loads), 1)]).encode()
            loads.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        issuer = f"http://127.0.0.1:{server.server_port}/permits/acme"
        checks = Verifier(issuer, KEPT["audience"], clock=lambda: at[0])
        assert [reason(checks, GOOD["permit"]) for _ in range(3)] == ["unavailable"] * 3
        at[0] += 11
        assert [reason(checks, GOOD["permit"]) for _ in range(3)] == ["issuer"] * 3
        at[0] += 11
        other = next(each["permit"] for each in KEPT["attempts"] if each["name"] == "by another key")
        assert [reason(checks, other) for _ in range(20)] == ["untrusted"] * 20
        server.shutdown()
    assert loads == ["/permits/acme/.well-known/jwks.json"] * 3


def test_keys_that_could_not_be_loaded_for_a_day_count_no_more() -> None:
    at = [float(KEPT["now"])]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(KEPT["keys"]).encode())

        def log_message(self, format: str, *args: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        issuer = f"http://127.0.0.1:{server.server_port}"
        checks = Verifier(issuer, KEPT["audience"], clock=lambda: at[0])
        assert reason(checks, GOOD["permit"]) == "issuer"
        server.shutdown()
    at[0] += 24 * 3600 + 1
    assert reason(checks, GOOD["permit"]) == "unavailable"


def test_a_call_of_a_tool_that_checks_nothing_has_no_permit(desk: Desk, client: Client) -> None:
    takes = Beside(lambda: client.take("desk", tool("trade", BIG)))
    desk.vote("approve")
    assert takes.done().permit is None
    assert client.take("desk", tool("quote", {})).permit is None
