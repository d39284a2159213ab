# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare run directories of whatever experiment: the one that all of them are of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.plugin_utils import compare, rundir_files
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_report import compare as bandwidth_compare
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_rundir import BandwidthRun
from ansible_collections.colocation.testbed.plugins.plugin_utils.rundir import RunDirectory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def compare_directories(paths: Sequence[str], thresholds: Mapping[str, float]) -> dict[str, Any]:
    """Return how every later run differs from the first.

    Raises CompareError for runs that cannot be compared, and RunDirectoryError for damaged ones.
    """
    folders = [Path(path).expanduser() for path in paths]
    kinds = {path: rundir_files.experiment_of(rundir_files.read_manifest(path), path) for path in folders}
    if len(set(kinds.values())) > 1:
        told = ", ".join(f"{path} is of the experiment {kind}" for path, kind in kinds.items())
        raise compare.CompareError(f"compare: {told}; name runs of one experiment")
    if rundir_files.BANDWIDTH in kinds.values():
        return bandwidth_compare.compare([BandwidthRun.open(path) for path in folders], thresholds)
    return compare.compare([RunDirectory.open(path) for path in folders], thresholds)
