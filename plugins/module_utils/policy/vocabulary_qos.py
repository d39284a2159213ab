# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words of ``resource-qos-config``: what a class of pods gets of CPU, memory, disks, cache and network.

Names, ranges and the defaults of each class are those of Koordinator v1.8.0.
"""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.colocation.testbed.plugins.module_utils.policy.vocabulary_types import (
    ENGINES,
    Leaf,
    ListOf,
    Node,
    choice,
    flag,
    number,
    percent,
)

LSR, LS, BE, SYSTEM, ROOT = "lsrClass", "lsClass", "beClass", "systemClass", "cgroupRoot"
CLASSES = (LSR, LS, BE, SYSTEM, ROOT)
# The classes whose values Koordinator replaces by neutral ones when a block is disabled.
WITH_PRESETS = (LSR, LS, BE)

# Defaults that differ by class, in the order of CLASSES; they count once a block is enabled.
_GROUP_IDENTITY = dict(zip(CLASSES, (2, 2, -1, 0, 0)))
_CORE_EXPELLER = dict(zip(CLASSES, (True, True, False, False, False)))
_WMARK_RATIO = dict(zip(CLASSES, (95, 95, 95, 0, 0)))
_WMARK_SCALE = dict(zip(CLASSES, (20, 20, 20, 50, 50)))
_WMARK_MIN_ADJ = dict(zip(CLASSES, (-25, -25, 50, 0, 0)))
_CAT_END = dict(zip(CLASSES, (100, 100, 30, 100, 100)))

PRESETS: Mapping[str, Mapping[str, object]] = {
    "cpuQOS": {"groupIdentity": 0, "schedIdle": 0, "coreExpeller": False},
    "resctrlQOS": {"catRangeStartPercent": 0, "catRangeEndPercent": 100, "mbaPercent": 100},
    "memoryQOS": {
        "minLimitPercent": 0,
        "lowLimitPercent": 0,
        "throttlingPercent": 0,
        "wmarkRatio": 0,
        "wmarkScalePermill": 50,
        "wmarkMinAdj": 0,
        "priorityEnable": 0,
        "priority": 0,
        "oomKillGroup": 0,
    },
}
"""What Koordinator's agent uses instead where ``enable`` is false."""


def _memory(name: str) -> dict[str, Node]:
    return {
        "enable": flag(),
        "minLimitPercent": percent(0),
        "lowLimitPercent": percent(0),
        "throttlingPercent": percent(0),
        "wmarkRatio": percent(_WMARK_RATIO[name]),
        "wmarkScalePermill": number(_WMARK_SCALE[name], 1, 1000),
        "wmarkMinAdj": number(_WMARK_MIN_ADJ[name], -25, 50),
        "priorityEnable": number(0, 0, 1),
        "priority": number(0, 0, 12),
        "oomKillGroup": number(0, 0, 1),
    }


def _io_config() -> dict[str, Node]:
    throttles = ("readIOPS", "writeIOPS", "readBPS", "writeBPS")
    model = ("ReadBPS", "ReadSeqIOPS", "ReadRandIOPS", "WriteBPS", "WriteSeqIOPS", "WriteRandIOPS")
    return {
        **{name: number(0, 0) for name in throttles},
        "ioWeightPercent": number(100, 1, 100),
        "readLatency": number(3000, 1),
        "writeLatency": number(3000, 1),
        "readLatencyPercent": percent(95),
        "writeLatencyPercent": percent(95),
        "enableUserModel": flag(),
        **{f"model{name}": number(None, 1) for name in model},
    }


def _blkio() -> dict[str, Node]:
    block: dict[str, Node] = {
        "name": Leaf("text"),
        "type": choice("device", "device", "volumegroup", "podvolume"),
        "ioCfg": _io_config(),
    }
    return {"enable": flag(), "blocks": ListOf(block, ("name",))}


def _network() -> dict[str, Node]:
    # What is not written is filled in by the definition of NodeSLO: nothing is kept, and all may be used.
    shares = {"ingressRequest": 0, "egressRequest": 0, "ingressLimit": 100, "egressLimit": 100}
    return {"enable": flag(), **{name: Leaf("share", default) for name, default in shares.items()}}


def qos_class(name: str) -> dict[str, Node]:
    """Return the words of one class, with its defaults. Engine static acts on ``schedIdle`` of ls and be alone."""
    static = name in (LS, BE)
    return {
        "cpuQOS": {
            "enable": flag(static=static),
            "groupIdentity": number(_GROUP_IDENTITY[name], -1, 2),
            "schedIdle": Leaf("int", 0, 0, 1, engines=ENGINES) if static else number(0, 0, 1),
            "coreExpeller": flag(_CORE_EXPELLER[name]),
        },
        "memoryQOS": _memory(name),
        "resctrlQOS": {
            "enable": flag(),
            "catRangeStartPercent": percent(0),
            "catRangeEndPercent": percent(_CAT_END[name]),
            "mbaPercent": percent(100),
        },
        "blkioQOS": _blkio(),
        "networkQOS": _network(),
    }


STRATEGY: Mapping[str, Node] = {
    "policies": {
        "cpuPolicy": choice("groupIdentity", "groupIdentity", "coreSched"),
        "netQOSPolicy": choice("tc", "tc", "terway-qos"),
    },
    **{name: qos_class(name) for name in CLASSES},
}
