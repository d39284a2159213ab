# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a receiver should count of each class, from what was asked for and how it is accounted: pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.measure import frames


@dataclass(frozen=True)
class Counting:
    """How a shaper counts packets: what ours was asked to, what holds packets back by direction, MTU in bytes."""

    accounting: str
    planes: Mapping[str, str]
    mtu_bytes: int

    def share(self, case: Mapping[str, Any], item: Mapping[str, Any]) -> float:
        """Return payload bits of a class for each bit that is counted.

        HTB and TBF count frames whatever was asked for. Raises FramesError.
        """
        plane = self.planes.get(item["direction"], "htb")
        accounting = self.accounting if plane in ("edt", "police") else "wire"
        return frames.class_share(accounting, item, case.get("family", "ipv4"), self.mtu_bytes)


def offline_bound_bps(case: Mapping[str, Any], counting: Counting) -> float | None:
    """Return counted bits a second that offline classes have together while the service sends as it is told to.

    None without a waterline, and where the service pauses, so that there is no one bound.
    """
    pool, classes = case["pool"], case["classes"].values()
    online = [item for item in classes if item["role"] == "online"]
    if not pool["waterline_bps"] or any(item["bursts"] for item in online):
        return None
    # What a sender offers is payload; frames are what the waterline counts.
    sent_bps = sum((item["offered_bps"] or 0) / counting.share(case, item) for item in online)
    return float(pool["low_bps"] if sent_bps >= pool["waterline_bps"] else pool["high_bps"])


def expected_bps(case: Mapping[str, Any], counting: Counting) -> dict[str, float | None]:
    """Return what receivers should count of each class, None where nothing fixes it."""
    found: dict[str, float | None] = {}
    shared = case["pool"]["shares"] != "none"
    offline = [name for name, item in case["classes"].items() if item["role"] == "offline" and item["flows"]]
    for name, item in case["classes"].items():
        share_of = counting.share(case, item)
        bounds = [item["limit_bps"] * share_of] if item["limit_bps"] else []
        together = offline_bound_bps(case, counting) if item["role"] == "offline" else None
        if together is not None and len(offline) == 1:
            bounds.append(together * share_of)
        if item["offered_bps"] and bounds:
            bounds.append(item["offered_bps"])
        free = not bounds or item["bursts"] or shared or not item["flows"]
        found[name] = None if free else float(min(bounds))
    return found


def floor_bps(case: Mapping[str, Any], counting: Counting) -> dict[str, float | None]:
    """Return what each class must have at least: its request, or what it offers where that is less; None for none."""
    found: dict[str, float | None] = {}
    for name, item in case["classes"].items():
        wanted = item["request_bps"] and item["request_bps"] * counting.share(case, item)
        if not wanted or item["bursts"] or not item["flows"]:
            found[name] = None
        else:
            found[name] = float(min(wanted, item["offered_bps"] or wanted))
    return found


def counting(manifest: Mapping[str, Any], shaper: str) -> Counting:
    """Return how a shaper counts in a run."""
    planes = {name: plane if shaper == "ebpf" else shaper for name, plane in manifest["planes"].items()}
    return Counting(str(manifest["accounting"]), planes, int(manifest["mtu_bytes"]))


def unshaped(mtu_bytes: int) -> Counting:
    """Return how what nobody shapes is counted: by payload."""
    return Counting("payload", dict.fromkeys(("egress", "ingress"), "edt"), mtu_bytes)
