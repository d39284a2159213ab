# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether two runs were measured on the same hosts, as far as a manifest tells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

#: What must agree for latencies to be comparable: fact and how it is called in a sentence.
FACTS = (("kernel", "kernel"), ("cpu_model", "CPU model"), ("measured_cpus", "measured CPUs"))


def same_hosts(first: Mapping[str, Any], second: Mapping[str, Any]) -> str | None:
    """Return how the hosts of two manifests differ in one clause, or None when they are the same for our purpose.

    Hosts are matched by what they do (tested, load), since their names are the inventory's business.
    """
    for role in ("tested", "load"):
        left = [host for _unused, host in sorted(first.items()) if host["role"] == role]
        right = [host for _unused, host in sorted(second.items()) if host["role"] == role]
        if len(left) != len(right):
            return f"{len(left)} and {len(right)} hosts are in group {role}"
        for one, other in zip(left, right, strict=True):
            for fact, name in FACTS:
                if one.get(fact) != other.get(fact):
                    values = f"{one.get(fact)!r} in one and {other.get(fact)!r} in the other"
                    return f"the {name} of the {role} node is {values}"
    return None
