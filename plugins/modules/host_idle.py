#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_idle
short_description: Fail while an experiment measures on hosts
version_added: 0.1.0
description:
  - Finds out whether a playbook of this user, started on this machine, measures on one of the hosts, and fails if so.
    Whoever changes the hosts then would spoil what is measured.
  - A playbook that was killed needs a few seconds to stop what it started. So long the module waits.
extends_documentation_fragment:
  - colocation.testbed.attributes
  - colocation.testbed.attributes.controller
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  hosts:
    description: Names of the hosts.
    type: list
    elements: str
    required: true
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Leave hosts alone that are being measured
  colocation.testbed.host_idle:
    hosts: "{{ groups['tested'] }}"
"""

RETURN = r"""
hosts:
  description: The hosts, none of which is being measured.
  returned: success
  type: list
  elements: str
  sample: [node1]
"""
