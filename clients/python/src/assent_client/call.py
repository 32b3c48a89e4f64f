"""Calls: what an agent is about to do, and the exact text of its arguments."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any
from urllib.parse import quote

from .errors import CallError

Arguments = Mapping[str, Any] | str
"""Arguments as an object, or as a JSON text, which is sent byte for byte."""


def tool(name: str, args: Arguments, *, server: str | None = None, **fields: Any) -> dict[str, Any]:
    """The call of a tool, or of an MCP server's tool. Fields: session, principal, annotations, tool_definition."""
    call: dict[str, Any] = {"kind": "mcp_tool" if server else "tool", "tool": name, "args": args}
    if server:
        call["server"] = server
    return {**call, **{name: value for name, value in fields.items() if value is not None}}


def key_of(*parts: str) -> str:
    """The idempotency key of one model call, such as key_of(session, tool_call_id): the same parts, the same key."""
    if not parts or not all(parts):
        raise CallError("an idempotency key: expected texts that are not empty, such as a session and a tool call's id")
    key = "/".join(quote(part, safe=":@+=,", errors="surrogatepass") for part in parts)
    return key if len(key) <= 180 else "sha256:" + hashlib.sha256(key.encode()).hexdigest()


def text_of(args: Arguments) -> str:
    """The JSON text of arguments: a text as it is, an object in JSON. It can be read in one way only."""
    try:
        if not _named(args):
            raise CallError("arguments: a name of a member is no text")
        text = args if isinstance(args, str) else json.dumps(dict(args), ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError) as e:  # UnicodeEncodeError is a ValueError
        raise e if isinstance(e, CallError) else CallError(f"arguments: expected what JSON can hold: {e}") from e
    values_of(text)
    return text


def _named(value: Any) -> bool:
    """Whether every member has a text for a name: JSON would make one of a number."""
    if isinstance(value, Mapping):
        return all(isinstance(name, str) for name in value) and all(map(_named, value.values()))
    return all(map(_named, value)) if isinstance(value, (list, tuple)) else True


def values_of(text: str) -> dict[str, Any]:
    """The values of arguments. Those that Python would change, such as numbers that no float holds, are refused."""
    try:
        values = json.loads(text, object_pairs_hook=_pairs, parse_float=_number, parse_constant=_constant)
    except (ValueError, RecursionError) as e:
        raise e if isinstance(e, CallError) else CallError(f"arguments: expected a JSON object: {e}") from e
    if not isinstance(values, dict):
        raise CallError(f"arguments: expected a JSON object, such as {{}}, not {text[:20]}")
    return values


def body_of(call: Mapping[str, Any]) -> tuple[str, str]:
    """The JSON of a call, and the text of its arguments, which stands in it byte for byte."""
    args = text_of(call.get("args", "{}"))
    rest = {name: value for name, value in call.items() if name != "args"}
    try:
        text = json.dumps(rest, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError) as e:
        raise CallError(f"the call: expected what JSON can hold: {e}") from e
    return text[:-1] + (", " if rest else "") + f'"args": {args}}}', args


def _pairs(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise CallError("arguments: a name stands twice in one object")
    return out


def _number(text: str) -> float:
    number = float(text)
    try:
        same = number not in (float("inf"), float("-inf")) and Decimal(text) == Decimal(repr(number))
    except ArithmeticError:  # an exponent that Decimal doesn't hold
        same = False
    if not same:
        raise CallError(f"arguments: no float of Python is {text[:40]}")
    return number


def _constant(text: str) -> float:
    raise CallError(f"arguments: {text} is no JSON")
