"""Clients of an assent server: one that blocks, one for asyncio. Both take the same steps (protocol.py)."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, TypeVar

import httpx

from . import protocol
from .errors import AssentError, CallError, ProblemError, UnreachableError
from .models import Decision, Opened, Request
from .protocol import Answer, Asking, Exchange, Options, Pause, Steps, Taken, Taking
from .sse import FROM_NOW, Event, Reader

T = TypeVar("T")
Call = Mapping[str, Any]


class _Base:
    def __init__(self, url: str, token: str, options: Options | None = None) -> None:
        self.options = options or Options()
        try:
            base = httpx.URL(url)
        except (httpx.InvalidURL, TypeError):
            base = httpx.URL("")
        if base.scheme not in ("http", "https") or not base.host or base.userinfo or base.query or base.fragment:
            raise CallError("the server's URL: expected http(s)://host[:port][/path]")
        if not token.isascii() or not token.isprintable() or " " in token:
            raise CallError("the token holds what no token has: expected assent_ and 43 characters")
        self._base, self._token = str(base).rstrip("/"), token

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._base!r})"  # never the token

    def _request(self, step: Exchange) -> dict[str, Any]:
        headers = {"User-Agent": self.options.user_agent, **step.headers}
        if self._token:
            headers["Authorization"] = "Bearer " + self._token
        if step.body is not None:
            headers["Content-Type"] = "application/json"
        return {
            "method": step.method,
            "url": f"{self._base}/{step.path}",
            "params": dict(step.query) or None,
            "content": step.body.encode() if step.body is not None else None,
            "headers": headers,
            "timeout": self.options.timeout + step.longer,
            "follow_redirects": False,
            "auth": None,
        }

    def _limit(self, step: Exchange) -> float:
        return time.monotonic() + self.options.timeout + step.longer

    def _check(self, size: int, until: float) -> None:
        if size > protocol.MAX_ANSWER:
            raise UnreachableError(f"the answer has more than {protocol.MAX_ANSWER} bytes")
        if time.monotonic() > until:
            raise httpx.ReadTimeout("the answer takes too long")

    def _wait_again(self, error: Exception, failures: int) -> float:
        """How long to wait before a stream is read again, or the error, where waiting doesn't mend it."""
        if isinstance(error, ProblemError) and not protocol.mends(error.problem):
            raise error
        after = error.problem.retry_after or 0 if isinstance(error, ProblemError) else 0
        return protocol.backoff(self.options, failures, after)


def _refused(response: httpx.Response, body: bytes) -> ProblemError:
    return ProblemError(protocol.problem_of(response.status_code, response.headers, body))


class Client(_Base):
    """Speaks to one server with one token, and blocks. It is safe to use from several threads."""

    def __init__(self, url: str, token: str, *, http: httpx.Client | None = None, options: Options | None = None) -> None:
        super().__init__(url, token, options)
        self._http = http or httpx.Client()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def decide(self, agent: str, call: Call) -> Decision:
        """Decides a call without asking anybody."""
        return self._drive(protocol.decide(self.options, agent, call))

    def open(self, agent: str, call: Call, **asking: Any) -> Opened:
        """Presents a call that wants to run. Keywords are the fields of Asking."""
        return self._drive(protocol.open_call(self.options, agent, call, Asking(**asking)))

    def request(self, id: str, version: int | None = None, wait: float = 0.0) -> Request:
        """Reads a request; with a version as soon as it is another one, or when wait (60 s at most) is over."""
        return self._drive(protocol.request(self.options, id, version, wait))

    def cancel(self, id: str, reason: str = "") -> Request:
        return self._drive(protocol.cancel(self.options, id, reason))

    def take(self, agent: str, call: Call, **asking: Any) -> Taken:
        """Presents a call, waits for people, and takes its one run. Run it now, with exactly what is returned.

        Keywords are the fields of Asking. Raises NotRun where it may not run, and another error where nobody can say.
        """
        taking = Taking(self.options, agent, call, Asking(**asking))
        try:
            return self._drive(taking.steps())
        except BaseException:
            if taking.asking.cancel and taking.waits:
                with contextlib.suppress(AssentError):
                    self.cancel(taking.waits, taking.asking.cancel)
            raise

    def do(self, agent: str, call: Call, run: Callable[[dict[str, Any]], T], **asking: Any) -> T:
        """take, and then run with the arguments to use; run is called at most once."""
        return run(self.take(agent, call, **asking).args)

    def events(self, after: int = FROM_NOW) -> Iterator[Event]:
        """What happens after an entry of the ledger, in order and without holes; connections are made again."""
        reader, failures = Reader(after), 0
        while True:
            before = reader.after
            error: Exception
            try:
                yield from self._listen(reader)
                error = UnreachableError("the stream ended")
            except (httpx.HTTPError, ProblemError) as e:
                error = e
            failures = 1 if reader.after != before else failures + 1
            time.sleep(self._wait_again(error, failures))

    def _listen(self, reader: Reader) -> Iterator[Event]:
        with self._http.stream(**self._request(reader.connect())) as response:
            if response.status_code != 200:
                raise _refused(response, response.read())
            for chunk in response.iter_bytes():
                yield from reader.feed(chunk)

    def _drive(self, steps: Steps[T]) -> T:
        try:
            step = next(steps)
            while True:
                try:
                    answer = self._take_step(step)
                except httpx.HTTPError as e:
                    step = steps.throw(e)
                else:
                    step = steps.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result

    def _take_step(self, step: Exchange | Pause) -> Answer | None:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return None
        until, body = self._limit(step), bytearray()
        with self._http.stream(**self._request(step)) as response:
            for chunk in response.iter_bytes():
                body += chunk
                self._check(len(body), until)
            return Answer(response.status_code, response.headers, bytes(body))


