"""Server-sent events of the ledger (GET /v1/events), without I/O."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .errors import UnreadableError
from .protocol import Exchange

FROM_NOW = -2  # begin with what happens next
FROM_START = -1  # begin with the first entry there is
SILENCE = 60.0  # seconds that a stream may bring nothing, not even a heartbeat
MAX_LINE = 2 << 20  # bytes


@dataclass(frozen=True)
class Event:
    """One sealed entry of the ledger."""

    index: int
    type: str
    leaf: dict[str, Any]


class Reader:
    """Reads the events of one connection after another. `after` is the entry to go on behind."""

    def __init__(self, after: int) -> None:
        self.after, self.buffer = after, b""
        self.id, self.type, self.data = "", "", list[str]()

    def connect(self) -> Exchange:
        self.buffer, self.id, self.type, self.data = b"", "", "", []
        headers = {"Accept": "text/event-stream"}
        if self.after != FROM_NOW:
            headers["Last-Event-ID"] = str(self.after)
        return Exchange("GET", "v1/events", headers=headers, longer=SILENCE)

    def feed(self, chunk: bytes) -> Iterator[Event]:
        *lines, self.buffer = (self.buffer + chunk).split(b"\n")
        if len(self.buffer) > MAX_LINE:
            raise UnreadableError("the stream of events: a line without an end")
        for line in lines:
            event = self._line(line.rstrip(b"\r"))
            if event is not None:
                yield event

    def _line(self, raw: bytes) -> Event | None:
        try:
            name, _, value = raw.decode().partition(":")
        except UnicodeDecodeError:
            raise UnreadableError("the stream of events: a line that is no UTF-8") from None
        value = value.removeprefix(" ")
        if name == "id":
            self.id = value
        elif name == "event":
            self.type = value
        elif name == "data":
            self.data.append(value)
        return self._end() if raw == b"" else None

    def _end(self) -> Event | None:
        id, type, data = self.id, self.type, "\n".join(self.data)
        self.id, self.type, self.data = "", "", []
        if id == "":
            if data:
                raise UnreadableError("the stream of events: an entry without its index")
            return None
        if not id.removeprefix("-").isdecimal() or int(id) < FROM_START:
            raise UnreadableError(f'the stream of events: "{id[:40]}" is no index')
        if not data:
            self.after = int(id)
            return None
        try:
            leaf = json.loads(data)
        except ValueError:
            leaf = None
        if int(id) < 0 or not isinstance(leaf, dict):
            raise UnreadableError(f"the stream of events: the data of entry {id}")
        self.after = int(id)
        return Event(int(id), type, leaf)
