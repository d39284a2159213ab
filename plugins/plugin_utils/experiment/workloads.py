# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a measurement needs of the workloads, wherever they run: the seam between substrates `process` and `pod`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Order:
    """What is to be measured: everything resolved, nothing left to look up.

    ``groups`` are what a mode comes to in groups of our own; ``policy`` and ``engine`` what it says.
    """

    label: str
    mode: str
    url: str
    rate_rps: float | None
    seed: int
    groups: tuple[dict[str, Any], ...]
    aggressor: Mapping[str, Any] | None
    link: Mapping[str, Any] | None = None
    engine: str = "none"
    policy: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Watch:
    """What the sampler of a host looks at.

    ``groups`` are below the host's root but for those in ``group_paths`` (path below the hierarchies by name);
    ``files`` are read back by sample key; ``work`` tells how work done is read; ``processes`` must live in a group.
    """

    groups: tuple[str, ...]
    group_paths: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    work: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    processes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Prepared:
    """The tested node as a mode wants it: the policy document, what is started with the sampler, what that sees."""

    policy: Mapping[str, Mapping[str, Any]]
    watch: Watch
    entries: tuple[Mapping[str, Any], ...] = ()


class Workloads(Protocol):
    """The service and the batch workload on the tested node."""

    @property
    def processes(self) -> tuple[str, ...]:
        """Return the names of supervised processes that may run until ``stop_all``."""

    def start_service(self, groups: Sequence[Mapping[str, Any]]) -> None:
        """Start the service; it runs until ``stop_all``."""

    def url(self, url: str) -> str:
        """Return a URL of the service as the load node reaches it."""

    def prepare(self, order: Order, lifetime_s: float) -> Prepared:
        """Bring the mode about; what is started meanwhile lives for ``lifetime_s`` at most."""

    def batch_process(self, order: Order) -> str | None:
        """Return the name of the batch workload's process, which is stopped with the sampler; None where it is none."""

    def look_again(self, order: Order) -> Mapping[str, Any]:
        """Return what the policy document gets of the state right after the window."""

    def release(self, order: Order) -> None:
        """Take away what ``prepare`` started besides processes."""

    def stop_all(self) -> None:
        """Stop everything that was started on the tested node, and put back what was changed for the run."""
