"""docs/guides/python.md, as a reader goes through it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from desk_server import Beside, Desk, binary, free_port, until

import assent_client as assent

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "python.md"
NAMED = re.compile(r"`([a-z/]+\.(?:py|agf\.yaml|yaml))`[^`]*?:\n\n```(?:python|yaml)\n(.*?)```", re.S)
SHELL = re.compile(r"```(sh|console)\n(.*?)```", re.S)
ANSWERS: dict[int, dict[str, Any]] = {
    20000: {"arguments": '{"symbol": "ACME", "amount": 15000}', "reason": "less"},
    30000: {"verdict": "approve"},
    40000: {"verdict": "deny", "reason": "Too much for one day."},
}


class Mara:
    """Answers as the guide says that she does."""

    def __init__(self, url: str, store: Path) -> None:
        self.url = url
        self.token = Desk.made(store, "mara", "read,vote", "mara@example.com")

    def answers_until_it_ends(self, runs: Beside) -> bool:
        headers = {"Authorization": "Bearer " + self.token}
        with httpx.Client(base_url=self.url, headers=headers) as http:
            for each in http.get("/v1/requests?state=pending").raise_for_status().json()["requests"]:
                request = http.get(f"/v1/requests/{each['id']}").raise_for_status().json()
                self.answer(http, request)
        return not runs.is_alive()

    def answer(self, http: httpx.Client, request: Any) -> None:
        revision = request["revisions"][-1]
        answer = ANSWERS[assent.call.values_of(revision["call"]["args"])["amount"]]
        body = {**answer, "binding": revision["binding"], "shown_fully": True}
        path = f"/v1/requests/{request['id']}/{'edits' if 'arguments' in body else 'votes'}"
        http.post(path, json=body, headers={"If-Match": f'"{request["version"]}"'}).raise_for_status()


class Shell:
    """One shell, in which the reader types every command."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, str(free_port())
        path = f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        env = {**os.environ, "PATH": path}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(["bash"], cwd=folder, env=env, text=True, stdin=pipe, stdout=pipe)

    def says(self, command: str) -> str:
        """What a command prints."""
        assert self.process.stdin is not None and self.process.stdout is not None
        typed = command.replace("7717", self.port) + " 2>>told.log\necho; echo -- end --"
        print(typed, file=self.process.stdin, flush=True)
        return "".join(iter(self.process.stdout.readline, "-- end --\n")).removesuffix("\n")

    def serves(self, block: str) -> Mara:
        """Starts the server of a block, and does the rest of it."""
        serve, *rest = block.splitlines()
        self.says(serve.replace("&", ">serve.log 2>&1 & server=$!;"))
        until(self.ready, "the server does not start")
        for line in rest:
            assert self.says(line) == ""
        return Mara(f"http://127.0.0.1:{self.port}", self.folder / "desk.db")

    def ready(self) -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/readyz").status_code == 200
        except httpx.HTTPError:
            return False

    def end(self) -> None:
        self.process.communicate("kill $server\n")


def test_guide(tmp_path: Path) -> None:
    text = GUIDE.read_text()
    for name, content in NAMED.findall(text):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    shutil.copy(binary(), tmp_path / "assent")
    (_, install), (_, serve), *commands = SHELL.findall(text)
    assert "pip install" in install
    shell = Shell(tmp_path)
    try:
        mara = shell.serves(serve)
        for kind, block in commands:
            assert kind == "console"
            command, _, shown = block.removeprefix("$ ").partition("\n")
            runs = Beside(partial(shell.says, command))
            until(partial(mara.answers_until_it_ends, runs), "the program does not end")
            assert runs.done() == shown, (tmp_path / "told.log").read_text()
    finally:
        shell.end()


def test_the_rest_of_the_guide(monkeypatch: pytest.MonkeyPatch) -> None:
    text = GUIDE.read_text()
    webhook = re.findall(r"```python\n(.*?)```", text, re.S)[-1]
    monkeypatch.setenv("WEBHOOK_SECRET", "whsec_" + "a" * 32)
    names: dict[str, Any] = {"assent": assent, "os": os}
    exec(webhook, names)
    with pytest.raises(assent.WebhookError):
        names["on_post"]({}, b"{}")
    for error in re.findall(r"^\| `(\w+Error|NotRun|StillPending)`", text, re.M):
        assert issubclass(getattr(assent, error), assent.AssentError)
    fields = set(re.findall(r"^\| `([a-z]+)` \|", text, re.M))
    assert fields == set(assent.Asking.__dataclass_fields__)
