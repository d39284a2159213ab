# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's side of the bandwidth experiment: reaches both hosts, shows what happens, returns the run."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.colocation.testbed.plugins.module_utils.measure import limits
from ansible_collections.colocation.testbed.plugins.module_utils.measure.series import SeriesError
from ansible_collections.colocation.testbed.plugins.modules import bandwidth_matrix
from ansible_collections.colocation.testbed.plugins.plugin_utils import documented, rundir
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment import (
    counts,
    deployed,
    driver,
    durations,
    scenarios,
    settings,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment import (
    affinity,
    claim,
    interruption,
    preparation,
    progress,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.deployed import DeployedError
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.settings import SettingsError
from ansible_collections.colocation.testbed.plugins.plugin_utils.host_executor import HostExecutor, HostExecutorError

if TYPE_CHECKING:
    from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment.settings import (
        BandwidthSettings,
    )

OPTIONS = documented.argument_spec(bandwidth_matrix.DOCUMENTATION)

ERRORS = (
    claim.ClaimError,
    counts.CountsError,
    DeployedError,
    HostExecutorError,
    interruption.InterruptedRunError,
    limits.LimitsError,
    preparation.PreparationError,
    progress.ControllerGoneError,
    rundir.RunDirectoryError,
    scenarios.ScenariosError,
    SeriesError,
    SettingsError,
)


class ActionModule(ActionBase):
    """Run the scenarios."""

    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Validate, then measure what the run lacks."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        _unused, given = self.validate_argument_spec(argument_spec=OPTIONS)
        try:
            wanted = settings.from_arguments(given)
            limits.check(wanted.limits, limits.TRAFFIC)
            found = scenarios.load(preparation.COLLECTION_ROOT, given["scenarios"], given["select"], wanted.shapers)
            outcome = self._measure(wanted, found, variables)
        except ERRORS as exc:
            raise AnsibleActionFail(str(exc)) from exc
        return {**result, **outcome}

    def _measure(self, wanted: BandwidthSettings, found: dict[str, Any], variables: dict[str, Any]) -> dict[str, Any]:
        nothing = {"changed": False, "run_dir": "", "run_id": "", "measured": 0, "resumed": False}
        if wanted.blocks == 0:
            return {**nothing, "msg": "bandwidth_matrix_blocks is 0: the hosts are prepared, nothing was measured"}
        if self._task.check_mode:
            return {**nothing, "changed": True, "msg": f"would measure {durations.told(found, wanted)}"}
        tested = HostExecutor(self, wanted.tested, variables)
        ends = deployed.read(tested, HostExecutor(self, wanted.load, variables))
        deployed.check(ends, found)
        command = shlex.join(["ansible-playbook", *sys.argv[1:]])
        shared = wanted.tested in variables["groups"].get("lab", ())
        on_cpus = affinity.controller_on(ends.tested.housekeeping_cpus if shared else "")
        with claim.claimed(wanted.tested, claim.directory()), on_cpus, interruption.orderly_end():
            outcome = driver.BandwidthMatrix(ends, wanted, found, command, self._display.display).run()
        return {"changed": outcome.measured > 0, **vars(outcome)}
