#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: compare
short_description: Compare two or more run directories
version_added: 0.1.0
description:
  - Shows what changed between runs, with intervals. The first run is the reference.
  - Refuses runs that can't be compared (another experiment, other hosts, other load, invalid or cut short) and says
    why.
  - Fails where a change is worse than its threshold beyond noise.
extends_documentation_fragment:
  - colocation.testbed.attributes
  - colocation.testbed.attributes.controller
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  run_dirs:
    description: Run directories, the reference first. At least two.
    type: list
    elements: str
    required: true
  thresholds:
    description:
      - Highest change in percent that is allowed, by metric, such as C(p99_us) of the matrix and C(cpu_s_per_gbit) of
        the bandwidth experiment.
    type: dict
    default: {}
  junit_file: {description: File for JUnit XML. Empty writes none., type: str, default: ''}
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Fail when P99 became more than five percent worse
  colocation.testbed.compare:
    run_dirs: [results/before, results/after]
    thresholds: {p99_us: 5}
    junit_file: compare.xml
"""

RETURN = r"""
comparison:
  description: What changed, by mode and metric.
  returned: success
  type: dict
  sample: {runs: [before, after], rows: []}
"""
