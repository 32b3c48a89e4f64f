"""Puts the line about an edit where the model reads the result of a tool."""

from __future__ import annotations

from typing import Any


def noted(result: Any, note: str | None) -> Any:
    """The result as it is, or with the line before it: in a text, in an object as `assent`, else beside `result`."""
    if note is None:
        return result
    if isinstance(result, str):
        return f"{note}\n{result}"
    if isinstance(result, dict) and "assent" not in result:
        return {"assent": note, **result}
    return {"assent": note, "result": result}
