"""Keeps docs/reference/adapters.md: a row of each framework, as its cases came out. ASSENT_UPDATE=1 writes it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "adapters.md"
CASE = re.compile(r"test_(\d\d)_")
ROWS: dict[type, dict[str, bool]] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report: Any = yield
    suite, case = getattr(item, "cls", None), CASE.match(item.name)
    if suite and case:
        cases = ROWS.setdefault(suite, {})
        cases[case[1]] = cases.get(case[1], True) and report.passed
    return report  # type: ignore[no-any-return]


def pytest_sessionfinish(session: pytest.Session) -> None:
    for suite, cases in ROWS.items():
        if len(cases) == 16:  # else only some cases were run
            told = [suite.cells.get(each, "yes") if cases[each] else "**no**" for each in sorted(cases)]  # type: ignore[attr-defined]
            held(session, suite.framework.product, "| " + " | ".join([suite.framework.product, *told]) + " |\n")  # type: ignore[attr-defined]


def held(session: pytest.Session, product: str, row: str) -> None:
    """Compares the page's row of a product with what came out."""
    page, name = PAGE.read_text(), product.rsplit(" ", 1)[0]
    found = re.search(rf"^\| {re.escape(name)} [^ ]+ \|.*\n", page, re.M)
    if found and found[0] == row:
        return
    if os.environ.get("ASSENT_UPDATE"):
        PAGE.write_text(
            page.replace(found[0], row)
            if found
            else page.replace("\n<!-- end of table -->", row + "\n<!-- end of table -->")
        )
        return
    print(f"\n{PAGE} has another row than the tests: ASSENT_UPDATE=1 writes it:\n{row}")
    session.exitstatus = 1
