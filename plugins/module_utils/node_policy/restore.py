# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Take back the values that a policy had set and no longer wants: from the journal, newest first."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils import journal, undo

BY = "cgroup_policy"
UNDONE = "undone"
_KINDS = ("value", "line")


@dataclass(frozen=True)
class Restored:
    """What was put back (in check mode: would be), a sentence for each; and what could not be."""

    done: tuple[str, ...]
    failed: tuple[str, ...]


def stale(book: journal.Journal, keep: Collection[str]) -> list[journal.Entry]:
    """Return the entries of values that a policy had set and that are not among ``keep``, newest first."""
    entries = reversed(book.entries())
    return [item for item in entries if item.by == BY and item.kind in _KINDS and item.target not in keep]


def restore(book: journal.Journal, entries: Sequence[journal.Entry], check: bool) -> Restored:
    """Put values back and forget their entries; what cannot be put back stays in the journal with its reason."""
    actions = undo.Undo()
    handlers = actions.handlers()
    outcomes = [(item, handlers[item.kind](item, check)) for item in entries]
    failed = [item for item, outcome in outcomes if outcome.result != UNDONE]
    if failed and not check:
        # A parent and its children may constrain each other so that only all together can go back.
        actions.settle(failed)
        outcomes = [
            (item, outcome if outcome.result == UNDONE else handlers[item.kind](item, False))
            for item, outcome in outcomes
        ]
    if not check:
        book.forget_many((item.kind, item.target) for item, outcome in outcomes if outcome.result == UNDONE)
    return Restored(
        tuple(outcome.text for _item, outcome in outcomes if outcome.result == UNDONE),
        tuple(outcome.text for _item, outcome in outcomes if outcome.result != UNDONE),
    )
