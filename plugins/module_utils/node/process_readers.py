# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the processes of a measurement live, and in which group: supervised ones, and those of a pod."""

from __future__ import annotations

from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, group_counters, procfs
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.kept_file import KeptFile, read_fresh
from ansible_collections.colocation.testbed.plugins.module_utils.node import spec as specs

GONE = {"alive": False, "group": None}


class SupervisedProcess:
    """Tells whether a supervised process lives, and in which group it is."""

    def __init__(self, layout: cgroup.Layout, pid_file: str, prefix: str, proc_root: str) -> None:
        """Take the pid file; `prefix` is the group root of this host below the hierarchy of the CPUs."""
        self._cpu = layout.hierarchy("cpu")
        self._pid_file = pid_file
        self._prefix = prefix
        self._proc_root = proc_root
        self._child: Any = None
        self._stat = KeptFile("", reopen=False)
        self._groups = KeptFile("", reopen=False)

    def read(self) -> dict[str, Any]:
        """Return {"alive", "group"}; the group is below the host's root, or the full path where it is elsewhere."""
        text = self._stat.read_text() if self._child else None
        if not text and self._find():
            text = self._stat.read_text()
        stat = procfs.parse_stat(text) if text else None
        if stat is None or stat.dead or stat.start_ticks != self._child.start_ticks:
            return dict(GONE)
        return {"alive": True, "group": self._group()}

    def _find(self) -> bool:
        found = specs.read_pid_file(self._pid_file)
        if found is None or found.child is None or found.child == self._child:
            return False
        self._child = found.child
        self._stat.close()
        self._groups.close()
        self._stat = KeptFile(f"{self._proc_root}/{found.child.pid}/stat", reopen=False)
        self._groups = KeptFile(f"{self._proc_root}/{found.child.pid}/cgroup", reopen=False)
        return True

    def _group(self) -> str | None:
        paths = procfs.parse_group_paths(self._groups.read_text() or "")
        if not paths:
            return None
        path = cgroup.path_in(paths, self._cpu)
        return path[len(self._prefix) :] if path.startswith(self._prefix) else path


class ProcessesOfGroup:
    """Tells whether anything lives in a group that a container runtime fills, which leaves no pid file of ours."""

    def __init__(self, layout: cgroup.Layout, path: str, name: str) -> None:
        """Take the group's path below the hierarchies' root, and the name under which a sample shows it."""
        self._tasks = group_counters.task_list(layout, path)
        self._name = name

    def read(self) -> dict[str, Any]:
        """Return {"alive", "group"}: not alive where the group is gone or empty."""
        found = group_counters.parse_tids(read_fresh(self._tasks))
        return {"alive": True, "group": self._name} if found else dict(GONE)
