# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of memory limits: what grows from the top down, then what shrinks from the bottom up.

So a group is never protected more than its parent, nor limited below what protects it, longer than one write.
"""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_sets import Passes
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_steps import Setting
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_tree import Tree
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_values import NO_LIMIT, Value

# From the outermost limit to the innermost: what grows is written in this order, what shrinks in the reverse one.
RANKS = ("memory_max_bytes", "memory_swap_max_bytes", "memory_high_bytes", "memory_low_bytes", "memory_min_bytes")


def _size(value: Value) -> int:
    return 2**63 if value == NO_LIMIT else int(value)


def _rank(item: Setting) -> tuple[int, int]:
    return item.directory.count("/"), RANKS.index(item.key.name)


def plan(tree: Tree, settings: Sequence[Setting]) -> Passes:
    """Return the writes of memory limits in the two passes."""
    passes = Passes()
    for item in sorted(settings, key=_rank):
        if _size(item.wanted(tree)) > _size(item.current(tree)):
            passes.up += item.steps(tree)
        else:
            passes.down[:0] = item.steps(tree)
    return passes
