# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The loop over a run: prepare the hosts, measure cell after cell, store each, repeat what noise spoiled."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.module_utils.measure import schedule
from ansible_collections.colocation.testbed.plugins.plugin_utils import rundir
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment import (
    foresight,
    lines,
    manifest,
    orders,
    preparation,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.bench import Bench
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.host_workloads import HostWorkloads
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.pod_workloads import (
    PodWorkloads,
    resting_policy,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.progress import Progress
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.substrates import STATIC

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ansible_collections.colocation.testbed.plugins.plugin_utils.definitions import Definitions
    from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.deployed import Testbed
    from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.settings import MatrixSettings
    from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.workloads import Workloads

#: What a measurement takes beyond warm-up and window until the first one tells, in seconds.
OVERHEAD_GUESS_S = 4.0

#: How often the peak is measured at most until its best two agree.
PEAK_ATTEMPTS = 6


@dataclass(frozen=True)
class Outcome:
    """What one call did."""

    run_dir: str
    run_id: str
    measured: int
    resumed: bool


def workloads_of(testbed: Testbed, settings: MatrixSettings, definitions: Definitions, run_id: str) -> Workloads:
    """Return the workloads in what was deployed: as processes, or as pods of a cluster."""
    if testbed.cluster is None:
        return HostWorkloads(testbed, orders.divides_link(settings.modes, definitions))
    modes = [definitions.modes[name] for name in settings.modes]
    writes_static = any(mode["engine"] == STATIC for mode in modes)
    return PodWorkloads(testbed, testbed.cluster, resting_policy(modes, definitions.policies), writes_static, run_id)


class Matrix:
    """Runs a matrix on a deployed testbed."""

    def __init__(
        self,
        testbed: Testbed,
        settings: MatrixSettings,
        definitions: Definitions,
        command: str,
        show: Callable[[str], None],
    ) -> None:
        """Remember what is to be run; nothing is touched yet."""
        self._testbed = testbed
        self._settings = settings
        self._definitions = definitions
        self._command = command
        self._show = show
        self._remaining = 0
        self._progress = Progress(show, settings.warmup_s + settings.window_s + OVERHEAD_GUESS_S)
        self._run_id = settings.run_id or manifest.new_run_id()
        workloads = workloads_of(testbed, settings, definitions, self._run_id)
        self._bench = Bench(testbed, settings, self._wait, workloads)

    def run(self) -> Outcome:
        """Measure everything that the run still lacks, and return where it lies."""
        hosts = preparation.describe_hosts(self._testbed)
        with self._prepared(hosts):
            run, resumed = self._open(hosts)
            with run.lock():
                measured = self._measure_all(run, hosts)
                run.finish()
        return Outcome(run_dir=str(run.path), run_id=run.path.name, measured=measured, resumed=resumed)

    @contextlib.contextmanager
    def _prepared(self, hosts: Mapping[str, Any]) -> Iterator[None]:
        """Hold idle states off and keep the service running; take both back whatever happens."""
        try:
            if self._settings.hold_pm_qos:
                self._bench.hold_pm_qos()
            baseline = orders.groups(self._settings.modes[0], self._definitions, self._testbed, hosts)
            self._bench.start_service(baseline)
            yield
        finally:
            self._bench.stop_all()

    def _open(self, hosts: Mapping[str, Any]) -> tuple[rundir.RunDirectory, bool]:
        used = orders.used_definitions(self._settings, self._definitions)
        mark = manifest.fingerprint(self._testbed, self._settings, used, hosts)
        found = preparation.run_to_resume(self._settings, mark, rundir.RunDirectory)
        if found is not None:
            self._show(f"resuming run {found.path.name}: {len(found.measurements())} measurements are there")
            return found, True
        detectable_pct = foresight.detectable(self._settings.results_dir, hosts, self._settings.blocks)
        about = {
            "run_id": self._run_id,
            "seed": self._settings.seed or manifest.new_seed(),
            "peak_rps": self._peak_rps(),
            "fingerprint": mark,
            "command": self._command,
            "versions": preparation.versions(hosts, self._testbed.wrk.description),
            "detectable_pct": detectable_pct,
        }
        self._show(foresight.sentence(self._settings.blocks, detectable_pct))
        document = manifest.build(self._testbed, self._settings, used, hosts, about)
        return rundir.RunDirectory.create(f"{self._settings.results_dir}/{about['run_id']}", document), False

    def _peak_rps(self) -> float:
        if self._settings.peak_rps or self._settings.load_kind == "closed_loop":
            return float(self._settings.peak_rps)
        rates_rps: list[float] = []
        while not orders.peak_found(rates_rps) and len(rates_rps) < PEAK_ATTEMPTS:
            label = f"measuring the service's peak, number {len(rates_rps) + 1} of at most {PEAK_ATTEMPTS}"
            rate_rps = self._bench.peak_rps(self._testbed.service.url(0), self._settings.peak_window_s, label)
            rates_rps.append(rate_rps)
        if not orders.peak_found(rates_rps):
            spread = ", ".join(f"{rate:.0f}" for rate in rates_rps)
            self._show(f"the service's peak does not repeat ({spread} requests/s): something else uses these CPUs")
        peak_rps = orders.rounded_rps(max(rates_rps))
        self._show(f"the service answers {peak_rps:.0f} requests/s at its peak")
        return peak_rps

    def _measure_all(self, run: rundir.RunDirectory, hosts: Mapping[str, Any]) -> int:
        config = schedule.Config.from_manifest(run.manifest)
        plan = schedule.Progress(schedule.plan(config), config.repeat_cap)
        measured = 0
        records = run.measurements()
        while (cell := plan.next_cell(records)) is not None:
            left = plan.remaining(records)
            self._remaining = left - 1
            label = lines.label(cell, config, len(records) + 1, len(records) + left)
            self._progress.start()
            self._measure(run, cell, label, hosts)
            self._progress.done()
            measured += 1
            records = run.measurements()
        return measured

    def _measure(self, run: rundir.RunDirectory, cell: schedule.Cell, label: str, hosts: Mapping[str, Any]) -> None:
        order = orders.resolve(cell, label, run.manifest, self._definitions, self._testbed, hosts)
        raw = self._bench.measure(order)
        record, validity = orders.judge(run.manifest, cell, order, raw)
        stored = run.store_measurement(record, raw.load, raw.samples, raw.policy, validity)
        self._show(lines.result(label, stored, raw.load, validity))

    def _wait(self, seconds: float, label: str) -> None:
        self._progress.wait(seconds, label, self._remaining)
