# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked of the hosts, and of earlier runs, before the first measurement."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import yaml

from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment import manifest
from ansible_collections.colocation.testbed.plugins.plugin_utils.rundir_store import Store

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.deployed import Node, Testbed

COLLECTION_ROOT = Path(__file__).resolve().parents[3]

#: Commands that print the version of what is measured, on the tested node.
PROGRAMS = {"nginx": ["nginx", "-v"], "ffmpeg": ["ffmpeg", "-version"]}


StoreT = TypeVar("StoreT", bound=Store[Any])


class Named(Protocol):
    """Settings of an experiment, as far as they say which run is meant."""

    @property
    def results_dir(self) -> str:
        """Return where run directories are."""

    @property
    def run_id(self) -> str:
        """Return the run's name, empty for a new one."""

    @property
    def resume(self) -> bool:
        """Return whether one that was cut short is gone on with."""


class PreparationError(Exception):
    """A run can't be begun."""


def describe_hosts(testbed: Testbed) -> dict[str, dict[str, Any]]:
    """Return each host's entry of the manifest, as the host itself says now."""
    return describe_nodes(testbed.tested, testbed.load, PROGRAMS)


def describe_nodes(tested: Node, load: Node, programs: Mapping[str, Sequence[str]]) -> dict[str, dict[str, Any]]:
    """Return each host's entry of the manifest; ``programs`` are the commands that print versions."""
    return {node.name: _describe(node, role, programs) for node, role in ((tested, "tested"), (load, "load"))}


def _describe(node: Node, role: str, programs: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    asked_s = time.time()
    facts = node.host.run("node_facts", {"state_dir": node.state_dir, "programs": dict(programs)})
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
    """Return the versions of everything that decides a result of the matrix."""
    return {"wrk": wrk.get("version"), **program_versions(hosts)}


def program_versions(hosts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the versions of the collection and of the programs of the tested node."""
    programs: dict[str, Any] = {}
    for host in hosts.values():
        if host["role"] == "tested":
            programs = {name: found and found["version"] for name, found in host["programs"].items()}
    return {"collection": collection_version(), **programs}


def collection_version(root: Path = COLLECTION_ROOT) -> str:
    """Return the version of this collection, from a checkout or an installation."""
    galaxy = root / "galaxy.yml"
    if galaxy.is_file():
        return str(yaml.safe_load(galaxy.read_text(encoding="utf-8"))["version"])
    document = yaml.safe_load((root / "MANIFEST.json").read_text(encoding="utf-8"))
    return str(document["collection_info"]["version"])


def run_to_resume(settings: Named, mark: str, kind: type[StoreT], variable: str = "matrix_run_id") -> StoreT | None:
    """Return the run to go on with, or None where a new one is to be made.

    :param kind: the run directories of the experiment.
    :param variable: the variable that names a run, for the texts of errors.
    :raises PreparationError: where the run that the user named asked for something else, or has ended.
    """
    if not settings.run_id:
        path = kind.find_partial(settings.results_dir, mark) if settings.resume else None
        return kind.open(path) if path else None
    run = check_run_id(settings, kind, variable)
    if run is None:
        return None
    if run.manifest["fingerprint"] != mark:
        raise PreparationError(
            f"{run.path}: this run asked for something else (other settings, definitions or hosts); "
            f"give it the same, or choose another {variable}"
        )
    return run


def check_run_id(settings: Named, kind: type[StoreT], variable: str = "matrix_run_id") -> StoreT | None:
    """Return the run that the user named, or None where there is none of that name yet.

    :raises PreparationError: where it has ended already.
    """
    named = Path(settings.results_dir, settings.run_id)
    if not settings.run_id or not named.exists():
        return None
    run = kind.open(named)
    if run.finished:
        raise PreparationError(f"{named}: this run has ended; choose another {variable}, or use playbook report")
    return run
