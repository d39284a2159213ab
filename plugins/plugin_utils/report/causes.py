# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a mode's added latency comes from: requests that wait for a CPU, or requests that need more of it.

Both are counted by the kernel for the service's tasks (schedstat), so a policy that a reader wants to improve is told
apart from a machine whose caches are shared: no scheduler setting helps against the latter.
"""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.plugin_utils.report import numerals
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.markup import Html, table
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.matrix_tables import mode_label
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.model import Condition, Mode, View

#: Of a change that is smaller than this share of a request's CPU time nothing is said.
WORTH_SAYING = 0.03
#: One cause is named alone when it adds this many times what the other does.
DOMINANT = 3.0


@dataclass(frozen=True)
class Cause:
    """What a request of a mode takes in µs, running and waiting for a CPU, and what it takes in the baseline."""

    running_us: float
    waiting_us: float
    base_running_us: float
    base_waiting_us: float

    @property
    def added_running_us(self) -> float:
        """CPU time that a request takes beyond the baseline's."""
        return self.running_us - self.base_running_us

    @property
    def added_waiting_us(self) -> float:
        """Wait for a CPU beyond the baseline's."""
        return self.waiting_us - self.base_waiting_us

    @property
    def meaning(self) -> str:
        """Say what the two figures mean, empty where nothing is added."""
        running, waiting = max(self.added_running_us, 0.0), max(self.added_waiting_us, 0.0)
        if running + waiting < WORTH_SAYING * self.base_running_us:
            return ""
        if waiting >= DOMINANT * running:
            return "it queues for the CPU, which scheduling can change"
        if running >= DOMINANT * waiting:
            return "it runs slower (caches that others used, a lower clock), which scheduling cannot change"
        return "it queues for the CPU, and runs slower once it has it"


def cause(view: View, mode: Mode, condition: Condition) -> Cause | None:
    """Return where a mode's time goes beside the baseline's; None for the baseline and without readings."""
    base = next((item for item in view.modes if item.is_baseline), None)
    if base is None or mode.is_baseline:
        return None
    found: list[float] = []
    for one in (mode, base):
        cell = view.cell(one.name, condition)
        for metric in ("service_cpu_us_per_request", "service_wait_us_per_request"):
            median = cell.median(metric) if cell else None
            if median is None or median < 0:
                return None
            found.append(median)
    return Cause(*found) if found[2] > 0 else None


def sentence(mode: Mode, found: Cause) -> str:
    """Say in one line where a request's time goes."""
    meaning = f": {found.meaning}" if found.meaning else ""
    running = f"runs {_micros(found.running_us)} (baseline {_micros(found.base_running_us)})"
    waiting = f"waits {_micros(found.waiting_us)} for a CPU (baseline {_micros(found.base_waiting_us)})"
    return f"{mode.name}: a request {running} and {waiting}{meaning}"


def _micros(value: float) -> str:
    return f"{numerals.plain(value, 0)}{numerals.NBSP}µs"


def causes_table(view: View, condition: Condition) -> Html | None:
    """Make the table of one condition: one row a colocated mode; None without readings."""
    rows = [
        [
            mode_label(mode),
            _figure(found.running_us, found.added_running_us),
            _figure(found.waiting_us, found.added_waiting_us),
            found.meaning or numerals.NONE,
        ]
        for mode in view.candidates
        if (found := cause(view, mode, condition)) is not None
    ]
    head = ["Mode", "Runs, µs a request", "Waits for a CPU, µs a request", "What that means"]
    caption = "Medians over blocks; in brackets the change against the baseline. Counted by the kernel's scheduler."
    return table(head, rows, caption=caption, class_="causes") if rows else None


def _figure(value: float, added: float) -> str:
    return f"{numerals.plain(value, 0)} ({numerals.signed(added, 0)})"
