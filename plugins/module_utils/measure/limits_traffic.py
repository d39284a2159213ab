# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guards of the bandwidth experiment: what each asks, where it trips unless the user says otherwise, and why there."""

from __future__ import annotations

from ansible_collections.colocation.testbed.plugins.module_utils.measure.records import Guard

#: Guards of the matrix that hold here too, in the order of the table.
SHARED = ("steal", "foreign_cpu", "foreign_burst", "clocks_monotonic", "samples_complete")

# Not repeatable is what follows from the case itself, see limits.py. Here it makes what was measured in that cell
# invalid, and the run where the cell has objectives.
GUARDS: tuple[Guard, ...] = (
    Guard(
        "traffic_complete",
        "Every class was counted by its receiver",
        "classes have no figures",
        0.0,
        "classes without figures",
        "a sender's own figure counts what lies in its buffer; a class that sent nothing says nothing of its limit",
        repeatable=True,
        noise=False,
    ),
    Guard(
        "intervals_complete",
        "Rates complete at 100 ms",
        "readings of rates are missing",
        10.0,
        "% of intervals missing",
        "what a receiver did not count in time cannot be told from a pause of the sender",
        repeatable=True,
        noise=True,
    ),
    Guard(
        "probe_complete",
        "Latency probe kept its pace",
        "the latency probe did not keep its pace",
        10.0,
        "% of requests missing",
        "a probe that waits for late answers asks less often just when it matters",
        repeatable=True,
        noise=True,
    ),
    Guard(
        "shaping_in_effect",
        "Shaping in effect as asked",
        "the shaping that was asked for was not in effect",
        0.0,
        "values that differ",
        "another tool may replace a queueing discipline, and a limit that is not there looks like a fast shaper",
        repeatable=True,
        noise=False,
    ),
    Guard(
        "foreign_drops",
        "Nothing dropped but by the shaper",
        "packets were dropped outside the shaper",
        0.0,
        "packets",
        "a full queue elsewhere holds a sender back as well, and its work would be taken for the shaper's",
        repeatable=True,
        noise=True,
    ),
    Guard(
        "receiver_cpu",
        "Receiver had CPU to spare",
        "a receiver was short of CPU",
        95.0,
        "% of its CPUs",
        "a receiver that cannot keep up shapes the traffic itself",
        repeatable=False,
        noise=False,
    ),
    Guard(
        "sender_headroom",
        "Senders could offer more than the limit",
        "senders could not offer more than the limit",
        90.0,
        "% of what they can send",
        "a sender that reaches its limit only just meets it whatever the shaper does",
        repeatable=False,
        noise=False,
        scope="run",
    ),
)
