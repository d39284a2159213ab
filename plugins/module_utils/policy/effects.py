# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a policy's keys come to: one row for each, with the options or settings that carry it out.

The table is what states are told from, and what docs/policies.md is written from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils.policy import vocabulary_bandwidth, vocabulary_qos
from ansible_collections.colocation.testbed.plugins.module_utils.policy.vocabulary import SECTIONS
from ansible_collections.colocation.testbed.plugins.module_utils.policy.vocabulary_types import (
    Leaf,
    ListOf,
    MapOf,
    Node,
)

CGROUP, HOST, RESCTRL, BANDWIDTH, SWITCH, NOTHING = "cgroup", "host", "resctrl", "bandwidth", "switch", "nothing"
CARRIED_OUT = (CGROUP, HOST, RESCTRL, BANDWIDTH)
READINGS = "needs readings at run time; engine static does not take them"
OFFER = "a scheduler's matter; it decides what a node offers to batch work, which is no kernel value"
MANAGER = "Koordinator's manager reads it; it is no kernel value"
COOKIES = "core scheduling marks processes; engine static only sets values of groups"
NETWORK = "network bandwidth is no value of a group; engine static only sets those"
COST = "sets blk-iocost up for a disk as a whole; engine static only sets values of groups"
ANY = "*Class"
_ENTRY = re.compile(r"\[[0-9]+\]")


@dataclass(frozen=True)
class Effect:
    """What a key comes to.

    ``kind`` CGROUP: ``names`` are options of module cgroup; HOST: settings of module host_tuning; RESCTRL: what stands
    in the schemata; BANDWIDTH: ``module.option`` of modules bandwidth_pool and bandwidth_class; SWITCH: it decides
    whether others count; NOTHING: no kernel value, ``text`` says why. Else ``text`` is the value in words.
    """

    kind: str
    names: tuple[str, ...]
    text: str


def _cgroup(text: str, *names: str) -> Effect:
    return Effect(CGROUP, names, text)


def _host(text: str, name: str) -> Effect:
    return Effect(HOST, (name,), text)


def _nothing(text: str) -> Effect:
    return Effect(NOTHING, (), text)


_SWITCH = Effect(SWITCH, (), "")
THROTTLES = {"readBPS": "rbps", "writeBPS": "wbps", "readIOPS": "riops", "writeIOPS": "wiops"}

