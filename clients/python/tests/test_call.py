"""Arguments: sent byte for byte, and only where they can be read in one way."""

from __future__ import annotations

from typing import Any

import pytest
from desk_server import Desk

from assent_client import CallError, Client, NotRun, key_of, tool
from assent_client.call import body_of, values_of


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({}, "{}"),
        ({"b": 1, "a": "ü\u2028"}, '{"b": 1, "a": "ü\u2028"}'),
        ({"list": (1, 2.5, None, True)}, '{"list": [1, 2.5, null, true]}'),
        ('{"b":1.50,  "a":1e2}', '{"b":1.50,  "a":1e2}'),
        ('{"n": 9007199254740993}', '{"n": 9007199254740993}'),
    ],
)
def test_the_text_of_arguments(args: Any, text: str) -> None:
    assert body_of(tool("t", args)) == (f'{{"kind": "tool", "tool": "t", "args": {text}}}', text)


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ('{"a": 1, "a": 2}', "stands twice"),
        ('{"a": NaN}', "NaN is no JSON"),
        ({"a": float("inf")}, "what JSON can hold"),
        ('{"a": 1e999}', "no float"),
        ('{"a": 0.1000000000000000055511151231257827}', "no float"),
        ({"a": {1: 2}}, "a name of a member is no text"),
        ({"a": "\ud800"}, "surrogates not allowed"),
        ({"a": object()}, "not JSON serializable"),
        ("[1]", "expected a JSON object"),
        ("", "expected a JSON object"),
        ('{"a": ' * 5000 + "1" + "}" * 5000, "expected a JSON object"),
    ],
)
def test_arguments_that_can_not_be_presented(args: Any, why: str) -> None:
    with pytest.raises(CallError, match=why):
        body_of(tool("t", args))


def test_calls_that_can_not_be_presented() -> None:
    with pytest.raises(CallError, match="the call: expected what JSON can hold"):
        body_of(tool("t", {}, session="\ud800"))


def test_what_only_the_server_refuses_is_denied(desk: Desk, client: Client) -> None:
    for args in ['{"a": "\\ud800"}', '{"a": 1, "A": 2}']:
        with pytest.raises(NotRun, match="Policy denies this call"):
            client.take("desk", tool("quote", args))


def test_values_are_those_of_the_text() -> None:
    assert values_of('{"n": 9007199254740993, "x": 1.50, "y": -0.0, "z": 1e2}') == {
        "n": 9007199254740993,
        "x": 1.5,
        "y": 0.0,
        "z": 100.0,
    }


def test_keys_are_the_same_for_the_same_model_call_alone() -> None:
    assert key_of("s-1", "call_1") == "s-1/call_1"
    assert key_of("s/1", "c") != key_of("s", "1/c")
    long = key_of("s" * 500, "c")
    assert len(long) <= 180 and long != key_of("s" * 500, "d")
    assert key_of("\ud800", "c")
    for parts in [(), ("",), ("s", "")]:
        with pytest.raises(CallError):
            key_of(*parts)
