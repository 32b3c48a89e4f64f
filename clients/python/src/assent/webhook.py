"""Webhooks, as Standard Webhooks lays down: who sent one, when, and whether it came before."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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

    def __init__(
        self, secrets: str | Sequence[str], *, tolerance: float = 300.0, remember: int = 100_000, now: Callable[[], float] = time.time
    ) -> None:
        given = [secrets] if isinstance(secrets, str) else list(secrets)
        self._keys = [_key(secret) for secret in given]
        if not self._keys:
            raise WebhookError("no secret of the webhook: expected whsec_ and base64")
        self._tolerance, self._remember, self._now = tolerance, remember, now
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._lock = threading.Lock()

    def receive(self, headers: Mapping[str, str], body: bytes) -> Message:
        """The message, once. Where acting on it fails, `forget` it, and it is taken again when it is delivered again."""
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
        lower = {name.lower(): value for name, value in headers.items()}
        id, at, signatures = (lower.get("webhook-" + name, "") for name in ("id", "timestamp", "signature"))
        if not (id and signatures and at.isascii() and at.isdecimal() and len(at) <= 12):
            raise WebhookError("the headers Webhook-Id, Webhook-Timestamp and Webhook-Signature: one is missing, or unreadable")
        signed = b".".join([id.encode("utf-8", "surrogateescape"), at.encode(), body])
        wanted = [base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()) for key in self._keys]
        shown = [each[3:].encode("utf-8", "surrogateescape") for each in signatures.split(" ") if each.startswith("v1,")]
        if not any([hmac.compare_digest(each, want) for each in shown for want in wanted]):
            raise WebhookError("no signature fits: look at the secret, and at proxies that change bodies")
        if abs(self._now() - int(at)) > self._tolerance:
            raise WebhookError("the message is too old, or this clock is wrong")
        try:
            content = json.loads(body)
            return Message(id, str(content["type"]), dict(content["data"]))
        except (ValueError, KeyError, TypeError) as e:
            raise WebhookError("the body is no message of the server") from e


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) < 16:
        raise WebhookError("the secret of the webhook: expected whsec_ and base64 of 16 bytes or more")
    return key
