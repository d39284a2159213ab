# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The control group of version 2 that this process is in: where it comes back to after it has visited others."""

from __future__ import annotations

from ansible_collections.colocation.testbed.plugins.module_utils import files
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup


class OwnGroupError(Exception):
    """There are no such groups here; the text says what to do."""


def find() -> tuple[str, str]:
    """Return where version 2 is mounted, and the directory of this process's group in it. Raises OwnGroupError."""
    mount = next((item.mount for item in cgroup.detect().hierarchies if item.version == 2), "")
    for line in files.read_text("/proc/self/cgroup").splitlines() if mount else []:
        number, _controllers, path = line.split(":", 2)
        if number == "0":
            return mount, mount + path.rstrip("/")
    raise OwnGroupError("control groups: no cgroup2 is mounted, which groups of classes need; mount one")
