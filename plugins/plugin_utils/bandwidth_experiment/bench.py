# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One measurement: put the shaper on, start receivers and senders, let the window pass, stop, collect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment import processes
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment.figures import Raw
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment import specs
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.bench import content
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.workloads import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment.processes import Ends, Job
    from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment.settings import (
        BandwidthSettings,
    )
    from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.deployed import Node

INSTANCE = "experiment"
#: Seconds that starting everything takes at most.
START_SLACK_S = 20.0
_SAMPLES_EACH_S = 0.5
_TRIED: Mapping[str, Any] = {
    "role": "offline", "priority": 0, "limit_bps": 10**9, "request_bps": None, "probe": False, "flows": 1,
    "protocol": "tcp",
}  # fmt: skip
#: Tells which plane our shaper takes here for each direction.
_TRIAL: Mapping[str, Any] = {
    "pool": {},
    "classes": {f"trial-{direction}": {**_TRIED, "direction": direction} for direction in ("egress", "ingress")},
}


@dataclass(frozen=True)
class Order:
    """What is to be measured: everything resolved, nothing left to look up."""

    label: str
    case: Mapping[str, Any]
    shaper: str
    window_s: float
    warmup_s: float
    #: How much longer than warm-up and window is waited, since connections take a moment.
    late_s: float = 0.0


