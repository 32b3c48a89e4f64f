from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from desk_server import Deliveries, Desk
from table import pytest_runtest_makereport, pytest_sessionfinish  # noqa: F401

from assent_client import Client


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    server = Desk(tmp_path)
    yield server
    server.kill()


@pytest.fixture
def client(desk: Desk) -> Iterator[Client]:
    with Client(desk.url, desk.runtime) as made:
        yield made


@pytest.fixture
def hook() -> Iterator[tuple[str, Deliveries]]:
    got: Deliveries = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append((dict(self.headers.items()), self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/hook", got
        server.shutdown()
