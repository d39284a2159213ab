# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host has of what dividing its bandwidth needs; it is tried in a network namespace that goes at once."""

from __future__ import annotations

from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup import Layout
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.shaping_abilities import Abilities, Run


def collect(layout: Layout | None, run: Run = commands.run, proc_root: str = "/proc") -> dict[str, Any]:
    """Return ``bpf_file_system``, ``cgroup2`` (its mount point or None), and ``clsact``: programs at devices."""
    known = (files.read_text_or_none(f"{proc_root}/filesystems") or "").split()
    mounts = [item.mount for item in layout.hierarchies if item.version == 2] if layout else []
    return {
        "bpf_file_system": "bpf" in known,
        "cgroup2": mounts[0] if mounts else None,
        "clsact": _takes_programs(run),
    }


def _takes_programs(run: Run) -> bool:
    try:
        return Abilities(run).has("programs")
    except commands.CommandError:
        return False
