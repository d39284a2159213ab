# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run directories of the matrix: what a run measured, written so that a crash leaves whole measurements only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.module_utils.measure.records import GuardResult, MeasurementRecord
from ansible_collections.colocation.testbed.plugins.plugin_utils.rundir_files import (
    MANIFEST,
    MATRIX,
    SCHEMA,
    RunDirectoryError,
    check,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils.rundir_store import MEASUREMENTS, Layout, Store

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

__all__ = ["MANIFEST", "MEASUREMENTS", "SCHEMA", "RunDirectory", "RunDirectoryError"]


class RunDirectory(Store[MeasurementRecord]):
    """One run of the matrix on disk."""

    layout = Layout(MATRIX, "manifest", "measurement", "summary", "load.json", "<number>-<mode>-<block>")

    def load(self, record: MeasurementRecord) -> dict[str, Any]:
        """Return a measurement's load result. Raises RunDirectoryError."""
        return self._result(record)

    def store_measurement(
        self,
        record: MeasurementRecord,
        load: Mapping[str, Any],
        samples: Mapping[str, bytes | Iterable[Mapping[str, Any]]],
        policy: Mapping[str, Any],
        validity: Sequence[GuardResult],
    ) -> MeasurementRecord:
        """Store a measurement whole or not at all, and return its record with the number that it got.

        ``samples`` are each host's JSON lines as bytes, or as values. Raises RunDirectoryError, also for what does
        not follow the schemas: nothing is stored then.
        """
        return self._store(record, load, samples, policy, validity)

    def _parse(self, value: Mapping[str, Any]) -> MeasurementRecord:
        return MeasurementRecord.from_dict(value)

    @staticmethod
    def _check_result(value: Any, path: Path) -> None:
        """Check a load result; its thousands of histogram pairs are checked by Histogram, a hundred times quicker."""
        if isinstance(value, dict) and isinstance(value.get("latency_us"), list):
            value = {**value, "latency_us": value["latency_us"][:1]}
        check("load", value, path)
