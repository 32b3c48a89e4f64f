"""The way of a call, without I/O: steps that a sync or an async driver takes (client.py)."""

from __future__ import annotations

import json
import random
import re
import secrets
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ValidationError

from .call import body_of, values_of
from .errors import CallError, NotRun, ProblemError, StillPending, UnreachableError, UnreadableError
from .models import Decision, Opened, Problem, Request

MAX_ANSWER = 128 << 20  # bytes: a request with several edits of the largest arguments
MAX_WAIT = 60.0  # seconds that the server lets one exchange wait
T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Options:
    """How often and how long to try. Times are in seconds."""

    attempts: int = 5
    pause: float = 0.2  # what waits between attempts grow from
    max_pause: float = 10.0  # where they stop; Retry-After is believed up to it
    timeout: float = 30.0  # of one attempt, without the time that the server was asked to wait
    user_agent: str = "assent-python"


@dataclass(frozen=True)
class Exchange:
    """One request of HTTP. The path is escaped already."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    longer: float = 0.0
    again: bool = True  # repeating it changes nothing


@dataclass(frozen=True)
class Answer:
    status: int
    headers: httpx.Headers
    body: bytes


@dataclass(frozen=True)
class Pause:
    seconds: float


Steps = Generator[Exchange | Pause, Answer | None, T]


@dataclass(frozen=True)
class Taken:
    """The right to run one call now, once: with exactly these arguments, which an approver may have edited."""

    text: str  # the arguments, exactly
    args: dict[str, Any] = field(hash=False)
    opened: Opened = field(repr=False, hash=False)
    request: Request | None = field(default=None, repr=False, hash=False)  # None where nobody was asked

    @property
    def edited(self) -> bool:
        return self.request is not None and len(self.request.revisions) > 1


@dataclass(frozen=True)
class Asking:
    """What goes along with a call."""

    key: str | None = None  # of the model call: key_of(session, tool_call_id); None makes one for this call alone
    context: Sequence[Mapping[str, str]] = ()  # what the agent says: a label with a text, a link or a diff
    within: timedelta | None = None  # how long people have, where the rules give more
    ask: str | None = None  # why people are asked also where the rules allow the call
    replaces: str | None = None
    wait: float | None = None  # seconds to wait for people, then StillPending; None waits as long as they have
    cancel: str | None = None  # where waiting ends early, take the request back, for this reason
    accept: Callable[[dict[str, Any]], object] | None = None  # raises where arguments can't be run; called before they are taken


def path_of(*segments: str) -> str:
    for each in segments:
        if each in ("", ".", ".."):
            raise CallError(f"{each!r} is no name of anything on the server: expected an id")
    return "/".join(quote(each, safe="") for each in segments)


def exchange(options: Options, step: Exchange) -> Steps[bytes]:
    """Tries until there is an answer that counts, and returns its body."""
    attempt = 1
    while True:
        error: ProblemError | UnreachableError
        after = 0
        try:
            answer = yield step
            assert answer is not None
            if 200 <= answer.status < 300:
                return answer.body
            problem = problem_of(answer.status, answer.headers, answer.body)
            error, after = ProblemError(problem), problem.retry_after or 0
            again = mends(problem)
        except httpx.HTTPError as e:
            error, again = UnreachableError(f"{step.method} {step.path}: {type(e).__name__}: {e}"), True
            error.__cause__ = e
        if not (again and step.again and attempt < options.attempts):
            raise error
        yield Pause(backoff(options, attempt, after))
        attempt += 1


def mends(problem: Problem) -> bool:
    """Whether the same may go well a little later."""
    return problem.status in (429, 502, 504) or (problem.status == 503 and problem.code != "agent_unusable")


def backoff(options: Options, attempt: int, after: float = 0) -> float:
    if after > 0:
        return min(after, options.max_pause)
    return random.uniform(0, min(options.max_pause, options.pause * 2 ** min(attempt - 1, 30)))


def problem_of(status: int, headers: httpx.Headers, body: bytes) -> Problem:
    """Reads an error. One that did not come from assent (a proxy's) gets a code by its status."""
    if headers.get("content-type", "").startswith("application/problem+json"):
        try:
            problem = Problem.model_validate_json(body)
            return problem.model_copy(update={"status": status})
        except ValidationError:
            pass  # what can't be read is no problem document
    retry = status >= 502 or status == 429
    after = headers.get("retry-after", "")
    return Problem(
        type="about:blank",
        title=f"the server answered {status}",
        status=status,
        code="unavailable" if retry else "internal",
        next_action="retry" if retry else "none",
        detail="the answer is not from assent: look at the URL and at proxies on the way",
        retry_after=int(after) if re.fullmatch("[0-9]{1,6}", after) else None,
    )


def read(model: type[M], body: bytes) -> M:
    try:
        return model.model_validate_json(body)
    except ValidationError as e:
        first = e.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UnreadableError(f"the answer can't be read: {model.__name__}.{place}: {first['msg']}") from None


def sent(options: Options, *segments: str, body: str, key: str | None = None, again: bool = True) -> Steps[bytes]:
    headers = {"Idempotency-Key": key} if key else {}
    return (yield from exchange(options, Exchange("POST", path_of(*segments), {}, body, headers, again=again)))


def decide(options: Options, agent: str, call: Mapping[str, Any]) -> Steps[Decision]:
    return read(Decision, (yield from sent(options, "v1", "agents", agent, "decide", body=body_of(call)[0])))


def open_call(options: Options, agent: str, call: Mapping[str, Any], asking: Asking) -> Steps[Opened]:
    fields: dict[str, Any] = {}
    if asking.replaces:
        fields["replaces"] = asking.replaces
    if asking.context:
        fields["context"] = list(asking.context)
    if asking.within:
        fields["within"] = f"{asking.within.total_seconds():.3f}s"
    if asking.ask:
        fields["ask"] = asking.ask
    body = f'{{"call": {body_of(call)[0]}' + "".join(f', "{name}": {json.dumps(value)}' for name, value in fields.items()) + "}"
    key = asking.key or secrets.token_hex(16)
    opened = read(Opened, (yield from sent(options, "v1", "agents", agent, "requests", body=body, key=key)))
    if (opened.outcome == "pending" and opened.request is None) or (opened.outcome == "granted" and opened.grant is None):
        raise UnreadableError(f'an answer that makes no sense: "{opened.outcome}" without what belongs to it')
    return opened


def request(options: Options, id: str, version: int | None = None, wait: float = 0.0) -> Steps[Request]:
    """Reads a request; with a version as soon as it is another one, or when wait is over."""
    wait = min(max(wait, 0.0), MAX_WAIT)
    query = {} if version is None else {"wait": f"{wait:.3f}s", "version": str(version)}
    step = Exchange("GET", path_of("v1", "requests", id), query, longer=wait)
    return _of(id, read(Request, (yield from exchange(options, step))))


def consume(options: Options, id: str, what: str, text: str, key: str | None = None) -> Steps[Request]:
    body = f'{{"{what}": {text}, "key": {json.dumps(key or secrets.token_hex(16))}}}'
    return _of(id, read(Request, (yield from sent(options, "v1", "requests", id, "consume", body=body))))


def cancel(options: Options, id: str, reason: str = "") -> Steps[Request]:
    body = json.dumps({"reason": reason} if reason else {})
    return _of(id, read(Request, (yield from sent(options, "v1", "requests", id, "cancel", body=body, again=False))))


def _of(id: str, got: Request) -> Request:
    if got.id != id:
        raise UnreadableError(f"the server was asked for {id}, and answered with {got.id}")
    return got


class Taking:
    """The whole way of one call: present it, wait for people, take the one run of it."""

    def __init__(self, options: Options, agent: str, call: Mapping[str, Any], asking: Asking) -> None:
        self.options, self.agent, self.call, self.asking = options, agent, dict(call), asking
        self.body, self.args = body_of(call)
        self.waits: str | None = None  # the request that people are asked about, while they are
        self.until = None if asking.wait is None else time.monotonic() + asking.wait

    def steps(self) -> Steps[Taken]:
        asking = self.asking
        taken = yield from self._round(asking, last=False)
        if taken is None:  # the rules changed between the answer and the run: ask once more, not for ever
            again = asking.key and f"{asking.key}~2"
            taken = yield from self._round(Asking(**{**vars(asking), "key": again}), last=True)
        assert taken is not None
        return taken

    def _round(self, asking: Asking, last: bool) -> Steps[Taken | None]:
        opened = yield from open_call(self.options, self.agent, self.call, asking)
        if opened.outcome in ("allow", "granted"):
            return Taken(self.args, self._accepted(self.args), opened)
        if opened.outcome != "pending" or opened.request is None:
            raise NotRun(opened)
        decided = yield from self._decided(opened.request)
        if decided.state == "expired" and decided.cause == "plan_changed" and not last:
            return None
        if decided.state != "approved":
            raise NotRun(opened, decided)
        return (yield from self._taken(opened, decided, last))

    def _decided(self, asked: Request) -> Steps[Request]:
        got = asked
        while got.state == "pending":
            self.waits = got.id
            left = MAX_WAIT if self.until is None else self.until - time.monotonic()
            if left <= 0:
                raise StillPending(got)
            got = yield from request(self.options, got.id, got.version, left)
        self.waits = None
        return got

    def _taken(self, opened: Opened, decided: Request, last: bool) -> Steps[Taken | None]:
        approved = decided.revisions[-1]
        values = self._accepted(approved.call.args)  # before the run is taken: what can't be run isn't
        edited = len(decided.revisions) > 1
        what, text = ("binding", json.dumps(approved.binding)) if edited else ("call", self.body)
        try:
            got = yield from consume(self.options, decided.id, what, text)
        except ProblemError as e:
            if e.code == "stale" and not last:
                return None
            raise
        run = got.revisions[-1]
        if got.state != "consumed":
            raise UnreadableError(f"the server let a request be consumed that is {got.state}")
        if run.call.args != approved.call.args or any(
            (getattr(run.call, name) or None) != self.call.get(name) for name in ("kind", "tool", "server", "agent", "skill")
        ):
            raise UnreadableError("the server let another call be consumed than the one that was approved")
        return Taken(run.call.args, values, opened, got)

    def _accepted(self, text: str) -> dict[str, Any]:
        values = values_of(text)
        if self.asking.accept:
            self.asking.accept(values)
        return values
