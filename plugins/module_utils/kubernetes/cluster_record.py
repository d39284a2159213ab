# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was put into a cluster, noted in a host's journal, so that a reset finds it in a cluster of somebody else's.

A cluster that was made here goes as a whole, with all in it. Anything else is taken out of a cluster by asking its API
server; while that does not answer, the note stays, and what it needs on the node stays too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable

from ansible_collections.colocation.testbed.plugins.module_utils import journal
from ansible_collections.colocation.testbed.plugins.module_utils.journal import Entry, Outcome
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import koordinator_node

KIND = "cluster"
BY = "cluster_record"
EXISTING = "existing"


@dataclass(frozen=True)
class Record:
    """A part that was put into a cluster: how that is reached, who provides it, and with what the part is removed."""

    part: str
    kubectl: tuple[str, ...]
    provider: str
    settings: Mapping[str, Any]

    @property
    def target(self) -> str:
        """Return what names the entry; a part is in a cluster once."""
        return f"{self.part} by {' '.join(self.kubectl)}"

    @property
    def goes_with_its_cluster(self) -> bool:
        """Tell whether the cluster was made here, so that nothing of it outlives a reset."""
        return self.provider != EXISTING

    def change(self) -> journal.Change:
        """Return the change that the journal notes."""
        wanted = {"part": self.part, "kubectl": list(self.kubectl), "provider": self.provider}
        return journal.Change(KIND, self.target, {**wanted, "settings": dict(self.settings)})


def of(entry: Entry) -> Record:
    """Return the record of a journal's entry."""
    noted = entry.previous if isinstance(entry.previous, Mapping) else {}
    return Record(
        str(noted.get("part", entry.target)),
        tuple(noted.get("kubectl") or ()),
        str(noted.get("provider", EXISTING)),
        noted.get("settings") or {},
    )


def records(book: journal.Journal) -> list[Record]:
    """Return all records, oldest first. Raises JournalError."""
    return [of(entry) for entry in book.entries() if entry.kind == KIND]


@dataclass(frozen=True)
class Undo:
    """How a reset treats what is left in clusters: ``problem`` is why it is, ``forget`` gives it up."""

    forget: bool = False
    problem: str = ""

    def entry(self, entry: Entry, check: bool) -> Outcome:
        """Tell what becomes of a record that is still in the journal when a host is undone."""
        record = of(entry)
        if record.goes_with_its_cluster:
            return Outcome("undone", f"{record.part}: goes with the cluster that was made here")
        if self.forget:
            return Outcome("undone", f"{entry.target}: forgotten; what is still in that cluster stays there")
        if check and not self.problem:
            return Outcome("undone", f"{entry.target}: removed from the cluster")
        why = self.problem or "it is still in the cluster"
        return Outcome(
            "failed",
            f"{entry.target}: could not be removed: {why}; correct that and reset again, or, where the cluster is "
            "gone for good, reset with reset_forget_clusters",
        )

    def handlers(
        self, table: Mapping[str, journal.Handler], entries: Sequence[Entry], check: bool
    ) -> dict[str, journal.Handler]:
        """Return handlers that keep what an agent needs or would write again on the node while it may still run."""
        stay = [item for item in entries if item.kind == KIND and self.entry(item, check).result == "failed"]
        guarded = {kind: _kept(handler) for kind, handler in table.items()} if stay else dict(table)
        return {**guarded, KIND: self.entry}


def _kept(handler: journal.Handler) -> Callable[[Entry, bool], Outcome]:
    def call(entry: Entry, check: bool) -> Outcome:
        if entry.by == koordinator_node.BY:
            return Outcome("kept", f"{entry.target}: kept until Koordinator's agent is removed from the cluster")
        return handler(entry, check)

    return call
