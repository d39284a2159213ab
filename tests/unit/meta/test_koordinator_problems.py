"""Each problem in docs/koordinator.md is prevented, detected or documented, by tests that exist."""

from __future__ import annotations

import re

import pytest
from tooling import ROOT, files_below

TEXT = (ROOT / "docs/koordinator.md").read_text(encoding="utf-8")
SECTION = TEXT.partition("## Problems that others had\n")[2].partition("\n## ")[0]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in SECTION.splitlines()
    if line.startswith("|") and not line.startswith(("|---", "| problem"))
]
NAMES = sorted(set(re.findall(r"`(test_\w+)(?:\.py)?`", SECTION)))
WAYS = ("prevented", "detected", "documented", "warned of", "explained", "`manifests`")
TESTS = {
    name
    for path in files_below("tests", "molecule", suffix=".py")
    for name in [path.stem, *re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)]
}
# Numbers in Koordinator's tracker of what concerns installing, configuring or removing it.
REPORTED = {
    *(49, 216, 395, 411, 546, 661, 664, 800, 815, 871, 885, 954, 1056, 1214, 1218, 1229, 1346, 1467, 1670, 1777, 1906),
    *(1981, 1993, 2026, 2040, 2077, 2118, 2281, 2297, 2303, 2326, 2334, 2383, 2404, 2538, 2572, 2604, 2678, 2732, 2778),
    *(3129, 1734, 2047, 2694, 2723),
}


def test_there_is_a_table() -> None:
    assert len(ROWS) > 35
    assert len(NAMES) > 15


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:60])
def test_a_row_says_what_becomes_of_it_and_by_which_test(row: list[str]) -> None:
    _problem, here, tests = row
    assert here.startswith(WAYS)
    assert ("`test_" in tests) or (tests == "\N{EN DASH}" and here.startswith(("documented", "`manifests`"))), tests


@pytest.mark.parametrize("name", NAMES)
def test_a_test_that_is_named_exists(name: str) -> None:
    assert name in TESTS


def test_every_reported_problem_is_in_the_table() -> None:
    there = {int(number) for row in ROWS for number in re.findall(r"\b\d{2,4}\b", row[0])}
    assert sorted(REPORTED - there) == []
