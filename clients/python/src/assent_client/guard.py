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
from .values import Values

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

    `tool` is the name in the agent's file; the function's own by default. `key` makes the idempotency key of the model
    call from the arguments as people see them; without it, each call of the function is a new one. Coroutine functions
    take an AsyncClient, others a Client. Keywords are the fields of Asking. Arguments are values of JSON or of the
    annotated types that values.py encodes. `self` and `cls` of methods are not arguments.
    """

    def decorate(function: F) -> F:
        _refuse(client, function)
        signature = inspect.signature(function)
        parameters = list(signature.parameters.values())
        receivers = [each.name for each in parameters[:1] if each.name in ("self", "cls")]
        parameters = parameters[len(receivers) :]
        for parameter in parameters:
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise CallError(f"guard: {function.__name__} takes {parameter}, which has no name to show to people")
        name = tool or function.__name__
        own = inspect.Signature(parameters)
        values = Values(name, function, parameters)

        def fits(edited: dict[str, Any]) -> None:
            try:
                own.bind(**edited)
            except TypeError as e:
                raise CallError(f"{name} can't be called with what was approved: {e}") from e
            values.decoded(edited)

        def prepared(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any], dict[str, Any]]:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as e:
                raise CallError(f"{name} can't be called with this: {e}") from e
            bound.apply_defaults()
            given = dict(bound.arguments)
            receiver = [given.pop(each) for each in receivers]
            shown = values.encoded(given)
            call = tool_call(name, shown, server=server, session=session, principal=principal)
            return receiver, call, {"accept": fits, **asking, **({"key": key(**shown)} if key else {})}

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            ran = False
            try:
                receiver, call, more = prepared(args, kwargs)
                approved = values.decoded((await cast(AsyncClient, client).take(agent, call, **more)).args)
                ran = True
                return await function(*receiver, **approved)
            except BaseException as e:
                mark(e, ran)
                raise

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            ran = False
            try:
                receiver, call, more = prepared(args, kwargs)
                approved = values.decoded(cast(Client, client).take(agent, call, **more).args)
                ran = True
                return function(*receiver, **approved)
            except BaseException as e:
                mark(e, ran)
                raise

        return cast(F, awaited if isinstance(client, AsyncClient) else called)

    return decorate


def _refuse(client: Client | AsyncClient, function: Any) -> None:
    """Refuses what guard can't run as one call."""
    name = getattr(function, "__name__", repr(function))
    if isinstance(function, (staticmethod, classmethod)):
        raise CallError(f"guard: {name}: put guard below @{type(function).__name__}")
    if not inspect.isroutine(function) or not hasattr(function, "__name__"):
        raise CallError(f"guard: {name}: expected a function or a method")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise CallError(f"guard: {name} is a generator, whose body runs after its call: return a list")
    if isinstance(client, AsyncClient) != inspect.iscoroutinefunction(function):
        raise CallError(f"guard: {name}: coroutines take an AsyncClient, other functions a Client")
