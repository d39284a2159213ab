# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what the user of module `process` writes to what the supervisor reads."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import files, quantity
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cpu_list
from ansible_collections.colocation.testbed.plugins.module_utils.node import control, ready
from ansible_collections.colocation.testbed.plugins.module_utils.node import spec as specs

STARTING = ("started", "restarted")


class EntryError(Exception):
    """An entry of the list of processes asks for something that is not allowed."""


@dataclass(frozen=True)
class Host:
    """Where processes run on this host: state directory, group root, CPUs of the supervisors, manager."""

    manager: control.Manager
    cgroup_root: str
    housekeeping_cpus: str
    check_mode: bool = False


@dataclass(frozen=True)
class Entry:
    """One wanted process. `spec` is None where it is not to be started; `tool_spec` is what its tool command reads."""

    name: str
    state: str
    paths: specs.Paths
    spec: specs.ProcessSpec | None
    tool_spec: str | None
    outputs: tuple[str, ...]
    ready: ready.Ready
    ready_timeout_s: float
    wait: bool
    timeout_s: float
    port_setting: str


def build(params: Mapping[str, Any], host: Host) -> Entry:
    """Turn one element of O(processes) into an entry. Raises EntryError or SpecError, naming the process."""
    name = specs.check_name(params["name"])
    paths = specs.Paths(host.manager.state_dir, name)
    starting = params["state"] in STARTING
    tool_spec, outputs = _tool_spec(params) if starting else (None, ())
    condition = ready.from_params(params["ready"])
    # A file that a run before left must not count as ready, nor its results as those of this run.
    stale = (*outputs, *params["outputs"], *([condition.file] if condition.file else []))
    return Entry(
        name=name,
        state=params["state"],
        paths=paths,
        spec=_spec(params, host, paths, tool_spec) if starting else None,
        tool_spec=tool_spec,
        outputs=tuple(dict.fromkeys(stale)),
        ready=condition,
        ready_timeout_s=params["ready_timeout_s"],
        wait=params["wait"] or params["state"] == "ended",
        timeout_s=params["timeout_s"],
        port_setting=params["port_setting"] or "",
    )


def _tool_spec(params: Mapping[str, Any]) -> tuple[str | None, tuple[str, ...]]:
    if bool(params["argv"]) == bool(params["tool"]):
        raise EntryError(f"process {params['name']}: needs either argv or tool, and not both")
    if not params["tool"]:
        return None, ()
    content = params["spec"]
    if not content:
        raise EntryError(f"process {params['name']}: tool {params['tool']} needs spec, the values that it works with")
    output = content.get("output")
    return json.dumps(content, sort_keys=True, indent=1) + "\n", (str(output),) if output else ()


def _spec(params: Mapping[str, Any], host: Host, paths: specs.Paths, tool_spec: str | None) -> specs.ProcessSpec:
    hashes = {path: _sha256(path, params["name"], host.check_mode) for path in params["config_files"]}
    argv = tuple(params["argv"] or ())
    if tool_spec is not None:
        argv = host.manager.tool_argv(params["tool"], paths.tool_spec)
        hashes[paths.tool_spec] = hashlib.sha256(tool_spec.encode()).hexdigest()
        if os.path.exists(host.manager.tool):
            hashes[host.manager.tool] = _sha256(host.manager.tool, params["name"], False)
    return specs.from_dict(
        {
            "name": params["name"],
            "argv": argv,
            "state_dir": host.manager.state_dir,
            "env": {str(key): str(value) for key, value in params["env"].items()},
            "directory": params["directory"],
            "group": params["group"] or "",
            "cgroup_root": host.cgroup_root,
            "cpus": _cpus(params["cpus"], f"process {params['name']}: cpus"),
            "supervisor_cpus": _cpus(host.housekeeping_cpus, "housekeeping_cpus"),
            "stop_signal": params["stop_signal"],
            "stop_timeout_s": params["stop_timeout_s"],
            "max_duration_s": params["max_duration_s"],
            "files": hashes,
        },
        f"process {params['name']}",
    )


def _cpus(text: str | None, what: str) -> str:
    return quantity.format_cpu_list(cpu_list.require_online(text, what)) if text else ""


def _sha256(path: str, name: str, may_be_missing: bool) -> str:
    """Return the hash of a file; in check mode an earlier task may only have predicted to write it."""
    if may_be_missing and not os.path.exists(path):
        return ""
    try:
        return hashlib.sha256(files.read_bytes(path)).hexdigest()
    except files.FilesError as exc:
        raise EntryError(f"process {name}: config_files: {exc}") from exc
