# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The loop over a run of the bandwidth experiment: prepare the hosts, measure cell after cell, store, repeat."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.module_utils.measure import (
    guards,
    guards_traffic,
    schedule,
    schedule_traffic,
    series,
)
from ansible_collections.colocation.testbed.plugins.module_utils.measure.records_traffic import BandwidthRecord
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment import (
    counts,
    durations,
    expectations,
    figures,
    lines,
    manifest,
    processes,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment.bench import Order, TrafficBench
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_rundir import BandwidthRun
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment import preparation
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.driver import Outcome
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.manifest import new_run_id, new_seed
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ansible_collections.colocation.testbed.plugins.module_utils.measure.records_traffic import BandwidthCell
    from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment.processes import Ends
    from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment.settings import (
        BandwidthSettings,
    )

#: How late connections may be, in seconds; where they were later, the window is measured again and waits longer.
LATE_S = (0.6, 2.0, 8.0)
#: Programs whose version is recorded.
PROGRAMS = {"iperf3": ["iperf3", "--version"], "tc": ["tc", "-V"]}


class BandwidthMatrix:
    """Runs the scenarios between two prepared hosts."""

    def __init__(
        self,
        ends: Ends,
        settings: BandwidthSettings,
        scenarios: Mapping[str, Any],
        command: str,
        show: Callable[[str], None],
    ) -> None:
        """Remember what is to be run; nothing is touched yet."""
        self._ends = ends
        self._settings = settings
        self._scenarios = scenarios
        self._command = command
        self._show = show
        self._remaining = 0
        self._progress = Progress(show, settings.warmup_s + settings.window_s + durations.OVERHEAD_GUESS_S)
        self._bench = TrafficBench(ends, settings, self._wait)

    def run(self) -> Outcome:
        """Measure everything that the run still lacks, and return where it lies."""
        self._show(durations.told(self._scenarios, self._settings))
        hosts = preparation.describe_nodes(self._ends.tested, self._ends.load, PROGRAMS)
        with self._prepared() as device:
            run, resumed = self._open(hosts, device)
            with run.lock():
                measured = self._measure_all(run)
                run.finish()
        return Outcome(run_dir=str(run.path), run_id=run.path.name, measured=measured, resumed=resumed)

    @contextlib.contextmanager
    def _prepared(self) -> Iterator[dict[str, Any]]:
        """Make everything ready, and take it all back whatever happens."""
        try:
            yield self._bench.prepare(processes.names(self._scenarios))
        finally:
            self._bench.stop_all()

    def _open(self, hosts: Mapping[str, Any], device: Mapping[str, Any]) -> tuple[BandwidthRun, bool]:
        mark = manifest.fingerprint(self._settings, self._scenarios, hosts, self._ends)
        found = preparation.run_to_resume(self._settings, mark, BandwidthRun, "bandwidth_matrix_run_id")
        if found is not None:
            self._show(f"resuming run {found.path.name}: {len(found.measurements())} measurements are there")
            return found, True
        about = {
            "run_id": self._settings.run_id or new_run_id(),
            "seed": self._settings.seed or new_seed(),
            "fingerprint": mark,
            "command": self._command,
            "versions": preparation.program_versions(hosts),
            "planes": device["planes"],
            "mtu_bytes": device["mtu_bytes"],
            "link_bps": device["link_bps"],
            "capacity_bps": self._capacities(hosts, device["mtu_bytes"]),
        }
        self._show(f"plane {about['planes'].get('egress', 'none')}, MTU {about['mtu_bytes']} bytes")
        document = manifest.build(self._settings, self._scenarios, hosts, about)
        return BandwidthRun.create(f"{self._settings.results_dir}/{about['run_id']}", document), False

    def _capacities(self, hosts: Mapping[str, Any], mtu_bytes: int) -> dict[str, float]:
        """Return what senders get through unshaped in payload bits a second, for cases where no cell will tell."""
        found = {}
        for name, scenario in self._scenarios.items():
            for case, item in scenario["cases"].items():
                if not durations.needs_capacity(item):
                    continue
                label = f"what senders can do in {name}.{case}"
                classes = {
                    key: {**entry, "offered_bps": None, "bursts": None} for key, entry in item["classes"].items()
                }
                unpaced = {**item, "classes": classes}
                order = Order(label, unpaced, "none", durations.CAPACITY_WINDOW_S, durations.CAPACITY_WARMUP_S)
                traffic = self._traffic(order, hosts, expectations.unshaped(mtu_bytes))[0]
                found[f"{name}.{case}"] = sum(entry["received_bps"] for entry in traffic["classes"].values())
        return found

    def _measure_all(self, run: BandwidthRun) -> int:
        plan = schedule.Progress(schedule_traffic.plan(run.manifest), int(run.manifest["schedule"]["repeat_cap"]))
        measured = 0
        records = run.measurements()
        while (cell := plan.next_cell(records)) is not None:
            left = plan.remaining(records)
            self._remaining = left - 1
            label = lines.label(cell, len(records) + 1, len(records) + left)
            self._progress.start()
            self._measure(run, cell, label)
            self._progress.done()
            measured += 1
            records = run.measurements()
        return measured

    def _measure(self, run: BandwidthRun, cell: BandwidthCell, label: str) -> None:
        case = run.manifest["scenarios"][cell.scenario]["cases"][cell.case]
        window_s = durations.window_s(case, self._settings.window_s)
        order = Order(label, case, cell.shaper, window_s, float(self._settings.warmup_s))
        counting = expectations.counting(run.manifest, cell.shaper)
        traffic, raw = self._traffic(order, run.manifest["hosts"], counting)
        samples = {host: found["samples.jsonl"] for host, found in raw.files.items()}
        policy = {"wanted": raw.before["wanted"], "applied": raw.after["applied"]}
        parsed = {host: series.parse_lines(content) for host, content in samples.items()}
        record = BandwidthRecord.of(cell)
        validity = guards_traffic.evaluate(run.manifest, record, traffic, parsed, policy)
        stored = run.store_measurement(guards.judged(record, validity), traffic, samples, policy, validity)
        self._show(lines.result(label, stored, traffic, validity))

    def _traffic(
        self, order: Order, hosts: Mapping[str, Any], counting: expectations.Counting
    ) -> tuple[dict[str, Any], figures.Raw]:
        tested, load = self._ends.tested.name, self._ends.load.name
        scene = figures.Scene(
            case=order.case,
            job=self._bench.job(order),
            shaper=order.shaper,
            tested=tested,
            load=load,
            measured_cpus={name: host["measured_cpus"] for name, host in hosts.items()},
            clocks=figures.Clocks({name: float(host["clock_offset_s"]) for name, host in hosts.items()}, load),
            counting=counting,
            window_s=order.window_s,
            warmup_s=order.warmup_s,
        )
        for late_s in LATE_S[:-1]:
            try:
                return self._counted(dataclasses.replace(order, late_s=late_s), scene)
            except counts.CountsError as exc:
                self._show(f"{order.label}  measured again: {exc}")
        return self._counted(dataclasses.replace(order, late_s=LATE_S[-1]), scene)

    def _counted(self, order: Order, scene: figures.Scene) -> tuple[dict[str, Any], figures.Raw]:
        raw = self._bench.measure(order)
        return figures.traffic(scene, raw), raw

    def _wait(self, seconds: float, label: str) -> None:
        self._progress.wait(seconds, label, self._remaining)
