# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One measurement: apply the mode, start what it needs, send load, sample, stop, collect."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment import specs
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.link import Link

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.deployed import Node, Testbed
    from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.settings import MatrixSettings

#: Seconds that connecting and starting wrk take at most beyond warm-up and window.
START_SLACK_S = 20.0

#: How much of the log of a process that ended by itself is repeated.
LOG_LINES = 3
LOG_CHARACTERS = 400


class BenchError(Exception):
    """A measurement could not be carried out."""


@dataclass(frozen=True)
class Order:
    """What is to be measured: everything resolved, nothing left to look up."""

    label: str
    mode: str
    url: str
    rate_rps: float | None
    seed: int
    groups: tuple[dict[str, Any], ...]
    aggressor: Mapping[str, Any] | None
    link: Mapping[str, Any] | None = None


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
        divides_link: bool = False,
    ) -> None:
        """Remember what is deployed.

        :param wait: called with seconds and a label while a window runs; returns when they have passed.
        :param divides_link: whether any mode of the run limits packets; if not, the link is never touched.
        """
        self._testbed = testbed
        self._settings = settings
        self._wait = wait
        self._divides_link = divides_link
        self._link = Link(testbed.tested, self._load_address())

    def hold_pm_qos(self) -> None:
        """Keep idle states off on both hosts until ``stop_all``."""
        for node in self._testbed.nodes:
            self._process(node, [specs.pm_qos(node)])

    def start_service(self, groups: Sequence[Mapping[str, Any]]) -> None:
        """Make the groups and start the service in its own; it runs until ``stop_all``."""
        node = self._testbed.tested
        self._link.clear()
        self._apply(groups)
        self._process(node, [{**self._testbed.service.process, "state": "started"}])
        load = self._testbed.load
        self._groups(load, [*specs.root_group(load), {"name": "load"}])

    def stop_all(self) -> None:
        """Stop everything that a matrix starts, on both hosts."""
        tested, load = self._testbed.nodes
        service = str(self._testbed.service.process["name"])
        try:
            self._process(tested, specs.stopped(specs.BATCH, specs.SAMPLER, service, specs.HOLDER))
            self._process(load, specs.stopped(specs.GENERATOR, specs.PEER, specs.SAMPLER, specs.HOLDER))
        finally:
            if self._divides_link:
                self._link.remove()

    def measure(self, order: Order) -> Raw:
        """Carry out one measurement.

        :raises BenchError: where a part of it did not work; both hosts are left with the batch workload stopped.
        """
        try:
            policy = self._apply(order.groups)
            link = self._link.apply(order.link) if self._divides_link else None
            self._start_tested(order, policy["files"])
            self._send(order)
            load_results = self._finish_load(order)
        finally:
            tested_results = self._stop_tested(order)
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
            policy=self._in_effect(order, policy, link),
            ended=(*_ended(tested_results, specs.BATCH), *_ended(load_results, specs.PEER)),
        )

    def _in_effect(
        self, order: Order, policy: Mapping[str, Any], link: Mapping[str, Mapping[str, str]] | None
    ) -> dict[str, dict[str, Any]]:
        """Return what was wanted and applied, and of what no sample has (the link) what there is after the window."""
        found = {name: {**policy[name], **(link or {}).get(name, {})} for name in ("wanted", "applied")}
        return found if order.link is None else {**found, "after": self._link.look_again()}

    def peak_rps(self, url: str, window_s: float, label: str) -> float:
        """Return the rate of requests per second that the service answers at full speed (wrk's closed loop)."""
        node = self._testbed.load
        entry = specs.load(self._testbed, self._settings, url, None, 1, window_s)
        self._process(node, [entry])
        self._wait(self._settings.warmup_s + window_s, label)
        ended = specs.waited(entry, START_SLACK_S)
        load = _json(self._process(node, [ended], [node.path(specs.LOAD)]), node.path(specs.LOAD), node.name)
        if "error" in load:
            raise BenchError(f"{node.name}: the load generator failed: {load['error']}")
        length_s = float(load["end_mono_s"]) - float(load["start_mono_s"])
        if not load["requests"] or length_s <= 0:
            raise BenchError(f"{node.name}: no request was answered at full speed; try the URL {url} by hand")
        return float(load["requests"]) / length_s

    def _apply(self, groups: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        result = self._groups(self._testbed.tested, groups)
        # The module has read back every value that it wrote, so what the kernel says is what was asked.
        values = dict(result["policy_values"])
        return {"files": dict(result["policy_files"]), "applied": values, "wanted": values}

    def _groups(self, node: Node, groups: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "state_dir": node.state_dir,
            "root": node.cgroup_root,
            "groups": [dict(group) for group in groups],
        }
        if self._divides_link and node is self._testbed.tested:
            arguments["cgroup2"] = True
        return node.host.run("cgroup", arguments)

    def _start_tested(self, order: Order, policy_files: Mapping[str, str]) -> None:
        lifetime_s = self._lifetime_s()
        entries: list[dict[str, Any]] = []
        processes = {str(self._testbed.service.process["name"]): "service"}
        work: dict[str, dict[str, str]] = {}
        if order.aggressor is not None:
            placeholders = self._placeholders()
            if order.aggressor.get("peer"):
                peer = specs.peer(self._testbed.load, order.aggressor, placeholders, lifetime_s)
                self._process(self._testbed.load, [peer])
            entries.append(specs.batch(self._testbed.tested, order.aggressor, placeholders, lifetime_s))
            processes[specs.BATCH] = "batch"
            work = specs.work(order.aggressor, placeholders)
        node = self._testbed.tested
        entries.append(specs.sampler(node, ("service", "batch"), policy_files, work, processes, lifetime_s))
        self._process(node, entries)

    def _send(self, order: Order) -> None:
        node = self._testbed.load
        sampler = specs.sampler(node, ("load",), {}, {}, {}, self._lifetime_s())
        self._entry = specs.load(
            self._testbed, self._settings, order.url, order.rate_rps, order.seed, self._settings.window_s
        )
        self._process(node, [sampler, self._entry])
        self._wait(self._settings.warmup_s + self._settings.window_s, order.label)

    def _finish_load(self, order: Order) -> dict[str, Any]:
        node = self._testbed.load
        entries = [specs.waited(self._entry, START_SLACK_S + self._settings.window_s), *specs.stopped(specs.SAMPLER)]
        if order.aggressor is not None and order.aggressor.get("peer"):
            entries += specs.stopped(specs.PEER)
        return self._process(node, entries, [node.path(specs.LOAD), node.path(specs.SAMPLES)])

    def _stop_tested(self, order: Order) -> dict[str, Any]:
        node = self._testbed.tested
        names = [specs.SAMPLER] if order.aggressor is None else [specs.SAMPLER, specs.BATCH]
        return self._process(node, specs.stopped(*names), [node.path(specs.SAMPLES)])

    def _process(self, node: Node, entries: Sequence[Mapping[str, Any]], results: Sequence[str] = ()) -> dict[str, Any]:
        return node.host.run("process", specs.process_arguments(node, entries, results))

    def _placeholders(self) -> dict[str, str]:
        node = self._testbed.tested
        return {
            **self._testbed.batch.placeholders,
            "progress": node.path("batch-progress.txt"),
            "peer_address": self._load_address(),
        }

    def _load_address(self) -> str:
        return str(self._testbed.load.host.variable("ansible_host", self._testbed.load.name))

    def _lifetime_s(self) -> float:
        return self._settings.warmup_s + self._settings.window_s + START_SLACK_S + specs.GRACE_S


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
