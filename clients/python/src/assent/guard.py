"""A decorator for functions that are an agent's tools."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from .aio import AsyncClient
from .call import tool as tool_call
from .errors import CallError, mark
from .sync import Client

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
    """The function runs only as a call that may, with exactly the arguments that were approved; else NotRun is raised.

    Its arguments are values of JSON. `tool` is the name in the agent's file; the function's own by default. `key` makes
    the idempotency key of the model call from the function's arguments; without it, each call of the function is a new
    one. Coroutine functions take an AsyncClient, others a Client. Keywords are the fields of Asking.
    """

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        for parameter in signature.parameters.values():
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise CallError(f"guard: {function.__name__} takes {parameter}, which has no name to show to people")
        name = tool or function.__name__

        def fits(edited: dict[str, Any]) -> None:
            try:
                signature.bind(**edited)
            except TypeError as e:
                raise CallError(f"{name} can't be called with what was approved: {e}") from e

        def prepared(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as e:
                raise CallError(f"{name} can't be called with this: {e}") from e
            bound.apply_defaults()
            call = tool_call(name, bound.arguments, server=server, session=session, principal=principal)
            own = {"key": key(**bound.arguments)} if key else {}
            return call, {"accept": fits, **asking, **own}

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            ran = False
            try:
                call, more = prepared(args, kwargs)
                approved = (await cast(AsyncClient, client).take(agent, call, **more)).args
                ran = True
                return await function(**approved)
            except BaseException as e:
                mark(e, ran)
                raise

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            ran = False
            try:
                call, more = prepared(args, kwargs)
                approved = cast(Client, client).take(agent, call, **more).args
                ran = True
                return function(**approved)
            except BaseException as e:
                mark(e, ran)
                raise

        if isinstance(client, AsyncClient) != inspect.iscoroutinefunction(function):
            raise CallError(f"guard: {function.__name__}: coroutines take an AsyncClient, other functions a Client")
        return cast(F, awaited if isinstance(client, AsyncClient) else called)

    return decorate
