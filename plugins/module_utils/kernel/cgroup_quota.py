# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether quotas of CPU time fit into each other: on v1 no group may have a larger share of a CPU than one above it.

The kernel compares quota/period of each group with the least of those above, in units of 2^-20 (to_ratio and
tg_cfs_schedulable_down in kernel/sched/core.c). It refuses a parent's write because of a child and the other way round,
and says only EINVAL; so it is asked here, where both can be named. On v2 the smaller one simply counts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup_keys
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup import CgroupError, Hierarchy
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_steps import Setting
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_tree import Tree
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_values import NO_LIMIT

_SHIFT = 20
_NAMES = ("cpu_quota_us", "cpu_period_us")


@dataclass(frozen=True)
class _Band:
    """A group's quota and period in microseconds."""

    quota_us: int
    period_us: int

    @property
    def ratio(self) -> int | None:
        """Return the share of a CPU as the kernel compares it; None for no limit."""
        if self.quota_us == NO_LIMIT or self.period_us <= 0:
            return None
        return (self.quota_us << _SHIFT) // self.period_us


class _Bands:
    """The quotas of a v1 hierarchy as they will be."""

    def __init__(self, tree: Tree, hierarchy: Hierarchy, settings: Sequence[Setting]) -> None:
        self._tree, self._mount = tree, hierarchy.mount
        self._wanted: dict[str, dict[str, int]] = {}
        for item in settings:
            if item.key.name in _NAMES:
                self._wanted.setdefault(item.directory, {})[item.key.name] = int(item.wanted(tree))

    def changing(self) -> Mapping[str, Mapping[str, int]]:
        """Return the groups that get a quota or period."""
        return self._wanted

    def present(self, directory: str) -> _Band:
        """Return what a group has now; a group that is to be made has no limit."""
        found = []
        for name in _NAMES:
            file = cgroup_keys.BY_NAME[name].file(1)
            text = self._tree.text(directory, file, self._mount) if file else None
            found.append(int(file.parse(text)) if file and text is not None else NO_LIMIT)
        return _Band(*found)

    def final(self, directory: str) -> _Band:
        """Return what a group will have."""
        wanted, now = self._wanted.get(directory, {}), self.present(directory)
        return _Band(wanted.get(_NAMES[0], now.quota_us), wanted.get(_NAMES[1], now.period_us))

    def above(self, directory: str) -> str | None:
        """Return the nearest group above that has a limit."""
        place = os.path.dirname(directory)
        while len(place) > len(self._mount):
            if self.final(place).ratio is not None:
                return place
            place = os.path.dirname(place)
        return None

    def limited_below(self, directory: str) -> Iterator[str]:
        """Yield the nearest groups below that are there and have a limit."""
        for place, names, _files in os.walk(directory):
            if place != directory and self.final(place).ratio is not None:
                names.clear()
                yield place

    def shown(self, directory: str) -> str:
        """Return a group's path below the hierarchy."""
        return directory[len(self._mount) + 1 :]


def check(tree: Tree, settings: Sequence[Setting]) -> None:
    """Raise CgroupError for quotas that would be larger shares of a CPU than those of a group above (v1)."""
    hierarchy = next((item.hierarchy for item in settings if item.hierarchy.version == 1), None)
    if hierarchy is None:
        return
    bands = _Bands(tree, hierarchy, settings)
    for directory in bands.changing():
        above = bands.above(directory)
        if above is not None:
            _compare(bands, above, directory)
        now, then = bands.present(directory).ratio, bands.final(directory).ratio
        if then is not None and (now is None or then < now):
            for below in bands.limited_below(directory):
                _compare(bands, directory, below)


def _compare(bands: _Bands, above: str, below: str) -> None:
    upper, lower = bands.final(above), bands.final(below)
    if upper.ratio is None or lower.ratio is None or lower.ratio <= upper.ratio:
        return
    raise CgroupError(
        f"cgroup {bands.shown(below)}: cpu_quota_us {lower.quota_us} in {lower.period_us} us is a larger share of a "
        f"CPU than {upper.quota_us} in {upper.period_us} us of {bands.shown(above)}, which v1 does not allow; "
        "lower it, or raise the one above"
    )
