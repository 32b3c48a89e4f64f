"""Server-sent events of the ledger (GET /v1/events), without I/O."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .errors import UnreadableError

FROM_NOW = -2  # begin with what happens next
FROM_START = -1  # begin with the first entry there is
SILENCE = 60.0  # seconds that a stream may bring nothing, not even a heartbeat
MAX_EVENT = 4 << 20  # bytes without the end of an event


@dataclass(frozen=True)
class Event:
    """One sealed entry of the ledger."""

    index: int
    type: str
    leaf: dict[str, Any]


class Reader:
    """Reads the events of one connection after another. `after` is the entry to go on behind."""

    def __init__(self, after: int) -> None:
        self.after, self._rest, self._fields = after, b"", dict[str, str]()
        self._size = 0  # bytes of the lines since the last empty one

    def connect(self) -> dict[str, str]:
        """The headers of the next connection."""
        self._rest, self._fields, self._size = b"", {}, 0
        since = {} if self.after == FROM_NOW else {"Last-Event-ID": str(self.after)}
        return {"Accept": "text/event-stream", **since}

    def feed(self, chunk: bytes) -> Iterator[Event]:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            if line.rstrip(b"\r"):
                self._size += len(line)
                self._field(line)
                continue
            event, self._fields, self._size = self._event(), {}, 0
            if event:
                yield event
        if self._size + len(self._rest) > MAX_EVENT:
            raise UnreadableError("the stream of events: an event without an end")

    def _field(self, line: bytes) -> None:
        try:
            name, _, value = line.decode().rstrip("\r").partition(":")
        except UnicodeDecodeError as e:
            raise UnreadableError("the stream of events: a line that is no UTF-8") from e
        value = value.removeprefix(" ")
        before = self._fields.get(name)
        self._fields[name] = f"{before}\n{value}" if name == "data" and before is not None else value

    def _event(self) -> Event | None:
        id, data = self._fields.get("id", ""), self._fields.get("data", "")
        if not id and not data:
            return None  # a heartbeat
        try:
            index, leaf = int(id), json.loads(data or "{}")
        except ValueError:
            index, leaf = FROM_NOW, None
        if index < FROM_START or (data and index < 0) or not isinstance(leaf, dict):
            raise UnreadableError(f'the stream of events: the entry "{id[:40]}" can\'t be read')
        self.after = index
        return Event(index, self._fields.get("event", ""), leaf) if data else None
