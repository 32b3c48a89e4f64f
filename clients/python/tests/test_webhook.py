"""Webhooks: those of a real server are taken once, and nothing else is."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from desk_server import BIG, Deliveries, Desk, until
from standardwebhooks import Webhook

from assent_client import Client, Receiver, Replayed, WebhookError, tool

SECRET = "whsec_" + "a" * 32
OTHER = "whsec_" + "b" * 32
BODY = b'{"type": "request_opened", "data": {"request": "apr_1"}}'


def test_a_message_of_the_server_is_taken_once(tmp_path: Path, hook: tuple[str, Deliveries]) -> None:
    url, got = hook
    desk = Desk(tmp_path, webhook=url)
    try:
        with Client(desk.url, desk.runtime) as client:
            asked = client.open("desk", tool("trade", BIG)).request
        until(lambda: len(got) > 0, "no message comes")
        receiver = Receiver([OTHER, desk.secret])
        headers, body = got[0]
        message = receiver.receive(headers, body)
        assert asked is not None
        assert (message.type, message.data["request"]) == ("request_opened", asked.id)
        with pytest.raises(Replayed):
            receiver.receive(headers, body)
        receiver.forget(message.id)
        assert receiver.receive(headers, body) == message
        with pytest.raises(WebhookError, match="no signature"):
            Receiver(OTHER).receive(headers, body)
        with pytest.raises(WebhookError, match="no signature"):
            receiver.verify(headers, body.replace(b"trade", b"trail"))
    finally:
        desk.kill()


def signed(body: bytes = BODY, age: timedelta = timedelta(), id: str = "msg_1") -> dict[str, str]:
    at = datetime.now(timezone.utc) - age
    signature = Webhook(SECRET).sign(id, at, body.decode())
    return {"Webhook-Id": id, "Webhook-Timestamp": str(int(at.timestamp())), "Webhook-Signature": signature}


def test_messages_that_are_refused() -> None:
    receiver = Receiver(SECRET)
    assert receiver.verify(signed(), BODY).id == "msg_1"
    for headers in [
        {},
        signed(age=timedelta(minutes=6)),
        signed(age=timedelta(minutes=-6)),
        {**signed(), "Webhook-Signature": "v1"},
        {**signed(), "Webhook-Signature": "v1,?"},
        {**signed(), "Webhook-Signature": signed()["Webhook-Signature"].replace("v1", "v2")},
        {**signed(), "Webhook-Timestamp": "now"},
        {**signed(), "Webhook-Timestamp": "nan"},
        {**signed(), "Webhook-Id": "msg_2"},
    ]:
        with pytest.raises(WebhookError, match="no signature"):
            receiver.verify(headers, BODY)
    for body in [b"no JSON", b"[]", b'{"type": "x"}', b'{"type": "x", "data": 1}']:
        with pytest.raises(WebhookError, match="no message of the server"):
            receiver.verify(signed(body), body)
    with pytest.raises(WebhookError, match="no signature"):
        receiver.verify(signed(), b"\xff")


def test_ids_are_remembered_up_to_a_bound() -> None:
    receiver = Receiver(SECRET, remember=2)
    for id in ("msg_1", "msg_2", "msg_3"):
        receiver.receive(signed(id=id), BODY)
    with pytest.raises(Replayed):
        receiver.receive(signed(id="msg_3"), BODY)
    assert receiver.receive(signed(id="msg_1"), BODY).id == "msg_1"


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_é", "whsec_...", "whsec_YQ==", "a" * 32])
def test_a_secret_that_is_none(secret: str) -> None:
    with pytest.raises(WebhookError, match="the secret of the webhook"):
        Receiver(secret)
    with pytest.raises(WebhookError, match="the secret of the webhook"):
        Receiver([SECRET, secret])
