"""The encoder of guard: a function's own types as values of JSON, and what was approved as those types again.

Plain values of JSON stay as they are. A parameter with another type has to be annotated with it. pydantic writes and
reads it: models, dataclasses, dates and times (ISO 8601), Decimal (a text, exact), Path, UUID, Enum, sets, tuples, and
bytes as base64 (in a model as its own configuration says). Scalars of numpy become numbers. A value that would come
back as another one is refused, such as a SecretStr.
"""

from __future__ import annotations

import inspect
import json
import sys
import types
import typing
from collections.abc import Callable
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from .arguments import reasons
from .errors import CallError

PLAIN = (str, int, float, bool, None, type(None), Any, object, dict, list, inspect.Parameter.empty)
MODES = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")


class Values:
    """Encodes and decodes the parameters of one function by their annotations."""

    def __init__(self, name: str, function: Callable[..., Any], parameters: list[inspect.Parameter]) -> None:
        self.name = name
        try:
            hints = typing.get_type_hints(function, include_extras=True)
        except (NameError, TypeError):  # a type that is not there at runtime
            hints = {}
        own = {each.name: hints.get(each.name, inspect.Parameter.empty) for each in parameters}
        rich = {parameter: hint for parameter, hint in own.items() if not _plain(hint)}
        self.adapters = {parameter: _adapter(hint) for parameter, hint in rich.items()}

    def encoded(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Values of JSON, from which decoded makes equal ones."""
        return {parameter: self._encoded(parameter, value) for parameter, value in arguments.items()}

    def decoded(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """What the function is called with."""
        return {parameter: self._decoded(parameter, value) for parameter, value in arguments.items()}

    def _encoded(self, parameter: str, value: Any) -> Any:
        value, adapter = _number(value), self.adapters.get(parameter)
        if adapter is None:
            return value
        try:
            read = adapter.validate_python(value)
            text = adapter.dump_json(read, by_alias=True, warnings="error")
            plain, again = json.loads(text), adapter.validate_json(text)
        except ValidationError as e:
            raise CallError(f"{self.name} can't be called with this: {parameter}: {reasons(e)}") from e
        except (PydanticSerializationError, ValueError) as e:
            raise CallError(f"{self.name}: {parameter} can't be shown to people as JSON: {type(e).__name__}") from e
        if not _same(read, again):
            raise CallError(f"{self.name}: {parameter} would not come back from JSON as it was: give it another type")
        return plain

    def _decoded(self, parameter: str, value: Any) -> Any:
        adapter = self.adapters.get(parameter)
        if adapter is None:
            return value
        try:
            return adapter.validate_json(json.dumps(value))
        except ValidationError as e:
            why = f"{self.name} can't be called with what was approved: {parameter}: {reasons(e)}"
            raise CallError(why) from e


def _plain(hint: Any) -> bool:
    """Whether values of a type are values of JSON already, or may be anything."""
    if hint in PLAIN or get_origin(hint) is Literal:
        return True
    if get_origin(hint) in (Union, types.UnionType, list, dict):
        return all(map(_plain, get_args(hint)))
    return typing.is_typeddict(hint) and all(map(_plain, hint.__annotations__.values()))


def _adapter(hint: Any) -> TypeAdapter[Any] | None:
    """None for a type that pydantic doesn't know, whose values have to be values of JSON."""
    try:
        return TypeAdapter(hint, config=MODES)
    except PydanticUserError:
        pass  # a model or a dataclass has a configuration of its own
    try:
        return TypeAdapter(hint)
    except PydanticUserError:
        return None


def _number(value: Any) -> Any:
    """A scalar of numpy as a number of Python."""
    numpy = sys.modules.get("numpy")
    return value.item() if numpy is not None and isinstance(value, numpy.generic) else value


def _same(one: Any, other: Any) -> bool:
    try:
        return type(one) is type(other) and bool(one == other)
    except Exception:  # equality of the type's own may raise anything
        return False
