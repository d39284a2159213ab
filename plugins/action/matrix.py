# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's side of the matrix: reaches both hosts, shows what happens, returns where the run lies."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.colocation.testbed.plugins.module_utils.measure import limits
from ansible_collections.colocation.testbed.plugins.module_utils.measure.series import SeriesError
from ansible_collections.colocation.testbed.plugins.module_utils.policy.validation import PolicyError
from ansible_collections.colocation.testbed.plugins.modules import matrix
from ansible_collections.colocation.testbed.plugins.plugin_utils import definitions, documented, rundir
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment import (
    affinity,
    bench,
    claim,
    deployed,
    driver,
    interruption,
    pod_workloads,
    preparation,
    progress,
    settings,
    substrates,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils.host_executor import HostExecutor, HostExecutorError

if TYPE_CHECKING:
    from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.settings import MatrixSettings

OPTIONS = documented.argument_spec(matrix.DOCUMENTATION)

ERRORS = (
    bench.BenchError,
    claim.ClaimError,
    definitions.DefinitionsError,
    deployed.DeployedError,
    HostExecutorError,
    pod_workloads.PodWorkloadsError,
    interruption.InterruptedRunError,
    limits.LimitsError,
    PolicyError,
    preparation.PreparationError,
    progress.ControllerGoneError,
    rundir.RunDirectoryError,
    SeriesError,
    settings.SettingsError,
)


class ActionModule(ActionBase):
    """Run the matrix."""

    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Validate, then measure what the run lacks."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        _unused, given = self.validate_argument_spec(argument_spec=OPTIONS)
        try:
            wanted = settings.from_arguments(given)
            limits.check(wanted.limits)
            found = definitions.load_definitions(
                preparation.COLLECTION_ROOT,
                wanted.modes,
                given["mode_definitions"],
                given["policy_definitions"],
                given["aggressor_definitions"],
                wanted.aggressors,
            )
            outcome = self._measure(wanted, found, variables)
        except ERRORS as exc:
            raise AnsibleActionFail(str(exc)) from None  # Ansible would append the cause, said already
        return {**result, **outcome}

    def _testbed(
        self, wanted: MatrixSettings, found: definitions.Definitions, variables: dict[str, Any]
    ) -> deployed.Testbed:
        def host(name: str) -> HostExecutor:
            return HostExecutor(self, name, variables)

        tested = host(wanted.tested)
        cluster = deployed.cluster(tested, host) if wanted.substrate == "pod" else None
        modes = {name: found.modes[name] for name in wanted.modes}
        agent = cluster.agent if cluster else ""
        problems = substrates.problems(modes, found.policies, wanted.substrate, agent)
        if problems:
            raise settings.SettingsError(problems)
        return deployed.read(tested, host(wanted.load), cluster)

    def _measure(
        self, wanted: MatrixSettings, found: definitions.Definitions, variables: dict[str, Any]
    ) -> dict[str, Any]:
        nothing = {"changed": False, "run_dir": "", "run_id": "", "measured": 0, "resumed": False}
        if wanted.blocks == 0:
            return {**nothing, "msg": "matrix_blocks is 0: everything is deployed, nothing was measured"}
        if self._task.check_mode:
            cells = wanted.blocks * len(wanted.modes) * len(wanted.load_points)
            return {**nothing, "changed": True, "msg": f"would measure at least {cells} windows of {wanted.window_s} s"}
        testbed = self._testbed(wanted, found, variables)
        command = shlex.join(["ansible-playbook", *sys.argv[1:]])
        shared = wanted.tested in variables["groups"].get("lab", ())
        on_cpus = affinity.controller_on(testbed.tested.housekeeping_cpus if shared else "")
        with claim.claimed(wanted.tested, claim.directory()), on_cpus, interruption.orderly_end():
            outcome = driver.Matrix(testbed, wanted, found, command, self._display.display).run()
        return {
            "changed": outcome.measured > 0,
            "run_dir": outcome.run_dir,
            "run_id": outcome.run_id,
            "measured": outcome.measured,
            "resumed": outcome.resumed,
        }
