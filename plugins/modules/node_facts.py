#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_facts
short_description: Tell what a host is and has for colocation experiments
version_added: 0.1.0
description:
  - Reads what the preflight table and a run's manifest say about a host. Changes nothing.
  - What a host does not have is null, so that preflight can say what follows from it.
extends_documentation_fragment:
  - colocation.testbed.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
    details: Nothing is changed.
options:
  state_dir:
    description: State directory of the host; the free space of its file system is reported.
    type: path
    default: /var/lib/colocation-testbed
  programs:
    description:
      - Programs to look for. Each key is a name of your choice, its value the argv that prints the version.
      - Nothing but the version is read from it, and its exit status does not matter.
    type: dict
    default: {}
  node_python:
    description: Interpreter of the node tool, looked at as program C(node_python).
    type: path
    default: /usr/bin/python3
  route_to:
    description: Address or name of another host; RV(route_device) then says by which device packets leave for it.
    type: str
    default: ""
  shaping:
    description:
      - Whether RV(shaping) is told. A queueing discipline is added for that in a network namespace that goes at once.
    type: bool
    default: false
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Look at the host
  colocation.testbed.node_facts:
    programs:
      nginx: [nginx, -v]
      ffmpeg: [ffmpeg, -version]
      wrk: [wrk, -v]
  register: node_found
"""

RETURN = r"""
kernel:
  description: Release of the kernel.
  returned: always
  type: str
  sample: 6.1.0-28-amd64
architecture:
  description: Machine type.
  returned: always
  type: str
  sample: x86_64
distribution:
  description: Name and release of the operating system.
  returned: always
  type: str
  sample: Debian GNU/Linux 12 (bookworm)
cpu_model:
  description: Name of the processor.
  returned: always
  type: str
online_cpus:
  description: CPU list of what is online.
  returned: always
  type: str
  sample: "0-1"
cpu_count:
  description: Number of CPUs that are online.
  returned: always
  type: int
smt:
  description: Whether CPUs share cores.
  returned: always
  type: bool
cgroup:
  description: C(v1), C(hybrid) or C(v2); null where no cpu controller is mounted.
  returned: always
  type: str
cgroup_problem:
  description: Why there is no cpu controller, null where there is one.
  returned: always
  type: str
cgroup_controllers:
  description: For each controller that groups need C(mount), C(version) and C(writable).
  returned: always
  type: dict
container_cpus:
  description: CPUs that a container is held to, null where nothing says that it is one.
  returned: always
  type: str
memory_bytes:
  description: Memory of the host.
  returned: always
  type: int
memory_available_bytes:
  description: Memory that new programs can get without swapping.
  returned: always
  type: int
virtualization:
  description: C(none), or what is known of the virtual machine. A hint.
  returned: always
  type: str
steal_s:
  description: Seconds that the hypervisor took from each CPU since boot.
  returned: always
  type: dict
uptime_s:
  description: Seconds since boot.
  returned: always
  type: float
load_average:
  description: Load averages of 1, 5 and 15 minutes.
  returned: always
  type: list
  elements: float
emulated_files:
  description: Files of the kernel that lxcfs answers for in this container, such as C(/proc/stat).
  returned: always
  type: list
  elements: str
process_descriptors:
  description: Whether kernel and Python know C(pidfd_open), by which processes are ended.
  returned: always
  type: bool
psi:
  description: Whether the kernel keeps pressure figures.
  returned: always
  type: bool
pm_qos:
  description: C(device) exists, C(writable), and C(effective_us), the constraint in effect.
  returned: always
  type: dict
cpuidle:
  description: C(driver) and C(states) of the first CPU, each with C(name) and C(latency_us).
  returned: always
  type: dict
cpufreq:
  description: C(driver) and C(governor) of the first CPU.
  returned: always
  type: dict
resctrl:
  description: Whether it is C(available) and C(mounted).
  returned: always
  type: dict
service_manager:
  description: C(systemd) or C(none).
  returned: always
  type: str
is_root:
  description: Whether the module ran as root.
  returned: always
  type: bool
apt:
  description: Whether packages can be installed by module M(colocation.testbed.packages).
  returned: always
  type: bool
supervised:
  description: Names of processes of module M(colocation.testbed.process) that run now.
  returned: always
  type: list
  elements: str
listening_ports:
  description: TCP ports on which something listens in the host's network namespace.
  returned: always
  type: list
  elements: int
programs:
  description: For each wanted program C(path) and C(version); null where it is missing.
  returned: always
  type: dict
disk_free_bytes:
  description: Free space for the state directory.
  returned: always
  type: int
route_device:
  description: Device of the route to O(route_to).
  returned: with O(route_to)
  type: str
  sample: eth0
shaping:
  description:
    - What modules such as M(colocation.testbed.bandwidth_device) need. C(bpf_file_system), whether the kernel has one;
      C(cgroup2), where it is mounted, or null; C(clsact), whether programs can be attached to devices.
  returned: with O(shaping)
  type: dict
  sample: {"bpf_file_system": true, "cgroup2": "/sys/fs/cgroup", "clsact": true}
wall_s:
  description: Wall clock at the end of the module, in seconds since 1970.
  returned: always
  type: float
mono_s:
  description: Monotonic clock at the same moment, in seconds.
  returned: always
  type: float
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import commands, journal
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import (
    cgroup,
    cpu_list,
    procfs,
    routes,
    shaping_facts,
)
from ansible_collections.colocation.testbed.plugins.module_utils.node import facts


def wanted_programs(module: AnsibleModule) -> dict[str, list[str]]:
    """Return the argv of each program; ends the module with a sentence where one is not a list of words."""
    wanted: dict[str, list[str]] = {"node_python": [module.params["node_python"], "--version"]}
    for name, argv in module.params["programs"].items():
        if not isinstance(argv, list) or not argv:
            module.fail_json(msg=f"programs: {name}: {argv!r} is not an argv; write a list such as [nginx, -v]")
        wanted[name] = [str(word) for word in argv]
    return wanted


def network_facts(route_to: str, shaping: bool) -> dict[str, Any]:
    """Return what was asked for beyond what is always told."""
    found: dict[str, Any] = {}
    if route_to:
        found["route_device"] = routes.device_to(routes.resolve(route_to), lambda argv: commands.run(argv).stdout)
    if shaping:
        try:
            layout = cgroup.detect()
        except cgroup.CgroupError:
            layout = None
        found["shaping"] = shaping_facts.collect(layout)
    return found


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "state_dir": {"type": "path", "default": "/var/lib/colocation-testbed"},
            "programs": {"type": "dict", "default": {}},
            "node_python": {"type": "path", "default": "/usr/bin/python3"},
            "route_to": {"type": "str", "default": ""},
            "shaping": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    try:
        more = network_facts(module.params["route_to"], module.params["shaping"])
        state_dir = journal.check_state_dir(module.params["state_dir"])
        found: dict[str, Any] = facts.collect(state_dir, wanted_programs(module))
    except (
        commands.CommandError,
        cpu_list.CpuListError,
        journal.JournalError,
        procfs.ProcError,
        routes.RouteError,
    ) as exc:
        module.fail_json(msg=str(exc))
    module.exit_json(changed=False, **more, **found)


if __name__ == "__main__":
    main()
