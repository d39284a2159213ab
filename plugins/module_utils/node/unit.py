# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The transient systemd unit of a process: it runs the supervisor, which itself puts the child into its groups.

systemd keeps only the supervisor in the unit's own group. That is enough for it: the supervisor stays as main process
and stops the child when systemd stops the unit (KillMode=mixed sends SIGTERM to the main process only). So groups have
one layout with and without systemd, and no unit needs Delegate=.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from ansible_collections.colocation.testbed.plugins.module_utils.node import spec as specs

# Transient: gone after a reboot, like the processes themselves.
DIRECTORY = "/run/systemd/system"
# What the supervisor needs beyond the child's own time to stop.
_STOP_SLACK_S = 15


def name(process: str, instance: str = "") -> str:
    """Return the unit's name; `instance` tells several hosts on one machine apart."""
    return "-".join(part for part in ("colocation-testbed", instance, process) if part) + ".service"


def path(unit: str) -> str:
    """Return where the unit file is."""
    return os.path.join(DIRECTORY, unit)


def quote(word: str) -> str:
    """Return a word of ExecStart= that systemd reads back unchanged (systemd.service(5), systemd.syntax(7))."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return '"' + escaped.replace("%", "%%").replace("$", "$$") + '"'


def render(spec: specs.ProcessSpec, argv: Sequence[str]) -> str:
    """Return the text of the unit."""
    timeout_s = spec.stop_timeout_s + _STOP_SLACK_S
    return "\n".join(
        [
            "[Unit]",
            f"Description=colocation.testbed: {spec.name}",
            "CollectMode=inactive-or-failed",
            "",
            "[Service]",
            "Type=exec",
            f"ExecStart={' '.join(quote(word) for word in argv)}",
            "KillMode=mixed",
            f"TimeoutStopSec={timeout_s:g}",
            "Restart=no",
            "",
        ]
    )
