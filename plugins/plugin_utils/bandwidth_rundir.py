# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run directories of the bandwidth experiment; what they have in common with the matrix's is in rundir_store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.module_utils.measure.records import GuardResult
from ansible_collections.colocation.testbed.plugins.module_utils.measure.records_traffic import BandwidthRecord
from ansible_collections.colocation.testbed.plugins.plugin_utils.rundir_files import (
    BANDWIDTH,
    RunDirectoryError,
    check,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils.rundir_store import Layout, Store

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

__all__ = ["BandwidthRun", "RunDirectoryError"]


class BandwidthRun(Store[BandwidthRecord]):
    """One run of the bandwidth experiment on disk."""

    layout = Layout(
        BANDWIDTH,
        "bandwidth-manifest",
        "bandwidth-measurement",
        "bandwidth-summary",
        "traffic.json",
        "<number>-<scenario>.<case>.<shaper>-<block>",
    )

    def traffic(self, record: BandwidthRecord) -> dict[str, Any]:
        """Return a measurement's traffic. Raises RunDirectoryError."""
        return self._result(record)

    def store_measurement(
        self,
        record: BandwidthRecord,
        traffic: Mapping[str, Any],
        samples: Mapping[str, bytes | Iterable[Mapping[str, Any]]],
        policy: Mapping[str, Any],
        validity: Sequence[GuardResult],
    ) -> BandwidthRecord:
        """Store a measurement whole or not at all, and return its record with the number that it got.

        ``samples`` are each host's JSON lines as bytes, or as values. Raises RunDirectoryError, also for what does
        not follow the schemas: nothing is stored then.
        """
        return self._store(record, traffic, samples, policy, validity)

    def _parse(self, value: Mapping[str, Any]) -> BandwidthRecord:
        return BandwidthRecord.from_dict(value)

    @staticmethod
    def _check_result(value: Any, path: Path) -> None:
        """Check traffic; the pairs of latency histograms are checked by Histogram, a hundred times quicker."""
        if isinstance(value, dict) and isinstance(value.get("rr_latency_us"), dict):
            histograms = value["rr_latency_us"].items()
            short = {name: pairs[:1] if isinstance(pairs, list) else pairs for name, pairs in histograms}
            value = {**value, "rr_latency_us": short}
        check("traffic", value, path)
