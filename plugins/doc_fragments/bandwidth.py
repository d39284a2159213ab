# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """The options that say which instance of the bandwidth programs a module works on."""

    DOCUMENTATION = r"""
options:
  instance:
    description:
      - Name of the set of programs and maps that pools, classes and devices belong to.
      - All devices of an instance share its pools. The first pool makes it, the last one removed removes it.
    type: str
    default: main
  bpffs:
    description:
      - Mount point of the BPF file system in which programs and maps are pinned, below C(colocation-testbed).
      - It is mounted when it isn't, and then unmounted with the instance.
    type: path
    default: /sys/fs/bpf
  state_dir:
    description: The state directory of the host. The journal and the state of the instance are in it.
    type: path
    default: /var/lib/colocation-testbed
"""
