#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: process
short_description: Start, stop and wait for supervised processes
version_added: 0.1.0
description:
  - Handles a list of processes in its order with one call. Each runs under a small supervisor that puts it into its
    control groups and on its CPUs before its program begins, records how it ended, and ends whatever it started.
  - A process that already runs with the same specification is left alone; one whose specification or configuration
    files have changed is started again.
  - Needs the node tool, which role C(node) installs.
extends_documentation_fragment:
  - colocation.testbed.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  state_dir:
    description: State directory of the host. Specifications, pid files and logs are in C(processes) below it.
    type: path
    default: /var/lib/colocation-testbed
  cgroup_root:
    description: Path below each control group hierarchy in which the groups of this host are.
    type: str
    default: colocation-testbed
  node_python:
    description: Interpreter of the node tool, Python 3.9 or newer.
    type: path
    default: /usr/bin/python3
  manager:
    description:
      - With V(supervised) processes run detached, with V(systemd) as transient units. Groups, files and results are the
        same.
    type: str
    choices: [supervised, systemd]
    default: supervised
  housekeeping_cpus:
    description: CPU list for the supervisors, for example V(1). Empty means all CPUs that this module may use.
    type: str
    default: ""
  instance:
    description: Part of the unit names that tells several hosts on one machine apart.
    type: str
    default: ""
  processes:
    description: The processes, handled in this order.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the process, its files and its unit.
        type: str
        required: true
      state:
        description:
          - With V(started) it runs afterwards; V(restarted) starts it afresh; V(stopped) ends it and keeps its files;
            V(absent) ends it and removes them.
          - V(ended) starts nothing and waits until it has ended by itself, at most O(processes[].timeout_s).
        type: str
        choices: [started, restarted, stopped, absent, ended]
        default: started
      argv:
        description: Program and arguments. Either this or O(processes[].tool).
        type: list
        elements: str
      tool:
        description: A command of the node tool to run instead of a program of the host.
        type: str
        choices: [sample, hold-pm-qos, load, count-received, echo, probe, receive, send]
      spec:
        description:
          - What the command of O(processes[].tool) reads. The file named by its key C(output) is removed before the
            process starts, so that results of an earlier run are never taken for new ones.
        type: dict
      env:
        description: Environment variables beside PATH, LC_ALL and HOME, which are always the same.
        type: dict
        default: {}
      directory:
        description: Working directory.
        type: path
        default: /
      group:
        description: Control group below O(cgroup_root); it must exist. Not given, the process is in none of ours.
        type: str
      cpus:
        description: CPU list on which the process may run, within the CPUs of its group.
        type: str
      outputs:
        description: Files that the program writes its results into. They are removed before it starts, so that those of
          an earlier run are never taken for new ones.
        type: list
        elements: path
        default: []
      config_files:
        description: Files that the program reads when it starts. When their content changes it is started again.
        type: list
        elements: path
        default: []
      ready:
        description:
          - When the process counts as started. All conditions that are given must hold.
          - Before the start, a O(processes[].ready.tcp_port) that another process has is an error, and
            O(processes[].ready.file) is removed.
        type: dict
        suboptions:
          tcp_port:
            description: Something accepts connections on this TCP port.
            type: int
          address:
            description: Address for O(processes[].ready.tcp_port).
            type: str
            default: 127.0.0.1
          http_url:
            description:
              - This URL, C(http) or C(https), answers with a status from 200 to 399. Its certificate is not verified.
            type: str
          file:
            description: This file exists.
            type: path
          command:
            description: Program and arguments that end with status 0 within 10 seconds.
            type: list
            elements: str
      ready_timeout_s:
        description: Seconds until the process must be ready.
        type: float
        default: 20.0
      port_setting:
        description: Name of the variable with which the user changes the port; used in the message about a taken port.
        type: str
      stop_signal:
        description: Signal that asks the program to end.
        type: str
        default: TERM
      stop_timeout_s:
        description: Seconds after which a process that was asked to end is killed.
        type: float
        default: 10.0
      max_duration_s:
        description: Seconds after which the process is stopped by its supervisor. No limit when not given.
        type: float
      wait:
        description: After the start, wait until the process has ended by itself, at most O(processes[].timeout_s).
        type: bool
        default: false
      timeout_s:
        description: Longest wait in seconds. A process that takes longer is stopped, and the task fails.
        type: float
        default: 3600.0
  results:
    description: Files whose content is returned after all processes were handled.
    type: list
    elements: path
    default: []
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Start the service and a sampler
  colocation.testbed.process:
    processes:
      - name: nginx
        argv: [nginx, -c, /var/lib/colocation-testbed/nginx.conf]
        config_files: [/var/lib/colocation-testbed/nginx.conf]
        group: service
        cpus: "0"
        stop_signal: QUIT
        ready:
          tcp_port: 8000
      - name: sampler
        tool: sample
        spec:
          output: /var/lib/colocation-testbed/samples.jsonl
          groups: [service]

