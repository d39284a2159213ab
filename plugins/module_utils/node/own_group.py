# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The control group of version 2 that this process is in: where it comes back to after it has visited others."""

from __future__ import annotations

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, procfs


class OwnGroupError(Exception):
    """There are no such groups here; the text says what to do."""


def find(proc_root: str = procfs.PROC_ROOT) -> tuple[str, str]:
    """Return where version 2 is mounted, and the directory of this process's group in it. Raises OwnGroupError."""
    unified = next((item for item in cgroup.detect(proc_root).hierarchies if item.version == 2), None)
    paths = procfs.parse_group_paths(procfs.read_text(f"{proc_root}/self/cgroup") or "")
    if unified is None or "" not in paths:
        raise OwnGroupError("control groups: no cgroup2 is mounted, which groups of classes need; mount one")
    return unified.mount, unified.mount + cgroup.path_in(paths, unified).rstrip("/")
