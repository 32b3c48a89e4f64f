from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import certifi
import pytest
from desk_server import Deliveries, Desk
from table import pytest_runtest_makereport, pytest_sessionfinish  # noqa: F401

from assent_client import Client


@pytest.fixture(scope="session", autouse=True)
def one_authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Gives the clients one certificate to load. Each would load all of certifi, which takes 50 ms of a processor."""
    end = "-----END CERTIFICATE-----\n"
    first, found, _ = Path(certifi.where()).read_text(encoding="utf-8").partition(end)
    file = tmp_path_factory.mktemp("authorities") / "one.pem"
    file.write_text(first + found, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(file))
        yield


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
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/hook", got
        server.shutdown()
