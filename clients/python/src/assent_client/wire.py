"""What goes over the wire: the fields of requests, and what answers mean. No I/O."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ValidationError

from .errors import CallError, UnreadableError
from .models import Opened, Problem, Request

MAX_ANSWER = 128 << 20  # bytes: a request with several edits of the largest arguments
MAX_WAIT = 60.0  # seconds that the server lets one exchange wait
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
class Asking:
    """What goes along with a call."""

    key: str | None = None  # of the model call: key_of(session, tool_call_id); None makes one for this call alone
    context: Sequence[Mapping[str, str]] = ()  # what the agent says: a label with a text, a link or a diff
    within: timedelta | None = None  # how long people have, where the rules give more
    ask: str | None = None  # why people are asked also where the rules allow the call
    replaces: str | None = None  # an earlier request that this one stands in for
    opened: Opened | None = None  # what open answered for this call: goes on with its request, however old the key is
    wait: float | None = None  # seconds to wait for people, then StillPending; None waits as long as they have
    cancel: str | None = None  # where waiting ends early, take the request back, for this reason
    accept: Callable[[dict[str, Any]], object] | None = (
        None  # raises where arguments can't be run, before they are taken
    )

    def fields(self) -> str:
        """The members that stand behind the call in a body."""
        within = None if self.within is None else f"{self.within.total_seconds():.3f}s"
        given = {"replaces": self.replaces, "context": list(self.context), "within": within, "ask": self.ask}
        return "".join(f', "{name}": {json.dumps(value)}' for name, value in given.items() if value)


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

    @property
    def note(self) -> str | None:
        """One line for the model if a person changed the call, with the arguments that run."""
        if not self.edited:
            return None
        text = self.text if len(self.text.splitlines()) == 1 else json.dumps(self.args)
        return f"A person changed this call before it ran. It ran with: {text}"

    @property
    def permit(self) -> str | None:
        """What to hand to a tool that checks permits; None where it checks none."""
        return self.request.permit.signed if self.request is not None and self.request.permit is not None else None


def base_of(url: str, token: str) -> str:
    """The server's URL without a slash at its end, when the client can use both."""
    try:
        base = httpx.URL(url)
    except (httpx.InvalidURL, TypeError):
        base = httpx.URL("")
    if base.scheme not in ("http", "https") or not base.host or base.userinfo or base.query or base.fragment:
        raise CallError("the server's URL: expected http(s)://host[:port][/path]")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise CallError("the token holds what no token has: expected assent_ and 43 characters")
    return str(base).rstrip("/")


def path_of(*segments: str) -> str:
    for each in segments:
        if each in ("", ".", ".."):
            raise CallError(f"{each!r} is no name of anything on the server: expected an id")
    return "/".join(quote(each, safe="") for each in segments)


def mends(problem: Problem) -> bool:
    """Whether the same may go well a little later."""
    return problem.status in (429, 502, 504) or (problem.status == 503 and problem.code != "agent_unusable")


def backoff(options: Options, attempt: int, after: float | None = None) -> float:
    """Seconds: what the server asked for, or a random part of a growing pause."""
    if after and after > 0:
        return min(after, options.max_pause)
    return random.uniform(0, min(options.max_pause, options.pause * 2 ** min(attempt - 1, 30)))


def problem_of(status: int, headers: httpx.Headers, body: bytes) -> Problem:
    """Reads an error. One that did not come from assent (a proxy's) gets a code by its status."""
    if headers.get("content-type", "").startswith("application/problem+json"):
        try:
            return Problem.model_validate_json(body).model_copy(update={"status": status})
        except ValidationError:
            pass  # what can't be read is no problem document
    retry, after = status >= 502 or status == 429, headers.get("retry-after", "")
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


def read_request(id: str, body: bytes) -> Request:
    got = read(Request, body)
    if got.id != id or not got.revisions:
        raise UnreadableError(f"the server was asked for {id}, and answered with {got.id}")
    return got


def read_opened(body: bytes) -> Opened:
    opened = read(Opened, body)
    if (opened.outcome == "pending" and opened.request is None) or (
        opened.outcome == "granted" and opened.grant is None
    ):
        raise UnreadableError(f'an answer that makes no sense: "{opened.outcome}" without what belongs to it')
    return opened
