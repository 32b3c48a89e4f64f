"""An agent of assent serve calls sandbox-local, and people decide; assent rap call does, directly and through gateways.

usage: hosted.py TREE SANDBOX GATEWAY GATEWAY: the directory that the tools work in, where sandbox-local answers, a
gateway in front of it that asks its caller, and one that asks the approvers of assent serve within two minutes
"""

import json
import os
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from datetime import datetime

TREE, SANDBOX, ASKS_USER, ASKS_APPROVERS = sys.argv[1:]
MARA = "mara@example.com"


def api(who, path, body=None, **headers):
    headers = {"Authorization": "Bearer " + os.environ[who], "Content-Type": "application/json", **headers}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(os.environ["url"] + "/v1" + path, data, headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def there(name):
    return os.path.exists(os.path.join(TREE, name))


def until(what, look):
    deadline = time.monotonic() + 30
    while not (found := look()):
        assert time.monotonic() < deadline, "in vain: " + what
        time.sleep(0.1)
    return found


def invoke(thread, call, operation, user="", **arguments):
    body = {"thread": thread, "id": call, "operation": operation, "arguments": arguments, "user": user}
    api("runtime", "/agents/coder/rap/calls", body)


def stands(thread, call, wait="0s"):
    query = urllib.parse.urlencode({"thread": thread, "id": call, "wait": wait})
    return api("runtime", "/agents/coder/rap/calls?" + query)


def result(thread, call):
    ended = stands(thread, call, "30s")
    assert ended["state"] == "done", ended
    return ended


def question(thread, call):
    """The request that people are asked for a call."""
    return api("mara", "/requests/" + until(f"a question of {call}", lambda: stands(thread, call).get("question")))


def vote(request, verdict, **more):
    body = {"verdict": verdict, "binding": request["revisions"][-1]["binding"], "shown_fully": True, **more}
    return api("mara", f"/requests/{request['id']}/votes", body, **{"If-Match": f'"{request["version"]}"'})


def opens(thread):
    invoke(thread, "open", "open_sandbox_direct", repo=TREE)
    assert not result(thread, "open").get("failed")


def rap_call(url, thread, operation, *more, **arguments):
    command = ["assent", "rap", "call", "--url", url, "--thread", thread, operation, "--args", json.dumps(arguments), *more]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True)


def ends(process, code):
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, (process.returncode, out, err)
    return out, err


# The hosted runtime: what there is; calls that a person approves, that a person denies, that the agent's file leaves out.
tools = api("runtime", "/agents/coder/rap/tools?session=t1")
assert len(tools["offers"]) == 9 and not tools["problems"], tools
opens("t1")
invoke("t1", "approved", "execute_command", command="echo ran; touch approved")
asked = question("t1", "approved")
assert json.loads(asked["revisions"][-1]["call"]["args"]) == {"command": "echo ran; touch approved"}, asked
assert not there("approved")
vote(asked, "approve")
assert result("t1", "approved")["outcome"]["text"] == "ran\n\n[exit code: 0]" and there("approved")
invoke("t1", "denied", "execute_command", command="touch denied")
vote(question("t1", "denied"), "deny", reason="not today")
invoke("t1", "unknown", "squash_sandbox", from_thread_id="t2")
for call in ("denied", "unknown"):
    assert result("t1", call)["why"] == "denied", result("t1", call)
assert not there("denied")
print(f"hosted: {len(tools['offers'])} tools; a call approved and run, one denied by a person, one by the agent's file")

# Questions of the tool server, of two calls of one id in two threads: each has its own answer.
opens("t2")
for thread in ("t1", "t2"):
    invoke(thread, "w1", "create_file", user=MARA, path="of-" + thread, content="x")
asked = {thread: question(thread, "w1") for thread in ("t1", "t2")}
for thread, label in (("t2", "No"), ("t1", "Yes once")):
    vote(asked[thread], "choose", choice=asked[thread]["question"]["choices"].index(label))
assert not result("t1", "w1").get("failed") and result("t2", "w1")["outcome"]["text"].startswith("Error:")
assert there("of-t1") and not there("of-t2")
print("hosted: questions of the tool server in two threads, under one id, answered differently")

# Commands of more than five seconds are subscriptions. The agent follows one to its end, rap call another; it leaves a third.
invoke("t1", "long", "execute_command", command="echo began; sleep 6; echo ended")
vote(question("t1", "long"), "approve")
ends(rap_call(SANDBOX, "t3", "open_sandbox_direct", repo=TREE), 0)
followed = rap_call(SANDBOX, "t3", "execute_command", command="echo began; sleep 6; echo ended")
began = time.monotonic()
left = rap_call(SANDBOX, "t3", "execute_command", "--within", "8s", command="echo began; sleep 10; touch left")
assert result("t1", "long")["subscription"], result("t1", "long")
events = until("an event", lambda: api("runtime", "/agents/coder/rap/events?thread=t1")["events"])
assert events[-1]["id"] == "long" and events[-1]["final"] and events[-1]["text"] == "ended\n\n[exit code: 0]", events
out, err = ends(followed, 0)
assert "still running" in out and "began" in out and out.endswith("ended\n\n[exit code: 0]\n"), (out, err)
out, err = ends(left, 1)
assert "longer than --within 8s" in err, (out, err)
print("subscriptions: followed to the exit code by the runtime and by rap call, and left by rap call")

# The tool server asks about a permission, the rules ask about the command. A gateway that asks approvers lets both be
# asked; one that asks its caller has asked it once.
more = {"command": "touch permitted", "additional_permissions": ["write:" + TREE]}
for gateway, thread in ((ASKS_APPROVERS, "g1"), (ASKS_USER, "g2")):
    ends(rap_call(gateway, thread, "open_sandbox_direct", repo=TREE), 0)
both = rap_call(ASKS_APPROVERS, "g1", "execute_command", "--answer", "1", "--json", **more)
pending = until("a request of the gateway", lambda: api("mara", "/requests?state=pending")["requests"])
asked = api("mara", "/requests/" + pending[0]["id"])
within = datetime.fromisoformat(asked["deadline"]) - datetime.fromisoformat(asked["created"])
assert 110 < within.total_seconds() <= 120, asked
assert not there("permitted")
vote(asked, "approve")
told = json.loads(ends(both, 0)[0])
assert [a["choices"][1] for a in told["asked"]] == ["Yes once"] and there("permitted"), told
os.remove(os.path.join(TREE, "permitted"))
out, err = ends(rap_call(ASKS_USER, "g2", "execute_command", "--answer", "0", **more), 1)
assert "this call has asked its user before" in out + err and not there("permitted"), (out, err)
print("gateways: approved by people within its own time, then asked by the tool server; a caller is asked once")

time.sleep(max(0, began + 13 - time.monotonic()))
assert not there("left"), "what rap call left went on"