class AsyncClient(_Base):
    """The same as Client, for asyncio."""

    def __init__(self, url: str, token: str, *, http: httpx.AsyncClient | None = None, options: Options | None = None) -> None:
        super().__init__(url, token, options)
        self._http = http or httpx.AsyncClient()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def decide(self, agent: str, call: Call) -> Decision:
        return await self._drive(protocol.decide(self.options, agent, call))

    async def open(self, agent: str, call: Call, **asking: Any) -> Opened:
        return await self._drive(protocol.open_call(self.options, agent, call, Asking(**asking)))

    async def request(self, id: str, version: int | None = None, wait: float = 0.0) -> Request:
        return await self._drive(protocol.request(self.options, id, version, wait))

    async def cancel(self, id: str, reason: str = "") -> Request:
        return await self._drive(protocol.cancel(self.options, id, reason))

    async def take(self, agent: str, call: Call, **asking: Any) -> Taken:
        """As Client.take. Where the task is cancelled while people are asked, `cancel` takes the request back."""
        taking = Taking(self.options, agent, call, Asking(**asking))
        try:
            return await self._drive(taking.steps())
        except BaseException:
            if taking.asking.cancel and taking.waits:
                with contextlib.suppress(AssentError):
                    await self.cancel(taking.waits, taking.asking.cancel)
            raise

    async def do(self, agent: str, call: Call, run: Callable[[dict[str, Any]], Awaitable[T]], **asking: Any) -> T:
        return await run((await self.take(agent, call, **asking)).args)

    async def events(self, after: int = FROM_NOW) -> AsyncIterator[Event]:
        reader, failures = Reader(after), 0
        while True:
            before = reader.after
            error: Exception
            try:
                async with self._http.stream(**self._request(reader.connect())) as response:
                    if response.status_code != 200:
                        raise _refused(response, await response.aread())
                    async for chunk in response.aiter_bytes():
                        for event in reader.feed(chunk):
                            yield event
                error = UnreachableError("the stream ended")
            except (httpx.HTTPError, ProblemError) as e:
                error = e
            failures = 1 if reader.after != before else failures + 1
            await asyncio.sleep(self._wait_again(error, failures))

    async def _drive(self, steps: Steps[T]) -> T:
        try:
            step = next(steps)
            while True:
                try:
                    answer = await self._take_step(step)
                except httpx.HTTPError as e:
                    step = steps.throw(e)
                else:
                    step = steps.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result

    async def _take_step(self, step: Exchange | Pause) -> Answer | None:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            return None
        until, body = self._limit(step), bytearray()
        async with self._http.stream(**self._request(step)) as response:
            async for chunk in response.aiter_bytes():
                body += chunk
                self._check(len(body), until)
            return Answer(response.status_code, response.headers, bytes(body))
