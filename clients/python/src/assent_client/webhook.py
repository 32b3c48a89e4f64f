"""Webhooks, as Standard Webhooks lays down: who sent one, when, and whether it came before."""

from __future__ import annotations

import json
import re
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from standardwebhooks import Webhook

from .errors import AssentError


class WebhookError(AssentError):
    """Answer with 400: this is no message of the server."""


class Replayed(WebhookError):
    """Answer with 204: this message has been received already."""


@dataclass(frozen=True)
class Message:
    """It wakes you up, no more: read the request before you act. Nothing that arrives here approves a call."""

    id: str
    type: str
    data: dict[str, Any]


class Receiver:
    """Checks messages: signature, age, and ids that came before. Safe to use from several threads."""

    def __init__(self, secrets: str | Sequence[str], *, remember: int = 100_000) -> None:
        given = [secrets] if isinstance(secrets, str) else secrets
        try:
            if not given or not all(re.fullmatch("whsec_[A-Za-z0-9+/]{16,}={0,2}", secret) for secret in given):
                raise ValueError("a secret of another form")
            self._hooks = [Webhook(secret) for secret in given]
        except ValueError as e:
            raise WebhookError("the secret of the webhook: expected whsec_ and base64") from e
        self._remember, self._seen, self._lock = remember, OrderedDict[str, None](), threading.Lock()

    def receive(self, headers: Mapping[str, str], body: bytes) -> Message:
        """The message, once. Where acting on it fails, `forget` it: it is delivered again."""
        message = self.verify(headers, body)
        with self._lock:
            if message.id in self._seen:
                raise Replayed(f"{message.id} has been received already")
            self._seen[message.id] = None
            while len(self._seen) > self._remember:
                self._seen.popitem(last=False)
        return message

    def forget(self, id: str) -> None:
        with self._lock:
            self._seen.pop(id, None)

    def verify(self, headers: Mapping[str, str], body: bytes) -> Message:
        """The message, whether it came before or not."""
        lower, fits = {name.lower(): value for name, value in headers.items()}, False
        for hook in self._hooks:
            with suppress(Exception):  # of many types, where headers are odd
                hook.verify(body, lower, json_parse=False)
                fits = True
        if not fits:
            raise WebhookError(
                "no signature of the last five minutes fits: look at the secret, at clocks, and at proxies"
            )
        try:
            content = json.loads(body)
            return Message(lower["webhook-id"], str(content["type"]), dict(content["data"]))
        except (ValueError, KeyError, TypeError) as e:
            raise WebhookError("the body is no message of the server") from e
