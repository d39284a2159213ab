# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """Options that the modules which make hosts share, specified in plugins/module_utils/lab/options.py."""

    DOCUMENTATION = r"""
options:
  hosts:
    description: The hosts. Required unless O(state=absent).
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the host.
        type: str
        required: true
      address:
        description: IPv4 address of the host in O(subnet), without a prefix length.
        type: str
        required: true
      cpus:
        description: CPU list of the machine that the host is to have, for example V(0-3,8). They must be online.
        type: str
        default: ""
  subnet:
    description: Network of all hosts.
    type: str
    default: 198.18.0.0/24
  namespace_prefix:
    description: What the names of the namespaces begin with.
    type: str
    default: colocation-
  link_prefix:
    description: What the names of the interfaces begin with.
    type: str
    default: ct
  mtu_bytes:
    description: MTU of all interfaces.
    type: int
    default: 1500
  link_rate:
    description:
      - Rate of each host's link, such as V(1Gbit/s). Empty means as fast as the machine is.
      - With a rate the hosts hang on a bridge even when there are two, and each port of it sends towards its host at
        this rate and keeps what waits, as a switch does.
    type: str
    default: ""
  link_buffer_kib:
    description: What a port of the bridge keeps at most, in KiB; what comes then is dropped. Only with O(link_rate).
    type: int
    default: 512
  state_dir:
    description: State directory of the machine; its journal records what is made.
    type: path
    default: /var/lib/colocation-testbed
"""