class TrafficBench:
    """Carries out measurements between two prepared hosts."""

    def __init__(self, ends: Ends, settings: BandwidthSettings, wait: Callable[[float, str], None]) -> None:
        """Remember what is deployed.

        :param wait: called with seconds and a label while a window runs; returns when they have passed.
        """
        self._ends = ends
        self._settings = settings
        self._wait = wait
        self._nodes = (ends.tested, ends.load)
        self._names: list[str] = []
        self._started: dict[str, dict[str, None]] = {node.name: {} for node in self._nodes}

    def prepare(self, names: Sequence[str]) -> dict[str, Any]:
        """Make both hosts ready, and return what the shaper tells of the device, with the planes that ours has there.

        :param names: all processes that the run may start; what a run that was killed left of them is ended.
        """
        self._names = list(names)
        for node in self._nodes:
            self._process(node, specs.stopped(*names))
        if self._settings.hold_pm_qos:
            for node in self._nodes:
                self._process(node, [specs.pm_qos(node)])
        self._groups(self._ends.load, [*specs.root_group(self._ends.load), *processes.groups(_nobody())])
        ours = self._shape("ebpf", _TRIAL, self.job(Order("", _TRIAL, "ebpf", 0.0, 0.0))) if self._with_ours else {}
        device = self._shape("none", {"pool": {}}, None)
        return {**device, "planes": ours.get("planes", {})}

    @property
    def _with_ours(self) -> bool:
        return "ebpf" in self._settings.shapers

    def stop_all(self) -> None:
        """Stop everything that was started, and take every shaper off."""
        for node in self._nodes:
            self._process(node, specs.stopped(*self._names, specs.HOLDER))
        node = self._ends.tested
        _run(node, "bandwidth_shaper", {**self._where({}), "state": "absent"})

    def job(self, order: Order) -> Job:
        """Return what the processes of an order must know."""
        lifetime_s = order.warmup_s + order.window_s + order.late_s + START_SLACK_S + specs.GRACE_S
        return processes.job(order.case, self._settings.port, self._settings.congestion_control, lifetime_s)

    def measure(self, order: Order) -> Raw:
        """Carry out one measurement; whatever happens, what it started is stopped.

        :raises HostExecutorError: where a part of it did not work.
        """
        job = self.job(order)
        ends = self._ends
        self._groups(ends.tested, [*specs.root_group(ends.tested), *processes.groups(job)])
        before = self._shape(order.shaper, order.case, job)
        files: dict[str, dict[str, bytes]] = {}
        try:
            for node in (ends.load, ends.tested):
                self._start(node, [self._sampler(node, job), *processes.receiving(job, ends, node)])
            for node in (ends.load, ends.tested):
                self._start(node, processes.sending(job, ends, node))
            self._wait(order.warmup_s + order.window_s + order.late_s, order.label)
        finally:
            for node in (ends.tested, ends.load):
                files[node.name] = self._stop(node, job)
        after = self._shape(order.shaper, order.case, job, check=True)
        return Raw(files, before, after)

    def _start(self, node: Node, entries: Sequence[Mapping[str, Any]]) -> None:
        if entries:
            self._started[node.name].update({str(entry["name"]): None for entry in entries})
            self._process(node, [{**entry, "state": "restarted"} for entry in entries])

    def _stop(self, node: Node, job: Job) -> dict[str, bytes]:
        """Stop what a measurement started on a host, senders first, and return the files that were left."""
        names = list(self._started[node.name])[::-1]
        wanted = processes.results(job, self._ends, node)
        found = self._process(node, specs.stopped(*names), wanted) if names else {"contents": {}}
        self._started[node.name] = {}
        return {path.removeprefix(f"{node.state_dir}/"): content(found, path) for path in wanted}

    def _sampler(self, node: Node, job: Job) -> dict[str, Any]:
        entry = specs.sampler(node, Watch(groups=(processes.GROUP,)), job.lifetime_s)
        entry["spec"]["interval_s"] = _SAMPLES_EACH_S
        return entry

    def _shape(self, kind: str, case: Mapping[str, Any], job: Job | None, check: bool = False) -> dict[str, Any]:
        classes = [] if job is None else [self._class(job, name) for name in case["classes"]]
        arguments = {
            **self._where(case),
            "kind": kind,
            "fresh": True,
            "load_programs": self._with_ours,
            "program_statistics": self._settings.program_statistics,
            "plane": self._settings.plane,
            "pool": self._pool(case["pool"]),
            "classes": classes,
        }
        return _run(self._ends.tested, "bandwidth_shaper", arguments, check)

    def _where(self, case: Mapping[str, Any]) -> dict[str, Any]:
        node = self._ends.tested
        to = self._ends.called("egress", case.get("family", "ipv4"))
        # Hosts of the lab share one BPF file system.
        return {"state_dir": node.state_dir, "instance": f"{INSTANCE}-{node.name}"[:63], "to": to}

    def _pool(self, pool: Mapping[str, Any]) -> dict[str, Any]:
        rates = {
            name.removesuffix("_bps"): f"{value}bit/s"
            for name, value in pool.items()
            if name.endswith("_bps") and value
        }
        return {**rates, "shares": pool.get("shares", "none"), "accounting": self._settings.accounting}

    def _class(self, job: Job, name: str) -> dict[str, Any]:
        item, port = job.classes[name], job.ports[name]
        grouped = job.by_group(item["direction"])
        ports = [port] if not item["probe"] else [port, port + processes.PROBE_PORT_ABOVE]
        rates = {key: f"{item[f'{key}_bps']}bit/s" for key in ("limit", "request") if item[f"{key}_bps"]}
        group = f"{self._ends.tested.cgroup_root}/{processes.group(name)}"
        return {
            "name": name, "direction": item["direction"], "role": item["role"], "priority": item["priority"], **rates,
            "group": group if grouped else None, "ports": ports,
            "address": None if grouped else self._ends.bound("ingress", job.family).partition("%")[0],
        }  # fmt: skip

    def _groups(self, node: Node, groups: Sequence[Mapping[str, Any]]) -> None:
        arguments = {"state_dir": node.state_dir, "root": node.cgroup_root, "groups": [dict(group) for group in groups]}
        _run(node, "cgroup", arguments)

    def _process(self, node: Node, entries: Sequence[Mapping[str, Any]], results: Sequence[str] = ()) -> dict[str, Any]:
        return _run(node, "process", specs.process_arguments(node, entries, results))


def _run(node: Node, module: str, arguments: Mapping[str, Any], check: bool = False) -> dict[str, Any]:
    # Said each time: an executor keeps the mode of its last module.
    return node.host.run(module, arguments, check_mode=check)


def _nobody() -> Job:
    """Return a case without classes: what the load node's tools need."""
    return processes.Job({}, {}, "", 0.0)
