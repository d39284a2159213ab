"""The page on guards says what the code does."""

from __future__ import annotations

from tools import guard_docs


def test_the_page_is_what_the_guards_table_gives():
    assert guard_docs.PAGE.read_text(encoding="utf-8") == guard_docs.page(), "run python -m tools.guard_docs"
