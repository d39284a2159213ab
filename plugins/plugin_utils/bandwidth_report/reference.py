# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Published figures of the tool that this experiment repeats the tests of, and which of them cannot be.

Source: "oncn-bwm performance test report" (openEuler, repository openeuler/oncn-bwm), three nodes, links of 1 Gbit/s,
iperf3 with 60 s for each test, 128 KB messages. The report says neither how latency nor how CPU time was taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.measure import frames

SOURCE = "oncn-bwm performance test report, openEuler, three nodes, links of 1 Gbit/s"
LINK_BPS = 1e9
#: The shaper of the published rows that has our own as its counterpart.
PUBLISHED_SHAPER = "oncn-bwm"


@dataclass(frozen=True)
class Row:
    """One published figure. ``case`` is the one here that asks the same, ``label`` says in its words what was set.

    ``role`` is that of the classes that it is about; without one it is about the case as a whole.
    """

    scenario: str
    case: str
    label: str
    metric: str
    value: float
    unit: str
    shaper: str = PUBLISHED_SHAPER
    note: str = ""
    role: str = ""


_METHOD = "how it was taken is not said"
_OF_WHAT = "of what is not said: the three cannot be shares of one link at once"

ROWS: tuple[Row, ...] = (
    Row(
        "single_priority",
        "egress",
        "500 Mbit/s",
        "accuracy_pct",
        99.74,
        "%",
        note="498.7 of 500; the tool's Mb are 2^20 bit",
    ),
    Row("multi_priority", "limits", "200 Mbit/s", "accuracy_pct", 99.60, "%", note="199.2 of 200"),
    Row(
        "waterline",
        "online_below",
        "offline traffic, online below the waterline",
        "received_mbps",
        7840.0,
        "Mbit/s",
        note="0.98 GB/s",
        role="offline",
    ),
    Row(
        "waterline",
        "online_above",
        "offline traffic, online above the waterline",
        "accuracy_pct",
        99.0,
        "%",
        note="19.8 of 20 MB/s",
        role="offline",
    ),
    Row(
        "waterline",
        "dynamic",
        "online 25 MB/s, waterline 20",
        "switch_p95_ms",
        10.0,
        "ms",
        note="published as an upper bound",
    ),
    Row("waterline", "online_below", "online 15 MB/s, waterline 20", "fluctuation_pct", 2.3, "%"),
    Row("waterline", "online_above", "online 25 MB/s, waterline 20", "fluctuation_pct", 4.7, "%"),
    Row("waterline", "dynamic", "changing", "fluctuation_pct", 3.5, "%"),
    Row(
        "latency",
        "offline_saturates",
        "online, priority 0",
        "rr_p50_us",
        820.0,
        "us",
        note=f"a mean; {_METHOD}",
        role="online",
    ),
    Row(
        "latency",
        "offline_saturates",
        "middle, priority 1",
        "rr_p50_us",
        1240.0,
        "us",
        note=f"a mean; {_METHOD}",
        role="middle",
    ),
    Row(
        "latency",
        "offline_saturates",
        "offline, priority 2",
        "rr_p50_us",
        2560.0,
        "us",
        note=f"a mean; {_METHOD}",
        role="offline",
    ),
    Row(
        "latency", "offline_saturates", "online, priority 0", "utilisation_pct", 98.7, "%", note=_OF_WHAT, role="online"
    ),
    Row(
        "latency", "offline_saturates", "middle, priority 1", "utilisation_pct", 95.3, "%", note=_OF_WHAT, role="middle"
    ),
    Row(
        "latency",
        "offline_saturates",
        "offline, priority 2",
        "utilisation_pct",
        92.8,
        "%",
        note=_OF_WHAT,
        role="offline",
    ),
    Row("single_priority", "egress", "most throughput", "received_mbps", 980.0, "Mbit/s"),
    Row("single_priority", "egress", "most throughput", "received_mbps", 950.0, "Mbit/s", shaper="htb"),
    Row("single_priority", "egress", "most throughput", "received_mbps", 920.0, "Mbit/s", shaper="tbf"),
    Row("single_priority", "egress", "most throughput", "cpu_pct", 2.8, "% of CPU", note=_METHOD),
    Row("single_priority", "egress", "most throughput", "cpu_pct", 8.5, "% of CPU", shaper="htb", note=_METHOD),
    Row("single_priority", "egress", "most throughput", "cpu_pct", 6.2, "% of CPU", shaper="tbf", note=_METHOD),
    Row("class_count", "10_classes", "10 pods", "accuracy_pct", 99.7, "%"),
    Row("class_count", "50_classes", "50 pods", "accuracy_pct", 99.5, "%"),
    Row("class_count", "100_classes", "100 pods", "accuracy_pct", 99.2, "%"),
    Row("class_count", "200_classes", "200 pods", "accuracy_pct", 98.8, "%"),
    Row("class_count", "10_classes", "10 pods", "apply_ms", 100.0, "ms"),
    Row("class_count", "50_classes", "50 pods", "apply_ms", 200.0, "ms"),
    Row("class_count", "100_classes", "100 pods", "apply_ms", 500.0, "ms"),
    Row("class_count", "200_classes", "200 pods", "apply_ms", 1000.0, "ms"),
)


def why_impossible(row: Row) -> str | None:
    """Say why a published rate cannot be: more payload than the stated link carries; None for one that can."""
    most_mbps = frames.most_goodput_bps(LINK_BPS) / 1e6
    if row.unit != "Mbit/s" or row.value <= most_mbps:
        return None
    return f"a link of 1 Gbit/s carries at most {most_mbps:.1f} Mbit/s of TCP payload in packets of 1500 bytes"


def rows() -> list[dict[str, Any]]:
    """Return the published figures in the form of summary.json."""
    return [
        {
            "source": SOURCE,
            "scenario": row.scenario,
            "case": row.case,
            "label": row.label,
            "shaper": row.shaper,
            "metric": row.metric,
            "value": row.value,
            "unit": row.unit,
            "note": row.note,
            "role": row.role,
            "possible": why_impossible(row) is None,
            "why_impossible": why_impossible(row),
        }
        for row in ROWS
    ]
