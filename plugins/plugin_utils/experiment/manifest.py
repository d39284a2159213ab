# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run records of itself before the first measurement, and what makes two runs the same."""

from __future__ import annotations

import hashlib
import json
import platform
import secrets
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ansible.release import __version__ as ansible_version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.deployed import Cluster, Testbed
    from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.settings import MatrixSettings

SCHEMA = "colocation.testbed/manifest/1"


def fingerprint(
    testbed: Testbed, settings: MatrixSettings, definitions: Mapping[str, Any], hosts: Mapping[str, Any]
) -> str:
    """Return what tells whether a run that was cut short asked for the same: a SHA-256 in hexadecimal.

    What is drawn or measured by the run itself (seed, peak) and what drifts (clock offset) is left out.
    """
    asked = {
        "settings": {
            name: value for name, value in vars(settings).items() if name not in ("results_dir", "run_id", "resume")
        },
        "definitions": dict(definitions),
        "substrate": testbed.substrate,
        "cluster": testbed.cluster.description if testbed.cluster else None,
        "service": testbed.service.description,
        "batch": testbed.batch.description,
        "wrk": testbed.wrk.description.get("version"),
        "hosts": {
            name: [host["kernel"], host["cpu_model"], host["measured_cpus"]] for name, host in sorted(hosts.items())
        },
        # Hosts of equal names in two inventories are not the same ones.
        "places": {
            node.name: [str(node.host.variable("ansible_host", node.name)), node.state_dir, node.cgroup_root]
            for node in testbed.nodes
        },
    }
    return hashlib.sha256(json.dumps(asked, sort_keys=True, default=list).encode()).hexdigest()


def new_run_id(now: datetime | None = None) -> str:
    """Return a name for a run that sorts by time and does not clash: ``20261130T201500Z-3f9a``."""
    moment = now or datetime.now(UTC)
    return f"{moment:%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"


def new_seed() -> int:
    """Return a seed for a run whose user named none."""
    return secrets.randbelow(2**31 - 1) + 1


def host(
    facts: Mapping[str, Any], role: str, measured_cpus: str, manager: str, clock_offset_s: float
) -> dict[str, Any]:
    """Return a host's entry from the result of module ``node_facts``."""
    return {
        "role": role,
        "kernel": facts["kernel"],
        "cpu_model": facts["cpu_model"],
        "cpus": facts["online_cpus"],
        "measured_cpus": measured_cpus or facts["online_cpus"],
        "cgroup": facts["cgroup"],
        "memory_bytes": facts["memory_bytes"],
        "virtualization": facts["virtualization"],
        "clock_offset_s": round(clock_offset_s, 6),
        "service_manager": manager,
    }


def build(
    testbed: Testbed,
    settings: MatrixSettings,
    definitions: Mapping[str, Mapping[str, Any]],
    hosts: Mapping[str, Mapping[str, Any]],
    run: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the manifest of a run.

    :param definitions: ``modes``, ``policies`` and ``aggressors`` by name, as they are used.
    :param run: ``run_id``, ``seed``, ``peak_rps``, ``fingerprint``, ``command``, ``versions`` and ``detectable_pct``.
    """
    pm_qos = settings.hold_pm_qos
    cluster = testbed.cluster
    return {
        "schema": SCHEMA,
        "run_id": run["run_id"],
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "finished": None,
        "fingerprint": run["fingerprint"],
        "command": run["command"],
        "versions": {"ansible": ansible_version, "python": platform.python_version(), **run["versions"]},
        "hosts": {name: {**entry, "pm_qos": pm_qos} for name, entry in hosts.items()},
        "modes": dict(definitions["modes"]),
        "policies": dict(definitions["policies"]),
        "aggressors": dict(definitions["aggressors"]),
        "baseline": settings.modes[0],
        "schedule": _schedule(settings, run["seed"]),
        "load": {
            "kind": settings.load_kind,
            "threads": settings.load_threads,
            "connections": settings.load_connections,
            "peak_rps": run["peak_rps"],
            "wrk": testbed.wrk.description,
        },
        "substrate": testbed.substrate,
        **({"cluster": _cluster(testbed, cluster)} if cluster else {}),
        "service": testbed.service.description,
        "batch": testbed.batch.description,
        "limits": settings.limits,
        "detectable_pct": run["detectable_pct"],
    }


def _cluster(testbed: Testbed, cluster: Cluster) -> dict[str, Any]:
    """Return what a run says of its cluster; control plane and load share the machine of one that was made there."""
    return {**cluster.description, "shares_machine": cluster.own or testbed.shares_machine}


def _schedule(settings: MatrixSettings, seed: int) -> dict[str, Any]:
    return {
        "blocks": settings.blocks,
        "modes": list(settings.modes),
        "load_points": list(settings.load_points),
        "aggressors": list(settings.aggressors),
        "seed": seed,
        "repeat_cap": settings.repeat_cap,
        "window_s": settings.window_s,
        "warmup_s": settings.warmup_s,
    }
