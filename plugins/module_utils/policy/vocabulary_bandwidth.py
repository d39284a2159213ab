# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words of section ``bandwidth``: what batch work may send while services need the link.

The section is this collection's own: Koordinator's words for the network need an agent of its kind, or shares of a
total. These are the words of module bandwidth_pool, so that one text serves both. Koordinator does not know them.
"""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.colocation.testbed.plugins.module_utils.policy.vocabulary_types import OWN, Leaf, Node

SECTION = "bandwidth"
BATCH, SERVICE = "batch", "service"
RATES = ("total", "waterline", "low", "high")


def _rate() -> Leaf:
    return Leaf("rate", engines=OWN)


def _class() -> dict[str, Node]:
    return {"request": _rate(), "limit": _rate(), "priority": Leaf("int", 0, 0, 2, engines=OWN)}


STRATEGY: Mapping[str, Node] = {
    "enable": Leaf("bool", False, engines=OWN),
    **{name: _rate() for name in RATES},
    "continuous": Leaf("bool", False, engines=OWN),
    "window": Leaf("duration", "10ms", engines=OWN),
    "hold": Leaf("int", 3, 1, 1000, engines=OWN),
    "accounting": Leaf("choice", "wire", choices=("wire", "l1", "skb", "payload"), engines=OWN),
    "shares": Leaf("choice", "none", choices=("none", "weights", "strict"), engines=OWN),
    BATCH: _class(),
    SERVICE: _class(),
}
