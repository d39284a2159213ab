# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run of the bandwidth experiment records of itself, and what makes two runs the same."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ansible.release import __version__ as ansible_version

from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment import expectations
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.manifest import SCHEMA

if TYPE_CHECKING:
    from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment.processes import Ends
    from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment.settings import (
        BandwidthSettings,
    )

#: Where our shaper is not measured, what the others do.
PLANE_OF_OTHERS = "htb"


def fingerprint(settings: BandwidthSettings, scenarios: Mapping[str, Any], hosts: Mapping[str, Any], ends: Ends) -> str:
    """Return what tells whether a run that was cut short asked for the same: a SHA-256 in hexadecimal."""
    asked = {
        "settings": {
            name: value for name, value in vars(settings).items() if name not in ("results_dir", "run_id", "resume")
        },
        "scenarios": scenarios,
        "hosts": {
            name: [host["kernel"], host["cpu_model"], host["measured_cpus"]] for name, host in sorted(hosts.items())
        },
        # Hosts of equal names in two inventories are not the same ones.
        "places": [
            [ends.tested_end.address, ends.load_end.address],
            *([node.state_dir, node.cgroup_root] for node in (ends.tested, ends.load)),
        ],
    }
    return hashlib.sha256(json.dumps(asked, sort_keys=True, default=list).encode()).hexdigest()


def objectives(raw: Mapping[str, Any], plane: str) -> dict[str, float]:
    """Return a case's objectives for a plane; one that is told by plane and not for this one is none."""
    found = {}
    for name, value in raw.items():
        number = value.get(plane) if isinstance(value, Mapping) else value
        if number is not None:
            found[name] = float(number)
    return found


def used_planes(scenarios: Mapping[str, Any], planes: Mapping[str, str]) -> dict[str, str]:
    """Return the plane of our shaper for each direction that cases use."""
    directions = {
        item["direction"]
        for scenario in scenarios.values()
        for case in scenario["cases"].values()
        for item in case["classes"].values()
    }
    return {name: planes.get(name, PLANE_OF_OTHERS) for name in ("egress", "ingress") if name in directions}


def _scenarios(
    scenarios: Mapping[str, Any], planes: Mapping[str, str], capacity_bps: Mapping[str, float]
) -> dict[str, Any]:
    found = {}
    for name, scenario in scenarios.items():
        cases = {}
        for case, item in scenario["cases"].items():
            # A case for both directions is judged by what holds its sent packets.
            plane = planes.get(item["direction"], planes.get("egress", PLANE_OF_OTHERS))
            capacity = capacity_bps.get(f"{name}.{case}")
            cases[case] = {**item, "objectives": objectives(item["objectives"], plane), "capacity_bps": capacity}
        found[name] = {**scenario, "cases": cases}
    return found


def cells(scenarios: Mapping[str, Any], blocks: int) -> list[dict[str, Any]]:
    """Return what is measured, for the manifest's schedule; a case may take more blocks than the run has."""
    return [
        {"scenario": name, "case": case, "shaper": shaper, "blocks": blocks * item["block_factor"]}
        for name, scenario in scenarios.items()
        for case, item in scenario["cases"].items()
        for shaper in item["shapers"]
    ]


def build(
    settings: BandwidthSettings, scenarios: Mapping[str, Any], hosts: Mapping[str, Any], run: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the manifest of a run.

    :param run: ``run_id``, ``seed``, ``fingerprint``, ``command``, ``versions``, ``planes`` by direction,
        ``mtu_bytes``, ``link_bps``, ``capacity_bps`` by ``scenario.case``.
    """
    planes = used_planes(scenarios, run["planes"])
    counting = expectations.Counting(settings.accounting, planes, run["mtu_bytes"])
    return {
        "schema": SCHEMA,
        "experiment": "bandwidth",
        "run_id": run["run_id"],
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "finished": None,
        "fingerprint": run["fingerprint"],
        "command": run["command"],
        "versions": {"ansible": ansible_version, "python": platform.python_version(), **run["versions"]},
        "hosts": {name: {**entry, "pm_qos": settings.hold_pm_qos} for name, entry in hosts.items()},
        "limits": settings.limits,
        "plane": run["planes"].get("egress", PLANE_OF_OTHERS),
        "planes": planes,
        "accounting": settings.accounting,
        "payload_share": {name: counting.share({}, {"protocol": "tcp", "direction": name}) for name in planes},
        "mtu_bytes": run["mtu_bytes"],
        "link_bps": run["link_bps"],
        "congestion_control": settings.congestion_control,
        "scenarios": _scenarios(scenarios, planes, run["capacity_bps"]),
        "schedule": {
            "blocks": settings.blocks,
            "seed": run["seed"],
            "window_s": settings.window_s,
            "warmup_s": settings.warmup_s,
            "repeat_cap": settings.repeat_cap,
            "cells": cells(scenarios, settings.blocks),
        },
    }
