# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the terminal says of each measurement: one line while it runs, one when it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ansible_collections.colocation.testbed.plugins.module_utils.measure.records import GuardResult
    from ansible_collections.colocation.testbed.plugins.module_utils.measure.records_traffic import (
        BandwidthCell,
        BandwidthRecord,
    )


def label(cell: BandwidthCell, number: int, total: int) -> str:
    """Return what a measurement is called: number of all, block, scenario, case, shaper."""
    parts = [f"{number:>3}/{total}", f"block {cell.block}", f"{cell.scenario}.{cell.case}", f"{cell.shaper:<4}"]
    if cell.attempt > 1:
        parts.append(f"attempt {cell.attempt}")
    return "  ".join(parts)


def result(name: str, record: BandwidthRecord, traffic: Mapping[str, Any], validity: Sequence[GuardResult]) -> str:
    """Return what came of a measurement: what was received, and why it does not count where it doesn't."""
    text = f"{name}  {received(traffic)}"
    tripped = [guard for guard in validity if not guard.ok]
    if record.kept and not tripped:
        return text
    why = "; ".join(f"{guard.guard}: {guard.text}" for guard in tripped)
    verb = "counts, but" if record.kept else "does not count:"
    return f"{text}  {verb} {why}"


def received(traffic: Mapping[str, Any]) -> str:
    """Return what classes received: each of a few, or the sum of many, with how far off the worst of them is."""
    classes = traffic["classes"]
    off = [
        100.0 * (item["received_bps"] / item["expected_bps"] - 1.0)
        for item in classes.values()
        if item["expected_bps"]
    ]  # fmt: skip
    worst = f" (worst {max(off, key=abs):+.1f} %)" if off else ""
    if len(classes) > 4:
        total = sum(item["received_bps"] for item in classes.values())
        return f"{len(classes)} classes {total / 1e6:.1f} Mbit/s{worst}"
    each = ", ".join(f"{name} {item['received_bps'] / 1e6:.1f}" for name, item in classes.items())
    return f"{each} Mbit/s{worst}"
