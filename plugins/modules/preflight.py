#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: preflight
short_description: Find everything wrong or missing before anything changes
version_added: 0.1.0
description:
  - Checks inventory groups, role variables, definitions and hosts, shows one table and fails once with all problems.
  - Hosts of the group C(lab) are checked on the machine that carries them, because they may not be made yet.
extends_documentation_fragment:
  - colocation.testbed.attributes
  - colocation.testbed.attributes.controller
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  min_free_mib: {description: Space in MiB that must be free where the hosts keep their state., type: int, default: 500}
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Check everything
  colocation.testbed.preflight:
"""

RETURN = r"""
rows:
  description: The rows of the table.
  returned: success
  type: list
  elements: dict
  sample: [{what: root, where: tested, needed: uid 0, found: uid 0, level: ok, consequence: ""}]
"""
