# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Substrate `process`: service and batch workload are processes in control groups of our own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment import specs
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.link import Link
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.workloads import Order, Prepared, Watch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.deployed import Testbed


class HostWorkloads:
    """Runs the workloads as processes."""

    def __init__(self, testbed: Testbed, divides_link: bool) -> None:
        """Remember what is deployed.

        :param divides_link: whether any mode of the run limits packets; if not, the link is never touched.
        """
        self._testbed = testbed
        self._node = testbed.tested
        self._divides_link = divides_link
        self._link = Link(testbed.tested, testbed.load_address)

    @property
    def processes(self) -> tuple[str, ...]:
        """Return the names of service and batch workload."""
        return (specs.BATCH, self._service)

    @property
    def _service(self) -> str:
        return str(self._testbed.service.process["name"])

    def start_service(self, groups: Sequence[Mapping[str, Any]]) -> None:
        """Make the groups and start the service in its own."""
        self._link.clear()
        self._apply(groups)
        specs.run(self._node, [{**self._testbed.service.process, "state": "started"}])

    def url(self, url: str) -> str:
        """Return the URL: the service is where the host is."""
        return url

    def prepare(self, order: Order, lifetime_s: float) -> Prepared:
        """Apply the groups and the link; the batch workload is started together with the sampler."""
        found = self._apply(order.groups)
        # The module has read back every value that it wrote, so what the kernel says is what was asked.
        values = dict(found["policy_values"])
        link = self._link.apply(order.link) if self._divides_link else {"wanted": {}, "applied": {}}
        processes = {self._service: "service"}
        entries: list[Mapping[str, Any]] = []
        work: Mapping[str, Mapping[str, str]] = {}
        if order.aggressor is not None:
            placeholders = self._testbed.placeholders(self._node.path("batch-progress.txt"))
            entries.append(specs.batch(self._node, order.aggressor, placeholders, lifetime_s))
            processes[specs.BATCH] = "batch"
            work = specs.work(order.aggressor, placeholders)
        watch = Watch(
            groups=("service", "batch"),
            files=dict(found["policy_files"]),
            work=work,
            processes={name: specs.in_group(self._node, name, group) for name, group in processes.items()},
        )
        return Prepared({name: {**values, **link[name]} for name in ("wanted", "applied")}, watch, tuple(entries))

    def batch_process(self, order: Order) -> str | None:
        """Return the batch workload's process, where the mode has one."""
        return None if order.aggressor is None else specs.BATCH

    def look_again(self, order: Order) -> Mapping[str, Any]:
        """Return what there is of the link, of which no sample tells."""
        return {} if order.link is None else {"after": self._link.look_again()}

    def release(self, order: Order) -> None:
        """Do nothing: all that was started are processes."""

    def stop_all(self) -> None:
        """Take the link back; processes are stopped by their names."""
        if self._divides_link:
            self._link.remove()

    def _apply(self, groups: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        more = {"cgroup2": True} if self._divides_link else {}
        return specs.make_groups(self._node, groups, **more)
