#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: matrix
short_description: Run the matrix of modes, load points and aggressors
version_added: 0.1.0
description:
  - Measures every mode at every load point beside every aggressor, in shuffled blocks, and stores a run directory.
  - Decides after each measurement what comes next, so that a window that noise spoiled is measured again.
  - Needs the facts that the roles node, latency_service, batch_workload and load_generator leave.
  - In check mode it validates everything, shows the plan and measures nothing.
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
  substrate:
    description:
      - In what the workloads run. V(process) are processes in control groups of the collection's own, V(pod) are pods
        of the cluster to which the tested node belongs, with the facts of roles kubernetes and koordinator.
    type: str
    choices: [process, pod]
    default: process
  modes:
    description: Names of the modes to run, built-in ones or such of O(mode_definitions). The first is what the others
      are compared with.
    type: list
    elements: str
    default: [baseline, colocation, slo_aware]
  load_points:
    description: Offered load as shares of the service's measured peak, each above 0 and below 1.
    type: list
    elements: float
    default: [0.3]
  aggressors:
    description: Batch workloads that run beside the service, built-in ones or such of O(aggressor_definitions).
    type: list
    elements: str
    default: [ffmpeg]
  blocks: {description: How often the whole matrix is measured. 0 deploys only. Fewer than three can't give a verdict.,
    type: int, default: 6}
  window_s: {description: Length of one measurement window in seconds., type: int, default: 10}
  warmup_s: {description: Seconds of load before each window that are not counted., type: int, default: 2}
  repeat_cap: {description: How often a window that noise spoiled is measured again., type: int, default: 3}
  seed: {description: 'Seed of the order and of the arrivals. 0 draws one, which is recorded.', type: int, default: 0}
  load_kind:
    description:
      - V(open_loop) sends at a held rate with Poisson arrivals, whatever the service answers.
      - V(closed_loop) sends as fast as the answers come, as wrk does by itself. Its latencies don't compare between
        modes.
    type: str
    choices: [open_loop, closed_loop]
    default: open_loop
  load_threads: {description: Threads of wrk., type: int, default: 1}
  load_connections: {description: Connections of wrk., type: int, default: 40}
  peak_rps: {description: Peak rate of the service in requests per second. 0 measures it first., type: int, default: 0}
  peak_window_s: {description: Seconds for which the peak is measured., type: int, default: 3}
  hold_pm_qos: {description: 'Whether idle states are kept off on all measured CPUs. V(false) makes the run invalid,
      which is its use.', type: bool, default: true}
  limits:
    description: Limits of guards that differ from the built-in ones, by the guard's name.
    type: dict
    default: {}
  mode_definitions:
    description: Modes of your own by name, in the form of the files below C(files/modes).
    type: dict
    default: {}
  policy_definitions:
    description: Policies of your own by name, in the form of the files below C(files/policies).
    type: dict
    default: {}
  aggressor_definitions:
    description: Aggressors of your own by name, in the form of the files below C(files/aggressors).
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
- name: Measure three modes in five blocks
  colocation.testbed.matrix:
    tested: ["{{ groups['tested'][0] }}"]
    load: ["{{ groups['load'][0] }}"]
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
  sample: 15
resumed:
  description: Whether a run that was cut short was resumed.
  returned: success
  type: bool
  sample: false
"""
