from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from desk_server import Desk
from table import pytest_runtest_makereport, pytest_sessionfinish  # noqa: F401

from assent import Client


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    server = Desk(tmp_path)
    yield server
    server.kill()


@pytest.fixture
def client(desk: Desk) -> Iterator[Client]:
    with Client(desk.url, desk.runtime) as made:
        yield made
