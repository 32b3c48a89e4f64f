"""Answers that are not from assent, or make no sense: nothing runs."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from assent_client import (
    CallError,
    Client,
    NotRun,
    Options,
    ProblemError,
    UnreachableError,
    UnreadableError,
    tool,
    wire,
)
from assent_client.sse import Reader
from assent_client.wire import backoff

ALLOW = b'{"outcome": "allow", "decision": {"outcome": "allow", "message": "", "reasons": [], "missing_variables": []}}'
Answer = tuple[int, dict[str, str], bytes]


class Between(HTTPServer):
    """What stands between a client and a server, and answers by itself."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.seen: list[tuple[str, dict[str, str], bytes]] = []
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        options = Options(attempts=3, pause=0.01, timeout=2)
        self.client = Client(f"http://127.0.0.1:{self.server_port}/base/", "assent_x", options=options)


class Handler(BaseHTTPRequestHandler):
    server: Between

    def do_GET(self) -> None:
        self.send_response(503)
        self.end_headers()
        with suppress(OSError):
            while True:
                self.wfile.write(b"x" * 65536)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append((self.path, dict(self.headers.items()), body))
        status, headers, answer = self.server.answers.pop(0)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def between() -> Iterator[Between]:
    server = Between()
    yield server
    server.shutdown()
    server.server_close()


def problem(status: int, code: str, **more: object) -> Answer:
    fields = {"type": "x", "title": "t", "status": status, "code": code, "next_action": "retry", **more}
    return status, {"Content-Type": "application/problem+json"}, json.dumps(fields).encode()


def test_what_mends_itself_is_tried_again_under_the_same_key(between: Between) -> None:
    between.answers = [(502, {}, b"<html>"), problem(503, "unavailable"), (200, {}, ALLOW)]
    assert between.client.take("desk", tool("quote", {})).args == {}
    assert between.seen[0][0] == "/base/v1/agents/desk/requests"
    assert len({(headers["Idempotency-Key"], body) for _, headers, body in between.seen}) == 1


def test_tries_are_bounded(between: Between) -> None:
    between.answers = [(502, {}, b"<html>")] * 9
    with pytest.raises(ProblemError, match="the answer is not from assent") as refused:
        between.client.take("desk", tool("quote", {}))
    assert (refused.value.code, len(between.seen)) == ("unavailable", 3)


def test_a_server_that_says_when_is_believed(between: Between) -> None:
    between.answers = [problem(429, "too_many", retry_after=1), (200, {}, ALLOW)]
    began = time.monotonic()
    between.client.take("desk", tool("quote", {}))
    assert time.monotonic() - began >= 1


@pytest.mark.parametrize(
    "answer",
    [
        problem(503, "agent_unusable"),
        problem(401, "unauthenticated"),
        (500, {}, b""),
        (302, {"Location": "https://example.com"}, b""),
    ],
)
def test_what_does_not_mend_itself_is_not_tried_again(between: Between, answer: Answer) -> None:
    between.answers = [answer] * 2
    with pytest.raises(ProblemError):
        between.client.take("desk", tool("quote", {}))
    assert len(between.seen) == 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"allow",
        b"{}",
        ALLOW.replace(b'"allow"', b'"maybe"', 1),
        ALLOW.replace(b'"allow"', b'"pending"', 1),
        ALLOW.replace(b'"allow"', b'"granted"', 1),
        ALLOW[:-1],
    ],
)
def test_an_answer_that_can_not_be_read_runs_nothing(between: Between, body: bytes) -> None:
    between.answers = [(200, {}, body)]
    with pytest.raises(UnreadableError):
        between.client.take("desk", tool("quote", {}))


def test_a_denial_of_a_later_version_is_one(between: Between) -> None:
    between.answers = [
        (200, {}, ALLOW.replace(b'"outcome": "allow"', b'"outcome": "deny", "denied": "x", "new": 1', 1))
    ]
    with pytest.raises(NotRun, match="Policy denies this call"):
        between.client.take("desk", tool("quote", {}))


def test_a_line_that_breaks(between: Between) -> None:
    between.shutdown()
    between.server_close()
    with pytest.raises(UnreachableError, match=r"^POST /base/v1/agents/desk/requests: Connect"):
        between.client.take("desk", tool("quote", {}))


@pytest.mark.parametrize(
    "url", ["", "assent.example", "ftp://x", "https://u:p@x", "https://x?a=1", "https://x#a", "http://"]
)
def test_urls_that_are_none(url: str) -> None:
    with pytest.raises(CallError, match="the server's URL"):
        Client(url, "assent_x")


@pytest.mark.parametrize("token", ["assent x", "assent_x\r\nX: y", "assent_é"])
def test_tokens_that_are_none(token: str) -> None:
    with pytest.raises(CallError) as refused:
        Client("https://x", token)
    assert token not in str(refused.value)


@pytest.mark.parametrize("id", ["", ".", ".."])
def test_names_that_would_lead_elsewhere(between: Between, id: str) -> None:
    with pytest.raises(CallError):
        between.client.take(id, tool("quote", {}))
    between.answers = [problem(404, "unknown_agent")]
    with pytest.raises(ProblemError):
        between.client.take("a/../b?c", tool("quote", {}))
    assert between.seen[0][0] == "/base/v1/agents/a%2F..%2Fb%3Fc/requests"


def test_a_refusal_without_an_end_is_not_read_to_its_end(between: Between, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MAX_ANSWER", 1 << 20)
    with pytest.raises(UnreadableError, match="more than 1048576 bytes"):
        next(between.client.events())
    with pytest.raises(UnreadableError, match="more than 1048576 bytes"):
        between.client.request("apr_1")


def test_events_cut_anywhere() -> None:
    stream = b'id: 4\n\n: beat\n\nid: 5\r\nevent: x\r\ndata: {"a":\r\ndata: 1}\r\n\r\n'
    for size in (1, 2, 7, len(stream)):
        reader = Reader(-1)
        chunks = [stream[i : i + size] for i in range(0, len(stream), size)]
        events = [event for chunk in chunks for event in reader.feed(chunk)]
        assert [(e.index, e.type, e.leaf) for e in events] == [(5, "x", {"a": 1})]
        assert reader.after == 5


@pytest.mark.parametrize(
    "bad", [b"id: x\n\n", b"id: -2\n\n", b"data: {}\n\n", b"id: 1\ndata: [\n\n", b"id: 1\ndata: 2\n\n", b"\xff\n"]
)
def test_events_that_can_not_be_read(bad: bytes) -> None:
    with pytest.raises(UnreadableError):
        list(Reader(-1).feed(bad))
    with pytest.raises(UnreadableError, match="without an end"):
        list(Reader(-1).feed(b"x" * (5 << 20)))
    with pytest.raises(UnreadableError, match="without an end"):
        list(Reader(-1).feed((b"data: " + b"x" * 1000 + b"\n") * 5000))


@pytest.mark.parametrize("after", [-1, 0])
def test_a_pause_that_a_server_can_not_ask_for_is_none(after: int) -> None:
    pauses = [backoff(Options(pause=9, max_pause=9), 9, after) for _ in range(20)]
    assert max(pauses) > 0
    assert min(pauses) >= 0
