#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: report
short_description: Judge a run and write its report
version_added: 0.1.0
description:
  - Judges the measurements of a run directory and writes C(summary.json), C(summary.csv) and C(report.html) into it.
  - Shows the verdict and the main table in the terminal, whatever the callback plugin.
  - What is judged and shown follows the experiment that the run is of, the matrix or bandwidth.
  - The three files depend on the measurements alone. Made again from the same directory they are the same, byte for
    byte, and nothing is written.
  - Runs on the controller and touches no host.
extends_documentation_fragment:
  - colocation.testbed.attributes
  - colocation.testbed.attributes.controller
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  run_dir:
    description:
      - Run directory on the controller. Relative to the directory of the command.
      - Empty takes the newest run below O(results_dir).
    type: str
    default: ""
  results_dir:
    description: Directory of the run directories. Only read where O(run_dir) is empty.
    type: str
    default: results
  show:
    description: Whether the table is shown in the terminal. It is returned as RV(text) in any case.
    type: bool
    default: true
  fail_on:
    description:
      - Verdicts with which the task fails, after the files were written.
      - V(partial) stands for a run that was cut short.
    type: list
    elements: str
    choices: [fail, inconclusive, invalid, partial]
    default: []
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Report the newest run
  colocation.testbed.report:

- name: Report one run, and fail unless it says something definite and good
  colocation.testbed.report:
    run_dir: results/20261130T201500Z-3f9a
    fail_on: [fail, inconclusive, invalid, partial]
"""

RETURN = r"""
run_dir:
  description: The run directory.
  returned: success
  type: str
  sample: /srv/results/20261130T201500Z-3f9a
run_id:
  description: Name of the run.
  returned: success
  type: str
  sample: 20261130T201500Z-3f9a
partial:
  description: Whether the run was cut short.
  returned: success
  type: bool
  sample: false
verdict:
  description: The result, a sentence that says it, and the reasons.
  returned: success
  type: dict
  sample: {result: pass, sentence: SLO-aware colocation keeps its objectives., reasons: []}
files:
  description: Paths of the files of the report.
  returned: success
  type: list
  elements: str
  sample: [/srv/results/20261130T201500Z-3f9a/report.html]
written:
  description: Names of the files that were missing or different and are written (in check mode would be).
  returned: success
  type: list
  elements: str
  sample: [summary.json, summary.csv, report.html]
text:
  description: What was shown in the terminal.
  returned: success
  type: str
  sample: "Run 20261130T201500Z-3f9a"
"""
