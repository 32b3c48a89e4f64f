"""The client that blocks. Generated from aio.py by dev/generate.py: don't edit."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx

from . import wire
from .call import body_of, text_of, values_of
from .errors import (
    AssentError,
    CallError,
    NotRun,
    ProblemError,
    StillPending,
    UnreachableError,
    UnreadableError,
    mark,
)
from .models import Decision, Opened, Request
from .sse import FROM_NOW, SILENCE, Event, Reader
from .wire import Asking, Options, Taken

T = TypeVar("T")
Call = Mapping[str, Any]


@dataclass
class _Way:
    """One call on its way."""

    agent: str
    call: Call
    asking: Asking
    until: float  # when the caller has no more time
    waits: str | None = None  # the request that people are asked about, while they are

    def accepted(self, text: str) -> dict[str, Any]:
        if self.asking.accept:
            self.asking.accept(values_of(text))  # values of its own: what it makes of them doesn't run
        return values_of(text)


class Client:
    """Speaks to one server with one token. It may be used by several threads at once."""

    def __init__(
        self, url: str, token: str, *, http: httpx.Client | None = None, options: Options | None = None
    ) -> None:
        self._base, self._token, self.options = wire.base_of(url, token), token, options or Options()
        self._http = http or httpx.Client()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._base!r})"  # never the token

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def decide(self, agent: str, call: Call) -> Decision:
        """Decides a call without asking anybody."""
        return wire.read(Decision, self._post(wire.path_of("v1", "agents", agent, "decide"), body_of(call)[0]))

    def open(self, agent: str, call: Call, **asking: Any) -> Opened:
        """Presents a call that wants to run. Keywords are the fields of Asking."""
        ask = Asking(**asking)
        body = f'{{"call": {body_of(call)[0]}{ask.fields()}}}'
        key = secrets.token_hex(16) if ask.key is None else ask.key
        return wire.read_opened(self._post(wire.path_of("v1", "agents", agent, "requests"), body, key))

    def request(self, id: str, version: int | None = None, wait: float = 0.0) -> Request:
        """Reads a request; with a version as soon as it is another one, or when wait (60 s at most) is over."""
        wait = min(max(wait, 0.0), wire.MAX_WAIT)
        query = {} if version is None else {"wait": f"{wait:.3f}s", "version": str(version)}
        path, seconds = wire.path_of("v1", "requests", id), self.options.timeout + wait
        reading = self._made("GET", path, seconds, query=query)
        return wire.read_request(id, self._exchange(reading))

    def cancel(self, id: str, reason: str = "") -> Request:
        """Takes a request back."""
        body = json.dumps({"reason": reason} if reason else {})
        return wire.read_request(id, self._post(wire.path_of("v1", "requests", id, "cancel"), body, attempts=1))

    def take(self, agent: str, call: Call, **asking: Any) -> Taken:
        """Presents a call, waits for people, and takes its one run. Run it now, with exactly what is returned.

        Keywords are the fields of Asking. Raises NotRun where it may not run, and another error where nobody can say.
        Where the wait is cut short (StillPending, an error), `cancel` takes the request back.
        """
        ask = Asking(**asking)
        call = {**call, "args": text_of(call.get("args", "{}"))}  # as they are now, whoever changes them later
        way = _Way(agent, call, ask, float("inf") if ask.wait is None else time.monotonic() + ask.wait)
        try:
            taken = self._once(way)
            while taken is None:  # an equal call without a key had joined this one, and ran
                taken = self._once(way)
        except BaseException as e:
            mark(e, ran=False)
            if ask.cancel and way.waits:
                with suppress(AssentError):
                    self.cancel(way.waits, ask.cancel)
            raise
        return taken

    def do(self, agent: str, call: Call, run: Callable[[dict[str, Any]], T], **asking: Any) -> T:
        """take, and then run with the arguments to use; run is called at most once."""
        taken = self.take(agent, call, **asking)
        try:
            return run(taken.args)
        except BaseException as e:
            mark(e, ran=True)
            raise

    def events(self, after: int = FROM_NOW) -> Iterator[Event]:
        """What happens after an entry of the ledger, in order and without holes; connections are made again."""
        reader, failures = Reader(after), 0
        while True:
            before, pause = reader.after, None
            try:
                connecting = self._made("GET", "v1/events", seconds=SILENCE, headers=reader.connect())
                response = self._send(connecting)
                try:
                    if response.status_code != 200:
                        text = self._body(response, time.monotonic() + self.options.timeout)
                        raise ProblemError(wire.problem_of(response.status_code, response.headers, text))
                    for chunk in response.iter_bytes():
                        for event in reader.feed(chunk):
                            yield event
                finally:
                    response.close()
            except httpx.HTTPError:
                pass  # a line that breaks is made again, as one that ends
            except ProblemError as e:
                if not wire.mends(e.problem):
                    raise
                pause = e.problem.retry_after
            failures = 1 if reader.after != before else failures + 1
            time.sleep(wire.backoff(self.options, failures, pause))

    def _once(self, way: _Way) -> Taken | None:
        """The run of a call; None if an equal call without a key took the run that people approved for both."""
        key = way.asking.key
        try:
            taken = self._round(way, key, last=False)
            if taken is None:  # the rules changed between the answer and the run: ask once more, not for ever
                taken = self._round(way, key and key + "~2", last=True)
        except (NotRun, ProblemError) as e:
            if key is None and way.asking.opened is None and _is_consumed(e):
                return None
            raise
        assert taken is not None  # the last round gives or raises
        return taken

    def _round(self, way: _Way, key: str | None, last: bool) -> Taken | None:
        before = None if last else way.asking.opened
        if before is not None and before.request is not None:
            opened = self._again(way, before, before.request.id)
        else:
            opened = self.open(way.agent, way.call, **{**vars(way.asking), "key": key})
        if opened.outcome in ("allow", "granted"):
            args = body_of(way.call)[1]
            return Taken(args, way.accepted(args), opened)
        if opened.outcome != "pending" or opened.request is None:
            raise NotRun(opened)
        decided = self._decided(way, opened.request)
        if decided.state == "expired" and decided.cause in ("plan_changed", "history") and not last:
            return None
        if decided.state != "approved":
            raise NotRun(opened, decided)
        return self._taken(way, opened, decided, last)

    def _again(self, way: _Way, before: Opened, id: str) -> Opened:
        """What was opened before, as it stands now."""
        got = self.request(id)
        asked, args = vars(got.revisions[0].call), body_of(way.call)[1].strip()
        names = ("kind", "tool", "server", "agent", "skill")
        same = all((asked[name] or "") == (way.call.get(name) or "") for name in names)
        if not same or asked["args"] != args or got.agent.id != way.agent:
            raise CallError(f"{id} was opened for another call")
        return before.model_copy(update={"request": got})

    def _decided(self, way: _Way, got: Request) -> Request:
        while got.state == "pending":
            way.waits, left = got.id, way.until - time.monotonic()
            if left <= 0:
                raise StillPending(got)
            got = self.request(got.id, got.version, left)
        way.waits = None
        return got

    def _taken(self, way: _Way, opened: Opened, decided: Request, last: bool) -> Taken | None:
        approved = decided.revisions[-1].call.args
        values = way.accepted(approved)  # before the run is taken: what can't be run isn't
        what = f'"call": {body_of(way.call)[0]}'
        if len(decided.revisions) > 1:
            what = f'"binding": {json.dumps(decided.revisions[-1].binding)}'
        path = wire.path_of("v1", "requests", decided.id, "consume")
        try:
            body = f'{{{what}, "key": "{secrets.token_hex(16)}"}}'
            got = wire.read_request(decided.id, self._post(path, body))
        except ProblemError as e:
            if e.code == "stale" and not last:
                return None
            raise
        if got.state != "consumed" or got.revisions[-1].call.args != approved:
            raise UnreadableError("the server let another call be consumed than the one that was approved")
        return Taken(approved, values, opened, got)

    def _post(self, path: str, body: str, key: str | None = None, attempts: int | None = None) -> bytes:
        own = {"Content-Type": "application/json"} | ({} if key is None else {"Idempotency-Key": key})
        return self._exchange(self._made("POST", path, self.options.timeout, body=body, headers=own), attempts)

    def _exchange(self, request: httpx.Request, attempts: int | None = None) -> bytes:
        """Tries until there is an answer that counts, and returns its body."""
        attempt, most = 0, attempts or self.options.attempts
        while True:
            attempt, pause = attempt + 1, None
            try:
                return self._attempt(request)
            except httpx.HTTPError as e:
                if attempt >= most:
                    raise UnreachableError(f"{request.method} {request.url.path}: {type(e).__name__}: {e}") from e
            except ProblemError as e:
                if attempt >= most or not wire.mends(e.problem):
                    raise
                pause = e.problem.retry_after
            time.sleep(wire.backoff(self.options, attempt, pause))

    def _attempt(self, request: httpx.Request) -> bytes:
        until = time.monotonic() + request.extensions["timeout"]["read"]
        response = self._send(request)
        try:
            text = self._body(response, until)
        finally:
            response.close()
        if not 200 <= response.status_code < 300:
            raise ProblemError(wire.problem_of(response.status_code, response.headers, text))
        return text

    def _body(self, response: httpx.Response, until: float) -> bytes:
        text = bytearray()
        for chunk in response.iter_bytes():
            text += chunk
            if len(text) > wire.MAX_ANSWER:
                raise UnreadableError(f"the answer has more than {wire.MAX_ANSWER} bytes")
            if time.monotonic() > until:
                raise httpx.ReadTimeout("the answer takes too long")
        return bytes(text)

    def _made(self, method: str, path: str, seconds: float, body: str = "", **more: Any) -> httpx.Request:
        headers = {"User-Agent": self.options.user_agent, "Authorization": "Bearer " + self._token}
        headers |= more.get("headers", {})
        url, query, content = f"{self._base}/{path}", more.get("query") or None, body.encode() or None
        return self._http.build_request(method, url, headers=headers, content=content, params=query, timeout=seconds)

    def _send(self, request: httpx.Request) -> httpx.Response:
        return self._http.send(request, stream=True, auth=None, follow_redirects=False)


def _is_consumed(error: NotRun | ProblemError) -> bool:
    if isinstance(error, ProblemError):
        return error.code == "consumed"
    return error.request is not None and error.request.state == "consumed"
