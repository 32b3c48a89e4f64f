"""Makes assent deliver, looks at what the receivers verified, and signs messages for webhook.Verify."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from datetime import datetime, timedelta, timezone

from standardwebhooks import Webhook


def api(path, token, body, **headers):
    headers = {"Authorization": "Bearer " + os.environ[token], "Content-Type": "application/json", **headers}
    with urllib.request.urlopen(urllib.request.Request(os.environ["url"] + path, json.dumps(body).encode(), headers)) as answer:
        return json.load(answer)


REQUESTS = 5
for i in range(REQUESTS):
    call = {"kind": "tool", "tool": "execute_trade", "args": {"amount": 20000 + i, "currency": "USD"}, "principal": "Zoë <b>"}
    opened = api("/v1/agents/trading-desk/requests", "runtime", {"call": call})
    api(f"/v1/requests/{opened['request']['id']}/cancel", "runtime", {"reason": "enough \u2028 <b>"})


def deliveries(name):
    whole_lines = open(name + ".log").read().split("\n")[1:-1]
    return [json.loads(line) for line in whole_lines]


deadline = time.monotonic() + 60
while len(deliveries("node")) < 2 * REQUESTS or sum(not d.get("refused", True) for d in deliveries("python")) < 2 * REQUESTS:
    assert time.monotonic() < deadline, (deliveries("node"), deliveries("python"))
    time.sleep(0.1)
for name in ("node", "python"):
    assert not [d for d in deliveries(name) if "error" in d], deliveries(name)
    assert {d["type"] for d in deliveries(name)} == {"request_opened", "request_cancelled"}
tries = [d["id"] for d in deliveries("python")]
assert all(tries.count(i) == 2 for i in set(tries)), "a delivery that was refused comes again under its id"

probe = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def verify(secret, headers, body):
    print(json.dumps({"do": "verify", "secret": secret, "headers": headers, "body": body}), file=probe.stdin, flush=True)
    return "error" not in json.loads(probe.stdout.readline())


secret, other = open("new.secret").read(), open("old.secret").read()
counts = {True: 0, False: 0}
for i in range(50):
    body, now = json.dumps({"n": i, "text": "é\u2028😀"}, ensure_ascii=i % 2 == 0), datetime.now(timezone.utc)
    sign = lambda by=secret, at=now, text=body: Webhook(by).sign(f"msg_{i}", at, text)
    for good, at, signature in [
        (True, now, sign()), (True, now, sign(other) + " " + sign()), (True, now, "v2,xyz " + sign()), (True, now - timedelta(minutes=4), sign(at=now - timedelta(minutes=4))),
        (False, now, sign(other)), (False, now, sign(text=body + " ")), (False, now, "v2," + sign()[3:]), (False, now - timedelta(minutes=6), sign(at=now - timedelta(minutes=6))),
    ]:
        headers = {"Webhook-Id": f"msg_{i}", "Webhook-Timestamp": str(int(at.timestamp())), "Webhook-Signature": signature}
        assert verify(secret, headers, body) == good, (good, headers)
        counts[good] += 1
print(f"{len(deliveries('node'))} deliveries to Node, {len(tries)} with a refused first try to Python, all verified; {counts[True]} messages of the library taken, {counts[False]} refused")
