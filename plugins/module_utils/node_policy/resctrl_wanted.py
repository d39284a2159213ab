# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the options of module resctrl_group to the numbers of this host: percentages become ways and bandwidth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cpu_list, resctrl
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.resctrl import ResctrlError, State
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.resctrl_steps import (
    WantedGroup,
    WantedMonitor,
)
from ansible_collections.colocation.testbed.plugins.module_utils.policy import resctrl as policy

# AMD counts in eighths of GB/s.
_AMD_UNIT_MB_PER_S = 125
# With mba_MBps the kernel counts in units of 2^20 bytes (mbm_bw_count in fs/resctrl/monitor.c).
_MB, _KERNELS_MB = 10**6, 2**20
_CACHE_KEYS = ("l3_mask", "l3_cat_range_start_percent", "l3_cat_range_end_percent")


@dataclass
class Resolver:
    """Turns options into the numbers of this host, and keeps what is not possible here."""

    state: State
    skipped: list[dict[str, str]] = field(default_factory=list)

    def group(self, raw: dict[str, Any]) -> WantedGroup:
        """Return a wanted group. Raises ResctrlError for what is not possible anywhere."""
        try:
            cpus = None if raw["cpus"] is None else cpu_list.parse(raw["cpus"])
            values = {**self._cache(raw), **self._bandwidth(raw)} if raw["state"] == "present" else {}
        except (cpu_list.CpuListError, policy.ResctrlPolicyError) as exc:
            raise ResctrlError(f"resctrl group {raw['name'] or '(root)'}: {exc}") from exc
        monitors = tuple(WantedMonitor(item["name"], tuple(item["pids"])) for item in raw["monitor_groups"])
        if monitors and self.state.info.rmids is None:
            self._skip(raw, "monitor_groups", "this host has no cache monitoring")
            monitors = ()
        return WantedGroup(raw["name"], raw["state"], values, cpus, tuple(raw["pids"]), monitors)

    def _skip(self, raw: dict[str, Any], key: str, why: str) -> None:
        self.skipped.append({"group": raw["name"], "key": key, "why": why})

    def _cache(self, raw: dict[str, Any]) -> dict[str, int]:
        keys = [key for key in _CACHE_KEYS if raw[key] is not None]
        if not keys:
            return {}
        cache = self.state.info.cache
        if cache is None:
            self._skip(raw, keys[0], "this host has no control of the L3 cache")
            return {}
        if raw["l3_mask"] is not None:
            mask = resctrl.parse_number(raw["l3_mask"], 16)
            if mask is None:
                raise ResctrlError(
                    f"resctrl group {raw['name'] or '(root)'}: l3_mask {raw['l3_mask'][:40]!r} is not a mask; write "
                    f"hexadecimal digits, at most {cache.cbm_mask:x}"
                )
        else:
            start, end = raw["l3_cat_range_start_percent"], raw["l3_cat_range_end_percent"]
            mask = policy.cat_mask(cache.cbm_mask, start, end, cache.min_cbm_bits)
        lines = ("L3CODE", "L3DATA") if self.state.info.cdp else ("L3",)
        return dict.fromkeys(lines, mask)

    def _bandwidth(self, raw: dict[str, Any]) -> dict[str, int]:
        key = "mba_percent" if raw["mba_percent"] is not None else "mba_mb_per_s"
        if raw[key] is None:
            return {}
        info = self.state.info
        if info.bandwidth is None:
            self._skip(raw, key, "this host has no control of memory bandwidth")
            return {}
        value = self._percent(raw) if key == "mba_percent" else self._mb_per_s(raw)
        return {} if value is None else {resctrl.BANDWIDTH_LINE: value}

    def _percent(self, raw: dict[str, Any]) -> int | None:
        info = self.state.info
        if info.mba_mbps:
            self._skip(raw, "mba_percent", "resctrl is mounted with mba_MBps, which counts in MB/s; use mba_mb_per_s")
            return None
        if info.bandwidth is None or info.bandwidth.linear:
            vendor, most = policy.INTEL, 100
        else:
            vendor, most = policy.AMD, max(self.state.root.values(resctrl.BANDWIDTH_LINE).values())
        steps = (info.bandwidth.granularity, info.bandwidth.minimum) if info.bandwidth else (10, 10)
        return policy.mba_value(raw["mba_percent"], vendor, most, *steps)

    def _mb_per_s(self, raw: dict[str, Any]) -> int | None:
        info, value = self.state.info, int(raw["mba_mb_per_s"])
        if value < 1:
            raise ResctrlError(
                f"resctrl group {raw['name'] or '(root)'}: mba_mb_per_s {value} is not 1 or more; raise it"
            )
        if info.mba_mbps:
            return max(value * _MB // _KERNELS_MB, 1)
        if info.bandwidth is not None and not info.bandwidth.linear:
            return max(value // _AMD_UNIT_MB_PER_S, info.bandwidth.minimum, 1)
        self._skip(raw, "mba_mb_per_s", "resctrl is not mounted with mba_MBps; use mba_percent, or mount it so")
        return None


def wanted(resolver: Resolver, groups: Sequence[dict[str, Any]]) -> list[WantedGroup]:
    """Return the wanted groups. Raises ResctrlError with a sentence for each that is not possible anywhere."""
    found, problems = [], []
    for raw in groups:
        try:
            found.append(resolver.group(raw))
        except ResctrlError as exc:
            problems.append(str(exc))
    if problems:
        raise ResctrlError("; ".join(problems))
    return found


def no_longer_wanted(owned: Iterable[str], wanted_groups: Sequence[WantedGroup]) -> list[WantedGroup]:
    """Return the groups that are to go because a call made or changed them once and this one does not name them."""
    named = {group.name for group in wanted_groups}
    return [WantedGroup(name, "absent") for name in sorted(owned) if name not in named]
