# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Take back what one module did, by the entries that it wrote into the journal, and leave all others."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence

from ansible_collections.colocation.testbed.plugins.module_utils import files, journal, quantity, undo_places


class OwnChangesError(Exception):
    """Some changes could not be taken back; the text names each and why, and they stay in the journal."""


def fingerprint(text: str) -> str:
    """Return what the journal notes of a file that is written as a whole, to notice later that others changed it."""
    return hashlib.sha256(text.encode()).hexdigest()


def written(book: journal.Journal) -> dict[str, str]:
    """Return the fingerprints of files as they were written last, by path. Raises JournalError."""
    return {entry.target: entry.note for entry in book.entries() if entry.kind == "file" and entry.note}


def edited(path: str, text: str | None, written_last: Mapping[str, str]) -> str | None:
    """Return a sentence when somebody changed a file of ours since it was written, else None."""
    if text is None or fingerprint(text) == written_last.get(path, fingerprint(text)):
        return None
    return f"{path} was changed by hand since it was written; put such values elsewhere"


def rewrite(path: str, text: str | None) -> None:
    """Write a file of ours as a whole, with its directory; None removes it. Raises FilesError or OSError."""
    if text is None:
        files.restore(path, None)
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    files.write_atomic(path, text)


def rewriting(path: str, text: str | None) -> list[journal.Change]:
    """Return the journal's entries for rewrite(): a directory that is to be made, and the file. Raises FilesError."""
    folder = os.path.dirname(path)
    made = [] if os.path.isdir(folder) else [journal.Change("directory", folder)]
    return [*made, journal.Change("file", path, files.capture(path), "" if text is None else fingerprint(text))]


def forget_failed(book: journal.Journal, changes: Sequence[journal.Change], before: Iterable[journal.Entry]) -> None:
    """Make the journal what it was before changes that were taken back: new entries go, old ones get their notes again.

    Directories that were made go too. ``before`` are the entries from before the changes were recorded. Raises
    JournalError.
    """
    for change in changes:
        if change.kind == "directory":
            with contextlib.suppress(OSError):
                os.rmdir(change.target)
    known = {(entry.kind, entry.target): entry for entry in before}
    keys = {(change.kind, change.target) for change in changes}
    renewed = [known[key] for key in sorted(keys & set(known)) if known[key].note]
    if renewed:
        again = [journal.Change(entry.kind, entry.target, entry.previous, entry.note) for entry in renewed]
        book.record_many(again, renewed[0].by)
    book.forget_many(keys - set(known))


def undo(
    book: journal.Journal, by: str, handlers: Mapping[str, journal.Handler], check: bool = False
) -> tuple[journal.Undone, ...]:
    """Undo the entries of one author, newest first, and return what became of each; with ``check`` only say what would.

    Undone entries leave the journal. Raises JournalError before anything is touched when the journal is corrupt, and
    OwnChangesError when all were tried and some failed.
    """
    done: list[journal.Undone] = []
    try:
        for entry in reversed([entry for entry in book.entries() if entry.by == by]):
            done.append(journal.Undone(entry, handlers[entry.kind](entry, check)))
    finally:
        if not check:
            undone = [item.entry for item in done if item.outcome.result == "undone"]
            book.forget_many((entry.kind, entry.target) for entry in undone)
    failed = [item for item in done if item.outcome.result == "failed"]
    if failed:
        said = "; ".join(undo_places.condensed(failed))
        raise OwnChangesError(f"{len(failed)} of {quantity.counted(len(done), 'change')} could not be undone: {said}")
    return tuple(done)
