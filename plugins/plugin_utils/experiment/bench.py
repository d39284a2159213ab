# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One measurement: apply the mode, start what it needs, send load, sample, stop, collect."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment import specs
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.workloads import Order, Prepared, Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.deployed import Testbed
    from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.settings import MatrixSettings
    from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.workloads import Workloads

#: Seconds that connecting and starting wrk take at most beyond warm-up and window.
START_SLACK_S = 20.0

#: How much of the log of a process that ended by itself is repeated.
LOG_LINES = 3
LOG_CHARACTERS = 400


class BenchError(Exception):
    """A measurement could not be carried out."""


@dataclass(frozen=True)
class Raw:
    """What a measurement brought home; ``ended`` says of processes that ended before they were stopped why they did."""

    load: dict[str, Any]
    samples: dict[str, bytes]
    policy: dict[str, dict[str, Any]]
    ended: tuple[str, ...] = ()


class Bench:
    """Carries out measurements on a deployed testbed."""

    def __init__(
        self,
        testbed: Testbed,
        settings: MatrixSettings,
        wait: Callable[[float, str], None],
        workloads: Workloads,
    ) -> None:
        """Remember what is deployed.

        :param wait: called with seconds and a label while a window runs; returns when they have passed.
        :param workloads: the service and the batch workload, in whatever they run.
        """
        self._testbed = testbed
        self._settings = settings
        self._wait = wait
        self._workloads = workloads

    def hold_pm_qos(self) -> None:
        """Keep idle states off on both hosts until ``stop_all``."""
        for node in self._testbed.nodes:
            specs.run(node, [specs.pm_qos(node)])

    def start_service(self, groups: Sequence[Mapping[str, Any]]) -> None:
        """Make the groups and start the service in its own; it runs until ``stop_all``."""
        self._workloads.start_service(groups)
        load = self._testbed.load
        specs.make_groups(load, [*specs.root_group(load), {"name": "load"}])

    def stop_all(self) -> None:
        """Stop everything that a matrix starts, on both hosts."""
        tested, load = self._testbed.nodes
        try:
            specs.run(tested, specs.stopped(*self._workloads.processes, specs.SAMPLER, specs.HOLDER))
            specs.run(load, specs.stopped(specs.GENERATOR, specs.PEER, specs.SAMPLER, specs.HOLDER))
        finally:
            self._workloads.stop_all()

    def measure(self, order: Order) -> Raw:
        """Carry out one measurement.

        :raises BenchError: where a part of it did not work; both hosts are left with the batch workload stopped.
        """
        try:
            try:
                prepared = self._start_tested(order)
                self._send(order)
                load_results = self._finish_load(order)
            finally:
                # The sampler ends first, so that looking again is no foreign work at the window's edge.
                tested_results = self._stop_tested(order)
            after = self._workloads.look_again(order)
        finally:
            self._workloads.release(order)
        load = _json(load_results, self._testbed.load.path(specs.LOAD), self._testbed.load.name)
        if "error" in load:
            raise BenchError(f"{self._testbed.load.name}: the load generator failed: {load['error']}")
        samples = {
            self._testbed.tested.name: content(tested_results, self._testbed.tested.path(specs.SAMPLES)),
            self._testbed.load.name: content(load_results, self._testbed.load.path(specs.SAMPLES)),
        }
        return Raw(
            load=load,
            samples=samples,
            policy=merged(prepared.policy, after),
            ended=(*_ended(tested_results, specs.BATCH), *_ended(load_results, specs.PEER)),
        )

    def peak_rps(self, url: str, window_s: float, label: str) -> float:
        """Return the rate of requests per second that the service answers at full speed (wrk's closed loop)."""
        node = self._testbed.load
        entry = specs.load(self._testbed, self._settings, self._workloads.url(url), None, 1, window_s)
        specs.run(node, [entry])
        self._wait(self._settings.warmup_s + window_s, label)
        ended = specs.waited(entry, START_SLACK_S)
        load = _json(specs.run(node, [ended], [node.path(specs.LOAD)]), node.path(specs.LOAD), node.name)
        if "error" in load:
            raise BenchError(f"{node.name}: the load generator failed: {load['error']}")
        length_s = float(load["end_mono_s"]) - float(load["start_mono_s"])
        if not load["requests"] or length_s <= 0:
            raise BenchError(f"{node.name}: no request was answered at full speed; try the URL {url} by hand")
        return float(load["requests"]) / length_s

    def _start_tested(self, order: Order) -> Prepared:
        node, lifetime_s = self._testbed.tested, self._lifetime_s()
        if order.aggressor is not None and order.aggressor.get("peer"):
            placeholders = self._testbed.placeholders("")
            specs.run(self._testbed.load, [specs.peer(self._testbed.load, order.aggressor, placeholders, lifetime_s)])
        prepared = self._workloads.prepare(order, lifetime_s)
        specs.run(node, [*prepared.entries, specs.sampler(node, prepared.watch, lifetime_s)])
        return prepared

    def _send(self, order: Order) -> None:
        node = self._testbed.load
        sampler = specs.sampler(node, Watch(groups=("load",)), self._lifetime_s())
        url = self._workloads.url(order.url)
        self._entry = specs.load(
            self._testbed, self._settings, url, order.rate_rps, order.seed, self._settings.window_s
        )
        specs.run(node, [sampler, self._entry])
        self._wait(self._settings.warmup_s + self._settings.window_s, order.label)

    def _finish_load(self, order: Order) -> dict[str, Any]:
        node = self._testbed.load
        entries = [specs.waited(self._entry, START_SLACK_S + self._settings.window_s), *specs.stopped(specs.SAMPLER)]
        if order.aggressor is not None and order.aggressor.get("peer"):
            entries += specs.stopped(specs.PEER)
        return specs.run(node, entries, [node.path(specs.LOAD), node.path(specs.SAMPLES)])

    def _stop_tested(self, order: Order) -> dict[str, Any]:
        node, batch = self._testbed.tested, self._workloads.batch_process(order)
        names = [specs.SAMPLER] if batch is None else [specs.SAMPLER, batch]
        return specs.run(node, specs.stopped(*names), [node.path(specs.SAMPLES)])

    def _lifetime_s(self) -> float:
        return self._settings.warmup_s + self._settings.window_s + START_SLACK_S + specs.GRACE_S


