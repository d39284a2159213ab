# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A policy's part for disks: limits and the weight of best-effort work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.policy import effects
from ansible_collections.colocation.testbed.plugins.module_utils.policy.node import (
    BE,
    HOST,
    NO_LIMIT,
    SUPPORTED,
    TIER,
    UNSUPPORTED,
    NodeFacts,
    Note,
    Option,
    Part,
    Workload,
)
from ansible_collections.colocation.testbed.plugins.module_utils.policy.overlay import Strategy
from ansible_collections.colocation.testbed.plugins.module_utils.policy.vocabulary_qos import BE as BE_CLASS
from ansible_collections.colocation.testbed.plugins.module_utils.policy.vocabulary_qos import CLASSES

QOS = "resource-qos-config"
DEVICE = "device"
_WEIGHT = "ioWeightPercent"


def weight(percent: int) -> int:
    """Return io.weight (1..10000) for Koordinator's 1..100, whose default of 100 stands for the largest."""
    return percent * 100


def options(strategies: Mapping[str, Strategy], node: NodeFacts, workload: Workload) -> Part:
    """Return the disk options of the root of best effort; Koordinator gives other classes none."""
    qos = strategies[QOS]
    enabled = qos.get(BE_CLASS, "blkioQOS", "enable") is True
    if workload.qos != BE or workload.level not in (HOST, TIER) or not enabled:
        return Part()
    blocks = [block for block in qos.get(BE_CLASS, "blkioQOS", "blocks") or () if _kind(block) == DEVICE]
    found: dict[str, Option] = {}
    limits = [_limits(block) for block in blocks if effects.THROTTLES.keys() & (block.get("ioCfg") or {}).keys()]
    if limits:
        found["io_max"] = limits
    weights = [block["ioCfg"][_WEIGHT] for block in blocks if _WEIGHT in (block.get("ioCfg") or {})]
    if weights:
        found["io_weight"] = weight(min(weights))
    return Part(found)


def _kind(block: Mapping[str, Any]) -> str:
    return str(block.get("type", DEVICE))


def _limits(block: Mapping[str, Any]) -> dict[str, Any]:
    given = block.get("ioCfg") or {}
    return {"device": block["name"], **{word: given.get(key) or NO_LIMIT for key, word in effects.THROTTLES.items()}}


def notes(strategies: Mapping[str, Strategy], node: NodeFacts) -> Iterator[Note]:
    """Yield a note for each key of each block: which are carried out here, and why others are not."""
    qos = strategies[QOS]
    for name in CLASSES:
        blocks = qos.get(name, "blkioQOS", "blocks") or ()
        weights = {block["ioCfg"][_WEIGHT] for block in blocks if _WEIGHT in (block.get("ioCfg") or {})}
        for number, block in enumerate(blocks):
            names = (name, "blkioQOS", f"blocks[{number}]")
            if name == BE_CLASS and _kind(block) != DEVICE:
                why = f"the disks of a {_kind(block)} are not looked up here; name the disk, with type device"
                yield Note((*names, "type"), UNSUPPORTED, why)
                continue
            for key in block.get("ioCfg") or {}:
                yield Note((*names, "ioCfg", key), *_state(name, key, len(weights) > 1, node))


def _state(name: str, key: str, weights_differ: bool, node: NodeFacts) -> tuple[str, str]:
    effect = effects.find(QOS, (name, "blkioQOS", "blocks", "ioCfg", key))
    if effect.kind == effects.NOTHING:
        return UNSUPPORTED, effect.text
    if name != BE_CLASS:
        return UNSUPPORTED, "Koordinator limits disks for beClass alone; write it there"
    if effect.names[0] in node.lacking:
        return UNSUPPORTED, node.lacking[effect.names[0]]
    if key == _WEIGHT and weights_differ:
        return UNSUPPORTED, "a group has one weight for all disks here: the least of those given counts"
    return SUPPORTED, ""