_QOS: Mapping[tuple[str, ...], Effect] = {
    ("policies", "cpuPolicy"): _SWITCH,
    ("policies", "netQOSPolicy"): _nothing(NETWORK),
    (ANY, "cpuQOS", "groupIdentity"): _cgroup("the value, with `cpuPolicy: groupIdentity`", "cpu_bvt_warp_ns"),
    (ANY, "cpuQOS", "schedIdle"): _cgroup("the value, on pods and host groups", "cpu_idle"),
    (ANY, "cpuQOS", "coreExpeller"): _nothing(COOKIES),
    (ANY, "memoryQOS", "minLimitPercent"): _cgroup("memory request · percent / 100", "memory_min_bytes"),
    (ANY, "memoryQOS", "lowLimitPercent"): _cgroup(
        "memory request · percent / 100, at least the minimum", "memory_low_bytes"
    ),
    (ANY, "memoryQOS", "throttlingPercent"): _cgroup(
        "request + (limit or node - request) · percent / 100, down to pages; 0: no limit", "memory_high_bytes"
    ),
    (ANY, "memoryQOS", "wmarkRatio"): _cgroup("the value", "memory_wmark_ratio"),
    (ANY, "memoryQOS", "wmarkScalePermill"): _cgroup("the value", "memory_wmark_scale_factor"),
    (ANY, "memoryQOS", "wmarkMinAdj"): _cgroup("the value", "memory_wmark_min_adj"),
    (ANY, "memoryQOS", "priorityEnable"): _cgroup("the value", "memory_use_priority_oom"),
    (ANY, "memoryQOS", "priority"): _cgroup("the value", "memory_priority"),
    (ANY, "memoryQOS", "oomKillGroup"): _cgroup("the value", "memory_oom_group"),
    (ANY, "resctrlQOS", "catRangeStartPercent"): Effect(
        RESCTRL, ("L3",), "from way ceil(ways · percent / 100) on, of the group of the class"
    ),
    (ANY, "resctrlQOS", "catRangeEndPercent"): Effect(RESCTRL, ("L3",), "up to way ceil(ways · percent / 100)"),
    (ANY, "resctrlQOS", "mbaPercent"): Effect(
        RESCTRL, ("MB",), "Intel: percent, up to the granularity; AMD: 160 · percent / 100, 100 is no limit"
    ),
    (ANY, "blkioQOS", "blocks"): _SWITCH,
    (ANY, "blkioQOS", "blocks", "name"): _SWITCH,
    (ANY, "blkioQOS", "blocks", "type"): _SWITCH,
    **{
        (ANY, "blkioQOS", "blocks", "ioCfg", key): _cgroup(f"`{word}` of the disk; 0: no limit", "io_max")
        for key, word in THROTTLES.items()
    },
    (ANY, "blkioQOS", "blocks", "ioCfg", "ioWeightPercent"): _cgroup("percent · 100", "io_weight"),
    **{
        (ANY, "blkioQOS", "blocks", "ioCfg", key): _nothing(COST)
        for key in (
            *("readLatency", "writeLatency", "readLatencyPercent", "writeLatencyPercent", "enableUserModel"),
            *("modelReadBPS", "modelReadSeqIOPS", "modelReadRandIOPS"),
            *("modelWriteBPS", "modelWriteSeqIOPS", "modelWriteRandIOPS"),
        )
    },
    **{
        (ANY, "networkQOS", key): _nothing(NETWORK)
        for key in ("ingressRequest", "egressRequest", "ingressLimit", "egressLimit")
    },
    **{(ANY, block, "enable"): _SWITCH for block in ("cpuQOS", "memoryQOS", "resctrlQOS", "blkioQOS", "networkQOS")},
}

_THRESHOLD: Mapping[tuple[str, ...], Effect] = {
    ("enable",): _SWITCH,
    ("cpuSuppressPolicy",): _SWITCH,
    ("cpuSuppressThresholdPercent",): _cgroup(
        "CPUs · percent / 100 of the period, on the root of best effort; at least 2000 µs", "cpu_quota_us"
    ),
    ("cpuSuppressMinPercent",): _cgroup("the same, whichever is more", "cpu_quota_us"),
}

_BURST: Mapping[tuple[str, ...], Effect] = {
    ("policy",): _SWITCH,
    ("cpuBurstPercent",): _cgroup("CPU limit · percent / 100 of the period, not above the quota", "cpu_burst_us"),
}

_SYSTEM: Mapping[tuple[str, ...], Effect] = {
    ("minFreeKbytesFactor",): _host("KiB of memory · factor / 10000", "vm.min_free_kbytes"),
    ("watermarkScaleFactor",): _host("the value", "vm.watermark_scale_factor"),
    ("memcgReapBackGround",): _host("the value", "/sys/kernel/mm/memcg_reaper/reap_background"),
    ("schedGroupIdentityEnabled",): _host("the value", "kernel.sched_group_identity_enabled"),
    ("schedIdleSaverWmark",): _host("the value", "kernel.sched_idle_saver_wmark"),
    ("schedFeatures",): _nothing("scheduler features are switches for debugging; engine static does not touch them"),
    ("totalNetworkBandwidth",): _nothing(NETWORK),
}


def _pool(key: str, text: str) -> tuple[tuple[str, ...], Effect]:
    return (key,), Effect(BANDWIDTH, (f"bandwidth_pool.{key}",), text)


def _of_class(name: str) -> dict[tuple[str, ...], Effect]:
    return {
        (name, key): Effect(BANDWIDTH, (f"bandwidth_class.{key}",), text)
        for key, text in (
            ("request", "what they have in any case, with `shares`"),
            ("limit", "what they have together at most"),
            ("priority", "who comes first in what requests leave; 2 before 0"),
        )
    }


