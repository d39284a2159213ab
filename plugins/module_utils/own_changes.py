# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Take back what one module did, by the entries that it wrote into the journal, and leave all others."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.colocation.testbed.plugins.module_utils import journal


def undo(
    book: journal.Journal, by: str, handlers: Mapping[str, journal.Handler], check: bool = False
) -> tuple[journal.Undone, ...]:
    """Undo the entries of one author, newest first, and return what became of each; with ``check`` only say what would.

    Undone entries leave the journal. Raises JournalError before anything is touched when the journal is corrupt.
    """
    done: list[journal.Undone] = []
    try:
        for entry in reversed([entry for entry in book.entries() if entry.by == by]):
            done.append(journal.Undone(entry, handlers[entry.kind](entry, check)))
    finally:
        if not check:
            undone = [item.entry for item in done if item.outcome.result == "undone"]
            book.forget_many((entry.kind, entry.target) for entry in undone)
    return tuple(done)