- name: Stop the sampler and fetch what it wrote
  colocation.testbed.process:
    processes:
      - name: sampler
        state: stopped
    results: [/var/lib/colocation-testbed/samples.jsonl]
"""

RETURN = r"""
processes:
  description: What became of each process, in the order of the option.
  returned: always
  type: list
  elements: dict
  sample:
    - name: nginx
      state: running
      pid: 4711
      changed: true
      exit: null
      log_tail: ""
  contains:
    name:
      description: Name of the process.
      type: str
    state:
      description: One of running, stopped, failed and absent.
      type: str
    pid:
      description: Its number while it runs.
      type: int
    changed:
      description: Whether it was started or stopped.
      type: bool
    exit:
      description:
        - How it ended last time, with C(status) or C(signal), and C(time) in seconds of the wall clock. Null while it
          runs.
      type: dict
    log_tail:
      description: The last lines of its log, when it has ended.
      type: str
contents:
  description:
    - For each path of O(results) the content of the file, compressed by zlib and encoded in base64, in
      C(content_b64_zlib); null where there is no such file.
  returned: always
  type: dict
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files, journal
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cpu_list, processes, procfs
from ansible_collections.colocation.testbed.plugins.module_utils.node import control, entries, handler, ready, spec

ERRORS = (
    commands.CommandError,
    control.ControlError,
    cpu_list.CpuListError,
    entries.EntryError,
    files.FilesError,
    journal.JournalError,
    processes.ProcessError,
    procfs.ProcError,
    ready.ReadyError,
    spec.SpecError,
)


READY = {
    "tcp_port": {"type": "int"},
    "address": {"type": "str", "default": "127.0.0.1"},
    "http_url": {"type": "str"},
    "file": {"type": "path"},
    "command": {"type": "list", "elements": "str"},
}
TOOLS = ["sample", "hold-pm-qos", "load", "count-received", "echo", "probe", "receive", "send"]
STATES = ["started", "restarted", "stopped", "absent", "ended"]
ENTRY = {
    "name": {"type": "str", "required": True},
    "state": {"type": "str", "choices": STATES, "default": "started"},
    "argv": {"type": "list", "elements": "str"},
    "tool": {"type": "str", "choices": TOOLS},
    "spec": {"type": "dict"},
    "env": {"type": "dict", "default": {}},
    "directory": {"type": "path", "default": "/"},
    "group": {"type": "str"},
    "cpus": {"type": "str"},
    "outputs": {"type": "list", "elements": "path", "default": []},
    "config_files": {"type": "list", "elements": "path", "default": []},
    "ready": {"type": "dict", "options": READY},
    "ready_timeout_s": {"type": "float", "default": 20.0},
    "port_setting": {"type": "str"},
    "stop_signal": {"type": "str", "default": "TERM"},
    "stop_timeout_s": {"type": "float", "default": 10.0},
    "max_duration_s": {"type": "float"},
    "wait": {"type": "bool", "default": False},
    "timeout_s": {"type": "float", "default": 3600.0},
}
OPTIONS: dict[str, Any] = {
    "state_dir": {"type": "path", "default": "/var/lib/colocation-testbed"},
    "cgroup_root": {"type": "str", "default": "colocation-testbed"},
    "node_python": {"type": "path", "default": "/usr/bin/python3"},
    "manager": {"type": "str", "choices": ["supervised", "systemd"], "default": "supervised"},
    "housekeeping_cpus": {"type": "str", "default": ""},
    "instance": {"type": "str", "default": ""},
    "processes": {"type": "list", "elements": "dict", "default": [], "options": ENTRY},
    "results": {"type": "list", "elements": "path", "default": []},
}


def run(module: AnsibleModule, result: dict[str, Any]) -> None:
    """Handle the whole list; `result` holds what was done so far also when an error ends it."""
    params: Mapping[str, Any] = module.params
    manager = control.Manager(params["manager"], params["state_dir"], params["node_python"], params["instance"])
    host = entries.Host(manager, params["cgroup_root"], params["housekeeping_cpus"], module.check_mode)
    # All are checked before the first one is touched.
    wanted = [entries.build(item, host) for item in params["processes"]]
    handling = handler.Handler(manager, module.check_mode)
    diffs = []
    for entry in wanted:
        before = handler.describe(entry, control.status(entry.paths), wanted=False)
        done = handling.handle(entry)
        result["processes"].append(done)
        result["changed"] = result["changed"] or done["changed"]
        if done["changed"]:
            diffs.append({"before": before, "after": handler.describe(entry, control.status(entry.paths), wanted=True)})
    result["contents"] = handler.fetch(params["results"])
    if module._diff:
        result["diff"] = diffs


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=OPTIONS, supports_check_mode=True)
    result: dict[str, Any] = {"changed": False, "processes": [], "contents": {}}
    try:
        run(module, result)
    except ERRORS as exc:
        module.fail_json(msg=str(exc), **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
