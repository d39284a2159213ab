# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked of the hosts, and of earlier runs, before the first measurement."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from ansible_collections.colocation.testbed.plugins.plugin_utils import rundir
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment import manifest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.deployed import Node, Testbed
    from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.settings import MatrixSettings

COLLECTION_ROOT = Path(__file__).resolve().parents[3]

#: Commands that print the version of what is measured, on the tested node.
PROGRAMS = {"nginx": ["nginx", "-v"], "ffmpeg": ["ffmpeg", "-version"]}


class PreparationError(Exception):
    """A run can't be begun."""


def describe_hosts(testbed: Testbed) -> dict[str, dict[str, Any]]:
    """Return each host's entry of the manifest, as the host itself says now."""
    return {node.name: _describe(node, role) for node, role in ((testbed.tested, "tested"), (testbed.load, "load"))}


def _describe(node: Node, role: str) -> dict[str, Any]:
    asked_s = time.time()
    facts = node.host.run("node_facts", {"state_dir": node.state_dir, "programs": PROGRAMS})
    offset_s = clock_offset_s(asked_s, float(facts["wall_s"]), time.time())
    entry = manifest.host(facts, role, node.cpus, node.manager, offset_s)
    return {**entry, "programs": facts["programs"]}


def clock_offset_s(asked_s: float, wall_s: float, answered_s: float) -> float:
    """Return by how much a host's clock is ahead of the controller's, in seconds, as far as that is certain.

    The host read its clock at some moment between question and answer. Inside that span there is no sign of an
    offset; outside, the distance to the nearer end is its least amount. Halving the round trip, as NTP does
    (RFC 5905), would take the module's own run time for an offset of the clock.
    """
    if wall_s < asked_s:
        return wall_s - asked_s
    return max(0.0, wall_s - answered_s)


def versions(hosts: Mapping[str, Mapping[str, Any]], wrk: Mapping[str, Any]) -> dict[str, Any]:
    """Return the versions of everything that decides a result."""
    programs: dict[str, Any] = {}
    for host in hosts.values():
        if host["role"] == "tested":
            programs = {name: found and found["version"] for name, found in host["programs"].items()}
    return {"collection": collection_version(), "wrk": wrk.get("version"), **programs}


def collection_version(root: Path = COLLECTION_ROOT) -> str:
    """Return the version of this collection, from a checkout or an installation."""
    galaxy = root / "galaxy.yml"
    if galaxy.is_file():
        return str(yaml.safe_load(galaxy.read_text(encoding="utf-8"))["version"])
    document = yaml.safe_load((root / "MANIFEST.json").read_text(encoding="utf-8"))
    return str(document["collection_info"]["version"])


def run_to_resume(settings: MatrixSettings, mark: str) -> rundir.RunDirectory | None:
    """Return the run to go on with, or None where a new one is to be made.

    :raises PreparationError: where the run that the user named asked for something else, or has ended.
    """
    if not settings.run_id:
        path = rundir.RunDirectory.find_partial(settings.results_dir, mark) if settings.resume else None
        return rundir.RunDirectory.open(path) if path else None
    run = check_run_id(settings)
    if run is None:
        return None
    if run.manifest["fingerprint"] != mark:
        raise PreparationError(
            f"{run.path}: this run asked for something else (other settings, definitions or hosts); "
            "give it the same, or choose another matrix_run_id"
        )
    return run


def check_run_id(settings: MatrixSettings) -> rundir.RunDirectory | None:
    """Return the run that the user named, or None where there is none of that name yet.

    :raises PreparationError: where it has ended already.
    """
    named = Path(settings.results_dir, settings.run_id)
    if not settings.run_id or not named.exists():
        return None
    run = rundir.RunDirectory.open(named)
    if run.finished:
        raise PreparationError(f"{named}: this run has ended; choose another matrix_run_id, or use playbook report")
    return run