def merged(policy: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the policy document with what was found after the window, entry by entry where both are mappings."""
    found = dict(policy)
    for key, value in after.items():
        both = isinstance(value, Mapping) and isinstance(found.get(key), Mapping)
        found[key] = merged(found[key], value) if both else value
    return found


def content(results: Mapping[str, Any], path: str) -> bytes:
    """Return a file that module process brought along, empty where there was none."""
    entry = results["contents"].get(path)
    return b"" if entry is None else zlib.decompress(base64.b64decode(entry["content_b64_zlib"]))


def _ended(results: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return a clause about a process that was to be stopped and had ended by itself, with what it said last."""
    for entry in results.get("processes") or ():
        left = entry.get("exit")
        if entry["name"] == name and not entry["changed"] and left:
            how = f"signal {left['signal']}" if left.get("signal") else f"status {left.get('status')}"
            lines = [line.strip() for line in str(entry.get("log_tail") or "").splitlines() if line.strip()]
            said = "; ".join(lines[-LOG_LINES:])[-LOG_CHARACTERS:] or "nothing"
            return (f"{name} ended by itself with {how}, its log ends with: {said}",)
    return ()


def _json(results: Mapping[str, Any], path: str, host: str) -> dict[str, Any]:
    found = content(results, path)
    if not found:
        raise BenchError(f"{host}: {path} was not written; look at {path.rsplit('/', 1)[0]}/processes/load.log")
    return dict(json.loads(found))
