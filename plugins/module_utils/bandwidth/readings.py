# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an instance has counted: classes, pools with the waterline's state and its last changes."""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import instance
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.instance import Instance, State
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import bpf
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.bpf_layout import Structure

_STATES = ("high", "low")
_REASONS = {1: "budget of a window used up", 2: "window over the waterline", 3: "held number of quiet windows"}


def _value(opened: Instance, name: str, number: int, structure: Structure) -> dict[str, Any]:
    raw = bpf.lookup(opened.maps[name], struct.pack("<I", number)) or bytes(structure.size)
    return structure.unpack(raw)


def class_figures(opened: Instance, number: int, cpus: int) -> dict[str, int]:
    """Return the counters of a class since it was made: bytes as its pool counts them, times in ns."""
    structure = opened.layout["stats"]
    raw = bpf.lookup(opened.maps["class_stats"], struct.pack("<I", number), cpus) or bytes(structure.size * cpus)
    each = [structure.unpack(raw[cpu * structure.size :]) for cpu in range(cpus)]
    found: dict[str, int] = {}
    for name in structure.fields:
        numbers = [value for item in each for value in [item[name]] if isinstance(value, int)]
        found[name] = max(numbers) if name.endswith("_max_ns") else sum(numbers)
    return found


def pool_figures(opened: Instance, number: int, window_ns: int, cpus: int) -> dict[str, Any]:
    """Return the waterline's state, rates of the last window in bytes a second, and the last changes, newest last."""
    state = _value(opened, "pool_states", number, opened.layout["pool_state"])
    each = opened.layout.constant("EVENTS_EACH")
    count = int(state["transitions"])
    numbers = range(max(count - each, 0), count)
    events = [_value(opened, "events", number * each + item % each, opened.layout["event"]) for item in numbers]
    # Nobody closes windows while nothing is sent.
    stale = time.monotonic_ns() - int(state["window_start"]) > 2 * window_ns
    return {
        "state": _STATES[int(state["state"]) & 1],
        "since_ns": state["since"],
        "transitions": count,
        "online_rate": 0 if stale else state["online_rate"],
        "offline_rate": 0 if stale else state["offline_rate"],
        "stale": stale,
        "unclassified": class_figures(opened, number, cpus),
        "events": [
            {
                "time_ns": event["time_ns"],
                "to": _STATES[int(event["to"]) & 1],
                "rate": event["rate"],
                "reason": _REASONS.get(int(event["reason"]), "unknown"),
            }
            for event in events
        ],
    }


def figures(opened: Instance, state: State, sys_root: str = "/sys") -> dict[str, Mapping[str, Any]]:
    """Return the figures of all pools and classes by name. Raises BpfError."""
    cpus = instance.possible_cpus(sys_root)
    return {
        "pools": {
            name: pool_figures(opened, raw["number"], raw["window_ns"], cpus) for name, raw in state.pools.items()
        },
        "classes": {name: class_figures(opened, raw["number"], cpus) for name, raw in state.classes.items()},
    }
