"""The package as it is installed."""

from __future__ import annotations

import re
from importlib.metadata import metadata, requires
from importlib.resources import files
from pathlib import Path

import assent_client as assent

ROOT = Path(__file__).parents[3]


def test_it_is_typed_and_says_what_it_is() -> None:
    assert (files("assent_client") / "py.typed").is_file()
    assert metadata("assent-client")["License-Expression"] == "Apache-2.0"
    assert all(hasattr(assent, name) for name in assent.__all__)


def test_whatever_it_brings_along_has_its_line() -> None:
    page = (ROOT / "docs" / "dependencies.md").read_text()
    for requirement in requires("assent-client") or []:
        name = re.split(r"[^A-Za-z0-9-]", requirement)[0]
        assert f"`{name}`" in page, name
