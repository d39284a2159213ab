# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A policy's part for cache and memory bandwidth: groups in the words of module resctrl_group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.policy import resctrl
from ansible_collections.colocation.testbed.plugins.module_utils.policy.node import DEGRADED, UNSUPPORTED, Cache, Note
from ansible_collections.colocation.testbed.plugins.module_utils.policy.overlay import Strategy
from ansible_collections.colocation.testbed.plugins.module_utils.policy.vocabulary_qos import BE, LS, LSR

QOS = "resource-qos-config"
GROUPS = {LSR: "LSR", LS: "LS", BE: "BE"}
"""Koordinator's names of the groups by class; LSE workloads are in that of LSR."""
_RANGE = ("catRangeStartPercent", "catRangeEndPercent")


def groups(strategies: Mapping[str, Strategy]) -> list[dict[str, Any]]:
    """Return one group for each class whose resctrlQOS is enabled."""
    qos = strategies[QOS]
    return [
        {
            "name": group,
            "l3_cat_range_start_percent": qos.get(name, "resctrlQOS", _RANGE[0]),
            "l3_cat_range_end_percent": qos.get(name, "resctrlQOS", _RANGE[1]),
            "mba_percent": qos.get(name, "resctrlQOS", "mbaPercent"),
        }
        for name, group in GROUPS.items()
        if qos.get(name, "resctrlQOS", "enable") is True
    ]


def notes(strategies: Mapping[str, Strategy], cache: Cache | None) -> Iterator[Note]:
    """Yield notes on what this host cannot do, and on what its granularity makes of a percentage."""
    qos = strategies[QOS]
    for name in GROUPS:
        block = qos.get(name, "resctrlQOS") or {}
        if block.get("enable") is True:
            yield from _cat(name, block, cache)
            yield from _mba(name, block["mbaPercent"], cache)


def _cat(name: str, block: Mapping[str, Any], cache: Cache | None) -> Iterator[Note]:
    why = "resctrl with cache allocation is not mounted on this node; role resctrl says whether it can be"
    if cache is not None and cache.root_mask is not None:
        try:
            resctrl.cat_mask(cache.root_mask, block[_RANGE[0]], block[_RANGE[1]], cache.min_cbm_bits)
        except resctrl.ResctrlPolicyError as exc:
            why = str(exc)
        else:
            return
    for key in _RANGE:
        yield Note((name, "resctrlQOS", key), UNSUPPORTED, why)


def _mba(name: str, percent: int, cache: Cache | None) -> Iterator[Note]:
    names = (name, "resctrlQOS", "mbaPercent")
    if cache is None or cache.mba_default is None:
        why = "resctrl that takes bandwidth in percent is not mounted on this node; role resctrl says whether it can be"
        yield Note(names, UNSUPPORTED, why)
        return
    try:
        value = resctrl.mba_value(percent, cache.vendor, cache.mba_default, cache.mba_granularity, cache.mba_minimum)
    except resctrl.ResctrlPolicyError as exc:
        yield Note(names, UNSUPPORTED, str(exc))
    else:
        if cache.vendor == resctrl.INTEL and value != percent:
            yield Note(names, DEGRADED, f"{percent} % becomes {value} %, which is what the hardware can do")
