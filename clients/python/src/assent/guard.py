"""A decorator for functions that are an agent's tools."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from .call import tool as tool_call
from .client import AsyncClient, Client
from .errors import CallError

F = TypeVar("F", bound=Callable[..., Any])


def guard(
    client: Client | AsyncClient,
    agent: str,
    tool: str | None = None,
    *,
    key: Callable[..., str] | None = None,
    server: str | None = None,
    session: str | None = None,
    principal: str | None = None,
    **asking: Any,
) -> Callable[[F], F]:
    """The function runs only as a call that may run, with exactly the arguments that were approved; else NotRun is raised.

    Its arguments are values of JSON. `tool` is the name in the agent's file; the function's own by default. `key` makes
    the idempotency key of the model call from the function's arguments; without it, each call of the function is a new
    one. Coroutine functions take an AsyncClient, others a Client. Keywords are the fields of Asking.
    """

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        for parameter in signature.parameters.values():
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise CallError(f"guard: {function.__name__} takes {parameter}, which has no name that people could be shown")
        name = tool or function.__name__

        def prepared(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            call = tool_call(name, bound.arguments, server=server, session=session, principal=principal)
            own = {"key": key(**bound.arguments)} if key else {}
            return call, {"accept": lambda edited: signature.bind(**edited), **asking, **own}

        if inspect.iscoroutinefunction(function):
            if not isinstance(client, AsyncClient):
                raise CallError(f"guard: {function.__name__} is a coroutine function, which takes an AsyncClient")

            @functools.wraps(function)
            async def awaited(*args: Any, **kwargs: Any) -> Any:
                call, more = prepared(args, kwargs)
                return await function(**(await client.take(agent, call, **more)).args)

            return cast(F, awaited)
        if not isinstance(client, Client):
            raise CallError(f"guard: {function.__name__} is no coroutine function, so it takes a Client")

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            call, more = prepared(args, kwargs)
            return function(**client.take(agent, call, **more).args)

        return cast(F, called)

    return decorate
