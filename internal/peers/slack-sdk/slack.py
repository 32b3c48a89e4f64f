"""Plays Slack and its users: takes what assent posts, holds it against Block Kit, and clicks."""

import json
import os
import queue
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from slack_sdk.models.blocks import Block
from slack_sdk.models.views import View
from slack_sdk.signature import SignatureVerifier

URL, PORT = os.environ["url"], int(sys.argv[1])
SECRET = open("slack.secret").read()
signer = SignatureVerifier(SECRET)
posted: "queue.Queue[tuple[str, dict]]" = queue.Queue()
checked = 0


class Slack(BaseHTTPRequestHandler):
    """Slack's Web API and the response URLs of its interactions."""

    def do_POST(self):
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        form = json.loads(text) if self.headers["Content-Type"].startswith("application/json") else dict(urllib.parse.parse_qsl(text))
        method = self.path.rsplit("/", 1)[-1]
        posted.put((method, form))
        answer = json.dumps({"ok": True, "channel": form.get("channel"), "ts": f"{time.time():.6f}"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def told(method):
    """The next call of a method of Slack's. Its blocks must be what Slack's own models make of them."""
    deadline = time.monotonic() + 20
    while True:
        name, form = posted.get(timeout=max(0.1, deadline - time.monotonic()))
        if name == method:
            return form


def blocks_of(form):
    global checked
    blocks = json.loads(form["blocks"])
    parsed = Block.parse_all(blocks)
    assert len(parsed) == len(blocks), "a block that Slack's models don't know"
    for block, raw in zip(parsed, blocks):
        block.validate_json()
        assert block.to_dict() == raw, f"Slack's models make\n{block.to_dict()}\nof\n{raw}"
        checked += 1
    return blocks


def elements_of(blocks, kind):
    return {e["action_id"]: e for b in blocks if b["type"] == "actions" for e in b["elements"] if e["type"] == kind and "url" not in e}


def buttons(blocks):
    return elements_of(blocks, "button")


def api(method, path, token, body=None, **headers):
    data = None if body is None else json.dumps(body).encode()
    r = urllib.request.Request(URL + path, data, {"Authorization": "Bearer " + os.environ[token], "Content-Type": "application/json", **headers}, method=method)
    with urllib.request.urlopen(r) as answer:
        return json.load(answer)


def post(payload, *, stamp=None, signature=None, times=1):
    """Posts an interaction as Slack does, and returns the status of the last time."""
    body = "payload=" + urllib.parse.quote(json.dumps(payload))
    stamp = stamp or str(int(time.time()))
    signature = signature or signer.generate_signature(timestamp=stamp, body=body)
    headers = {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": signature, "Content-Type": "application/x-www-form-urlencoded"}
    for _ in range(times):
        try:
            with urllib.request.urlopen(urllib.request.Request(URL + "/slack/default", body.encode(), headers)) as answer:
                status = answer.status
        except urllib.error.HTTPError as error:
            status = error.code
    return status


def click(element, user="U1", team="T0123", ts="1.000100", option=None, **sent):
    picked = {"value": element["value"]} if option is None else {"selected_option": element["options"][option]}
    action = {"type": element["type"], "action_id": element["action_id"], "block_id": "b", "action_ts": "1", **picked}
    return post({
        "type": "block_actions", "user": {"id": user, "team_id": team}, "team": {"id": team}, "api_app_id": "A1", "trigger_id": "1.2.abc",
        "container": {"type": "message", "message_ts": ts, "channel_id": "C0456"}, "channel": {"id": "C0456"},
        "response_url": f"http://127.0.0.1:{PORT}/response", "actions": [action],
    }, **sent)


def opened(amount):
    call = {"kind": "tool", "tool": "execute_trade", "args": {"amount": amount, "currency": "USD"}}
    asked = api("POST", "/v1/agents/trading-desk/requests", "runtime", {"call": call})
    assert asked["outcome"] == "pending", asked
    return asked["request"]["id"], buttons(blocks_of(told("chat.postMessage")))


def state(request):
    return api("GET", "/v1/requests/" + request, "runtime")


def wait_for(request, wanted, votes=0):
    deadline = time.monotonic() + 20
    while (now := state(request))["state"] != wanted or len(now.get("votes", [])) < votes:
        assert time.monotonic() < deadline, f"{request} is {now['state']} with {now.get('votes')}, not {wanted}"
        time.sleep(0.05)
    return now


def named(elements, word):
    return next(e for e in elements.values() if e["text"]["text"].lower().startswith(word))


threading.Thread(target=ThreadingHTTPServer(("127.0.0.1", PORT), Slack).serve_forever, daemon=True).start()

# Two people approve; nobody else can, and no forged, old or repeated click counts.
request, elements = opened(20000)
approve = named(elements, "approve")
stale = str(int(time.time()) - 600)
assert click(approve, signature="v0=" + "0" * 64) in (400, 401, 403), "a forged signature was taken"
assert click(approve, stamp=stale) in (400, 401, 403), "an old click was taken"
assert click(approve, team="T9999") >= 400 or state(request)["version"] == 1, "a click of another workspace was taken"
assert click(approve, user="U9") == 200 and told("response"), "an unknown user gets no answer"
assert not state(request).get("votes"), "a stranger has voted"
assert click(approve, times=2) in (400, 401, 403, 409), "a click was taken twice"
wait_for(request, "pending", votes=1)
assert click(approve, user="U2") == 200
assert [v["channel"] for v in wait_for(request, "approved")["votes"]] == ["slack", "slack"]
while approve["action_id"] in buttons(blocks_of(told("chat.update"))):
    pass  # the message is written again until it has no buttons

# A denial asks for its reason in a form.
request, elements = opened(30000)
assert click(named(elements, "deny")) == 200
opening = told("views.open")
view = json.loads(opening["view"]) if isinstance(opening["view"], str) else opening["view"]
modal = View(**view)
modal.validate_json()
block = next(b for b in view["blocks"] if b["type"] == "input")
values = {block["block_id"]: {block["element"]["action_id"]: {"type": "plain_text_input", "value": "too <much> & *bold*"}}}
assert post({"type": "view_submission", "user": {"id": "U1", "team_id": "T0123"}, "team": {"id": "T0123"}, "trigger_id": "2.2.abc",
             "view": {**view, "id": "V1", "state": {"values": values}}}) == 200
assert wait_for(request, "denied")["reason"] == "too <much> & *bold*"

# A button of a request that has ended changes nothing.
assert click(named(elements, "approve"), user="U2") in (200, 400, 409)
assert state(request)["state"] == "denied"

# A tool's question: its choices are buttons, or a menu.
def asked(key, choices):
    ask = {"call": {"kind": "tool", "tool": "get_quote", "args": {"symbol": "ACME"}},
           "question": {"asker": "files", "prompt": "Which <one>?", "choices": choices, "default": 1, "groups": ["risk"]}}
    opened = api("POST", "/v1/agents/trading-desk/questions", "runtime", ask, **{"Idempotency-Key": key})
    return opened["request"]["id"], blocks_of(told("chat.postMessage"))


question, blocks = asked("q1", ["First & last", "Second"])
assert click(next(e for e in buttons(blocks).values() if "First" in e["text"]["text"])) == 200
assert wait_for(question, "answered")["chosen"] == 0
question, blocks = asked("q2", [f"Choice {i}" for i in range(60)])
(menu,) = elements_of(blocks, "static_select").values()
assert click(menu, option=42) == 200
assert wait_for(question, "answered")["chosen"] == 42
print(f"two approvals, a denial with its reason, two choices; {checked} blocks and a form as Slack's models write them; forged, old, repeated and strange clicks refused")
