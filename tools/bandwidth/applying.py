"""How long many classes take inside the module, and what runs on a host after the modules have ended."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import devices
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.instance import Place
from tools.bandwidth.host import Host
from tools.bandwidth.program_cost import many_prefixes

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {"PYTHONPATH": f"{ROOT / 'collections'}:{ROOT}"}
POOL = {"name": "link", "total": "1Gbit/s"}


def run_module(place: Place, name: str, options: Mapping[str, Any], run: devices.Run) -> dict[str, Any]:
    """Run a module as a process, in the namespace of ``run``, and return its result. Raises CommandError."""
    common = {"instance": place.name, "bpffs": place.bpffs, "state_dir": place.state_dir}
    orders = Path(place.bpffs).with_name("module.json")
    orders.write_text(json.dumps({"ANSIBLE_MODULE_ARGS": {**common, **options}}), encoding="utf-8")
    argv = [sys.executable, "-m", "tools.bandwidth.module_time", name, str(orders)]
    found: dict[str, Any] = json.loads(run(argv, directory=str(ROOT), environment=ENVIRONMENT).stdout)
    return found


def many_classes(host: Host, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Time the module for many new classes, and again when nothing is to be changed.

    Options: `classes`, `planes`, `rounds`. Returns a row for each plane and round.
    """
    rows = []
    classes = list(many_prefixes(options["classes"]))
    for turn in range(options["rounds"]):
        for plane in options["planes"]:
            host.apply((POOL,), (), (("left", "link", plane),))
            first = run_module(host.place, "bandwidth_class", {"classes": classes}, host.pair.run)
            again = run_module(host.place, "bandwidth_class", {"classes": classes}, host.pair.run)
            rows.append(
                {
                    "plane": plane,
                    "round": turn,
                    "first_ms": first["elapsed_ms"],
                    "again_ms": again["elapsed_ms"],
                    "changed": [first["changed"], again["changed"]],
                }
            )
            host.apply((POOL,), (), ())
    return rows


def resident(host: Host, options: Mapping[str, Any]) -> dict[str, Any]:
    """Set everything up by modules in a process namespace of its own, and say which processes are left in it.

    Option: `plane`. A process that a module leaves behind, detached or not, stays in the namespace of its parent.
    """
    # Mounts the BPF file system, which would vanish with a mount namespace that a module made it in.
    host.apply((POOL,), (), ())
    place = host.place
    argv = [
        "unshare",
        "--pid",
        "--fork",
        "--mount-proc",
        "--kill-child",
        sys.executable,
        "-m",
        "tools.bandwidth.resident",
    ]
    argv += [options["plane"], place.name, place.bpffs, place.state_dir]
    found: dict[str, Any] = json.loads(host.pair.run(argv, directory=str(ROOT), environment=ENVIRONMENT).stdout)
    shown = host.pair.run(["tc", "filter", "show", "dev", "left", "egress"]).stdout
    return {**found, "attached": " shape " in shown}
