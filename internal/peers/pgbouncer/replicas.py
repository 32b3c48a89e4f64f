"""Two replicas of assent on one store: every request is opened on one, answered on the other, and its permit presented to both at once.

usage: replicas.py ASSENT STORE DIRECTORY
"""

import concurrent.futures
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request

REQUESTS = 200

AGENT = """schema_version: "1.0.0"
metadata: {id: desk, name: Desk, version: "1.0.0", description: Trades}
interface: {input: {type: object}, output: {type: object}}
execution_policy: {id: agf.react, config: {instructions: Trade., model: any}}
action_space: {local_tools: [{alias: trade, approval: true}]}
"""
PEOPLE = """schema_version: "1.0.0"
people: [{id: alice}]
"""


def main():
    assent, store, work = sys.argv[1:]
    home = os.path.join(work, "replicas")
    os.mkdir(home)
    for name, text in {"desk.agf.yaml": AGENT, "people.yaml": PEOPLE, "store": store}.items():
        with open(os.path.join(home, name), "w", encoding="utf-8") as f:
            f.write(text)

    def token(name, *more):
        out = subprocess.run(
            [assent, "token", "create", "--store-file", "store", "--key", "key", "--name", name, *more], cwd=home, check=True, capture_output=True, text=True
        )
        return out.stdout.strip()

    tokens = {
        "runtime": token("runtime", "--scopes", "decide,request"),
        "alice": token("alice", "--scopes", "vote,read", "--person", "alice"),
    }
    serve = [assent, "serve", "--agents", ".", "--people", "people.yaml", "--store-file", "store", "--key", "key", "--listen", "127.0.0.1:0", "--json"]
    replicas, urls = [], []
    for _ in range(2):
        p = subprocess.Popen(serve, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        replicas.append(p)
        urls.append(json.loads(p.stdout.readline())["api"])
    try:
        run(urls, tokens)
    finally:
        for p in replicas:
            p.terminate()
        for p in replicas:
            if p.wait(timeout=30) != 0:
                raise SystemExit("a replica ended badly")
    verify(assent, home, store)


def call(url, token, path, body=None, **headers):
    """call returns the status and the document of one exchange."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json", **headers}
    try:
        with urllib.request.urlopen(urllib.request.Request(url + path, data=data, headers=headers), timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)


def run(urls, tokens):
    def one(n):
        here, there = urls[n % 2], urls[1 - n % 2]
        wanted = {"kind": "tool", "tool": "trade", "args": {"n": n}}
        status, opened = call(here, tokens["runtime"], "/v1/agents/desk/requests", {"call": wanted})
        assert status == 201, (status, opened)
        r = opened["request"]
        binding = r["revisions"][-1]["binding"]
        vote = {"verdict": "approve", "binding": binding, "shown_fully": True}
        status, voted = call(there, tokens["alice"], f"/v1/requests/{r['id']}/votes", vote, **{"If-Match": f'"{r["version"]}"'})
        assert status == 200 and voted["outcome"] == "approved", (status, voted)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            tries = [
                pool.submit(call, urls[i % 2], tokens["runtime"], f"/v1/requests/{r['id']}/consume", {"call": wanted, "key": f"attempt-{i}"})
                for i in range(4)
            ]
            statuses = sorted(t.result()[0] for t in tries)
        assert statuses == [200, 409, 409, 409], statuses

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(one, n) for n in range(REQUESTS)]:
            done.result()
    print(f"{REQUESTS} requests, opened and answered on different replicas, each used once")


def verify(assent, home, store):
    """verify exports the ledger from one more replica, and verifies it offline."""
    token = subprocess.run(
        [assent, "token", "create", "--store-file", "store", "--key", "key", "--name", "auditor", "--scopes", "read"], cwd=home, check=True, capture_output=True, text=True
    ).stdout.strip()
    serve = [assent, "serve", "--agents", ".", "--people", "people.yaml", "--store-file", "store", "--key", "key", "--listen", "127.0.0.1:0", "--json"]
    p = subprocess.Popen(serve, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        env = {**os.environ, "ASSENT_SERVER": json.loads(p.stdout.readline())["api"], "ASSENT_TOKEN": token}
        subprocess.run([assent, "audit", "export", "--out", "ledger.jsonl", "--public-key", "key.pub"], cwd=home, check=True, env=env)
    finally:
        p.terminate()
        p.wait(timeout=30)
    print(f"{store.split('?')[0]}: the ledger verifies")


main()
