"""A real assent server for tests: the built binary, its own store, and people who answer through the API."""

from __future__ import annotations

import base64
import json
import os
import secrets
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

HERE = Path(__file__).resolve().parent
Deliveries = list[tuple[dict[str, str], bytes]]  # webhooks: headers and bodies
BIG: dict[str, Any] = {"amount": 20000, "currency": "USD"}


def binary() -> str:
    return os.environ["ASSENT_BIN"]


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


class Desk:
    """One server, which may be killed and started again at the same address."""

    def __init__(self, folder: Path, webhook: str | None = None) -> None:
        self.folder, self.store = folder, folder / "assent.db"
        shutil.copytree(HERE / "desk", folder / "desk")
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.secret = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
        (folder / "hook.secret").write_text(self.secret)
        config = {
            "agents": str(folder / "desk"),
            "policies": str(folder / "desk" / "policies"),
            "people": str(folder / "desk" / "people.yaml"),
            "listen": f"127.0.0.1:{self.port}",
            "store": str(self.store),
            "permits": [{"audience": "broker", "targets": ["tool ship"]}],
        }
        if webhook:
            hook = {"name": "test", "url": webhook, "secret_file": str(folder / "hook.secret"), "loopback": True}
            config["notify"] = {"webhooks": [hook]}  # type: ignore[assignment]
        (folder / "serve.yaml").write_text(json.dumps(config))
        self.process: subprocess.Popen[bytes] | None = None
        self.start()
        self.runtime = self.token("runtime", "decide,request,read")
        self.mara = self.token("mara", "read,vote", "mara@example.com")

    def start(self) -> None:
        with open(self.folder / "serve.log", "ab") as log:
            command = [binary(), "serve", "--config", str(self.folder / "serve.yaml")]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        until(self.ready, "the server does not start")

    def ready(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.folder / "serve.log").read_text()
        try:
            return httpx.get(self.url + "/readyz", timeout=1).status_code == 200
        except httpx.HTTPError:
            return False

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def token(self, name: str, scopes: str, person: str = "") -> str:
        return self.made(self.store, name, scopes, person)

    @staticmethod
    def made(store: Path, name: str, scopes: str, person: str = "") -> str:
        command = [binary(), "token", "create", "--store", str(store), "--name", name, "--scopes", scopes, "--json"]
        command += ["--agents", "*"] + (["--person", person] if person else [])
        secret: str = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["secret"]
        return secret

    def api(self, method: str, path: str, token: str, body: Any = None, **headers: str) -> Any:
        headers = {"Authorization": f"Bearer {token}", **headers}
        answer = httpx.request(method, self.url + path, json=body, headers=headers, timeout=30)
        assert answer.status_code < 300, answer.text
        return answer.json()

    def waiting(self, count: int = 1) -> list[Any]:
        """Requests that people are asked about, once there are so many; whole."""
        found: list[Any] = []

        def there() -> bool:
            found[:] = self.api("GET", "/v1/requests?state=pending", self.mara)["requests"]
            return len(found) >= count

        until(there, f"no {count} requests wait")
        return [self.api("GET", f"/v1/requests/{each['id']}", self.mara) for each in found]

    def vote(self, verdict: str, request: Any = None, **fields: Any) -> Any:
        request = request or self.waiting()[0]
        body = {"verdict": verdict, "binding": request["revisions"][-1]["binding"], "shown_fully": True, **fields}
        version = {"If-Match": f'"{request["version"]}"'}
        return self.api("POST", f"/v1/requests/{request['id']}/votes", self.mara, body, **version)

    def edit(self, arguments: str, request: Any = None) -> Any:
        request = request or self.waiting()[0]
        body = {
            "arguments": arguments,
            "binding": request["revisions"][-1]["binding"],
            "reason": "less",
            "shown_fully": True,
        }
        version = {"If-Match": f'"{request["version"]}"'}
        return self.api("POST", f"/v1/requests/{request['id']}/edits", self.mara, body, **version)

    def freeze(self) -> None:
        self.api("POST", "/v1/freezes", self.mara, {"agent": "desk", "reason": "stop"})

    def change_agent(self, old: str, new: str) -> None:
        """Changes the agent's file, and waits until the change is in force."""
        path = self.folder / "desk" / "agent.agf.yaml"
        before = self.plan()
        fresh = path.with_name("agent.new")
        fresh.write_text(path.read_text().replace(old, new))
        os.replace(fresh, path)
        until(lambda: self.plan() != before, "the change is not in force")

    def plan(self) -> str:
        plan: str = self.api("GET", "/v1/agents", self.runtime)["agents"][0]["plan"]
        return plan


def until(true: Callable[[], bool], otherwise: str, seconds: float = 30) -> None:
    last = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < last, otherwise
        time.sleep(0.02)


class Beside(threading.Thread):
    """Does something beside the test; what it raises fails the test when it is joined."""

    def __init__(self, act: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self.act, self.result, self.error = act, None, None  # type: tuple[Callable[[], Any], Any, BaseException | None]
        self.start()

    def run(self) -> None:
        try:
            self.result = self.act()
        except BaseException as e:
            self.error = e

    def done(self) -> Any:
        self.join(40)
        assert not self.is_alive(), "it does not end"
        if self.error:
            raise self.error
        return self.result