_BANDWIDTH: Mapping[tuple[str, ...], Effect] = {
    ("enable",): _SWITCH,
    **dict(
        (
            _pool("total", "what the link has"),
            _pool("waterline", "rate of all others above which groups of class BE together get `low`"),
            _pool("low", "the value, of all groups of class BE together"),
            _pool("high", "the same while others are below the waterline"),
            _pool("continuous", "what others leave of the total, between low and high"),
            _pool("window", "1ms to 1s"),
            _pool("hold", "quiet windows until `high` comes back"),
            _pool("accounting", "what of a packet counts"),
            _pool("shares", "how requests and priorities divide the total"),
        )
    ),
    **_of_class(vocabulary_bandwidth.BATCH),
    **_of_class(vocabulary_bandwidth.SERVICE),
}
BANDWIDTH_NAMES = tuple(dict.fromkeys(name for effect in _BANDWIDTH.values() for name in effect.names))

_APPLICATIONS: Mapping[tuple[str, ...], Effect] = {
    ("applications",): _SWITCH,
    ("applications", "name"): _SWITCH,
    ("applications", "priority"): _nothing(OFFER),
    ("applications", "qos"): _cgroup("what `cpuQOS` of its class says", "cpu_bvt_warp_ns", "cpu_idle"),
    ("applications", "cgroupPath", "base"): _SWITCH,
    ("applications", "cgroupPath", "parentDir"): _SWITCH,
    ("applications", "cgroupPath", "relativePath"): _SWITCH,
}

REQUESTS: Mapping[str, Effect] = {
    "batch-cpu request": _cgroup(
        "shares = milli-cores · 1024 / 1000, within 2 to 262144; weight = 1 + (shares - 2) · 9999 / 262142",
        "cpu_shares",
    ),
    "batch-cpu limit": _cgroup(
        "milli-cores · 100 µs, at least 1000; none, 0, and any under a ceiling by quota: no limit", "cpu_quota_us"
    ),
    "batch-memory limit": _cgroup("bytes; none: no limit", "memory_max_bytes"),
    "cpu request, of host processes": _cgroup("as batch-cpu; class BE always has 2 shares", "cpu_shares"),
    "cpu limit, of host processes": _cgroup("as batch-cpu; none: left as it is", "cpu_quota_us"),
    "memory limit, of host processes": _cgroup("bytes; none: left as it is", "memory_max_bytes"),
}
"""What a workload asks for, and what it comes to."""

_REST: Mapping[str, Effect] = {
    "colocation-config": _nothing(OFFER),
    "resource-threshold-config": _nothing(READINGS),
    "cpu-burst-config": _nothing(READINGS),
    "cpu-normalization-config": _nothing(MANAGER),
    "resource-amplification-config": _nothing(MANAGER),
}
_TABLE: Mapping[str, Mapping[tuple[str, ...], Effect]] = {
    "resource-qos-config": _QOS,
    "resource-threshold-config": _THRESHOLD,
    "cpu-burst-config": _BURST,
    "system-config": _SYSTEM,
    "host-application-config": _APPLICATIONS,
    vocabulary_bandwidth.SECTION: _BANDWIDTH,
}


class EffectError(Exception):
    """A key has no row in the table."""


def find(section: str, names: tuple[str, ...]) -> Effect:
    """Return what a key of a strategy comes to; of a key that is the user's own, what the mapping does.

    Raises EffectError for one that is in no table.
    """
    general = tuple(ANY if name in vocabulary_qos.CLASSES else _ENTRY.sub("", name) for name in names)
    table = _TABLE.get(section, {})
    effect = next((table[general[:end]] for end in range(len(general), 0, -1) if general[:end] in table), None)
    effect = effect or _REST.get(section)
    if effect is None:
        raise EffectError(f"{section}.{'.'.join(names)}: has no effect told; add it to the table")
    return effect


def keys(section: str) -> Iterator[tuple[str, ...]]:
    """Yield the path of every key of a section's strategy; keys within lists as if the list were a mapping."""
    yield from _leaves(SECTIONS[section].strategy, ())


def _leaves(node: Node, names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(node, ListOf) and not isinstance(node.item, Leaf):
        yield from _leaves(node.item, names)
    elif isinstance(node, (Leaf, ListOf, MapOf)):
        yield names
    else:
        for name, child in node.items():
            yield from _leaves(child, (*names, name))
