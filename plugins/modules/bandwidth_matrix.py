#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: bandwidth_matrix
short_description: Measure how well bandwidth is held, by several shapers in one run
version_added: 0.1.0
description:
  - Measures scenarios of traffic between two hosts with each shaper, in shuffled blocks, and stores a run directory.
    What counts is what receivers got, by the kernel's counters of their connections.
  - Decides after each measurement what comes next, so that a window that noise spoiled is measured again.
  - Needs the facts that the roles node and bandwidth_traffic leave.
  - In check mode it validates everything, says how much it would measure, and measures nothing.
extends_documentation_fragment:
  - colocation.testbed.attributes
  - colocation.testbed.attributes.controller
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
options:
  tested:
    description: Name of the tested node in the inventory, as a list of exactly one.
    type: list
    elements: str
    required: true
  load: {description: 'Name of the load node, as a list of exactly one.', type: list, elements: str, required: true}
  select:
    description: What is measured. Names of scenarios or C(scenario.case), with wildcards as in a shell.
    type: list
    elements: str
    default:
      - single_priority.egress
      - multi_priority.limits
      - multi_priority.requests
      - waterline
      - message_sizes.512B_x64
      - class_count.200_classes
      - latency
      - cpu_cost.packets
  shapers:
    description: Of the scenarios' shapers, those that are measured.
    type: list
    elements: str
    default: [ebpf, htb, tbf, none]
  scenarios:
    description: Scenarios of your own by name, or changes to the built-in ones, in the form of C(files/scenarios).
    type: dict
    default: {}
  blocks: {description: How often everything is measured. 0 deploys only. Fewer than three can't give a verdict.,
    type: int, default: 3}
  window_s: {description: Length of one measurement window in seconds., type: int, default: 3}
  warmup_s: {description: Seconds before each window that are not counted., type: int, default: 1}
  repeat_cap: {description: How often a window that noise spoiled is measured again., type: int, default: 1}
  seed: {description: 'Seed of the order. 0 draws one, which is recorded.', type: int, default: 0}
  port: {description: First port of the receivers; each class has one., type: int, default: 25201}
  plane:
    description: What holds packets back for the shaper V(ebpf). V(auto) takes the best that the host has.
    type: str
    choices: [auto, edt, htb, police]
    default: auto
  accounting:
    description: What of a packet counts for the shaper V(ebpf). HTB and TBF count frames, as V(wire).
    type: str
    choices: [wire, l1, skb, payload]
    default: wire
  congestion_control: {description: TCP's congestion control of all senders. Empty takes the host's., type: str,
    default: cubic}
  program_statistics: {description: 'Whether the kernel counts time and runs of programs, which costs some of both.',
    type: bool, default: false}
  hold_pm_qos: {description: Whether idle states are kept off on both hosts., type: bool, default: true}
  limits:
    description: Limits of guards that differ from the built-in ones, by the guard's name.
    type: dict
    default: {}
  results_dir: {description: 'Where run directories are made, on the controller. Relative to the directory of the
      command.', type: str, default: results}
  run_id: {description: Name of the run directory. Empty makes one from the time. That of a run cut short resumes
      it., type: str, default: ''}
  resume: {description: Whether the newest run that was cut short and asked for the same is resumed., type: bool,
    default: true}
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Compare the shapers on one limit, in five blocks
  colocation.testbed.bandwidth_matrix:
    tested: ["{{ groups['tested'][0] }}"]
    load: ["{{ groups['load'][0] }}"]
    select: [single_priority.egress]
    blocks: 5
"""

RETURN = r"""
run_dir:
  description: The run directory on the controller. Empty where nothing was measured.
  returned: success
  type: str
  sample: results/20261130T201500Z-3f9a
run_id:
  description: Name of the run.
  returned: success
  type: str
  sample: 20261130T201500Z-3f9a
measured:
  description: Measurements made by this call.
  returned: success
  type: int
  sample: 75
resumed:
  description: Whether a run that was cut short was resumed.
  returned: success
  type: bool
  sample: false
"""
