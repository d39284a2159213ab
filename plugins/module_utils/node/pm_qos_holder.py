# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hold the CPU latency constraint until stopped: `node.pyz hold-pm-qos --spec FILE`.

The kernel drops the request when the file that made it is closed, so the hold ends with this process, however it ends.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from ansible_collections.colocation.testbed.plugins.module_utils import files
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import pm_qos

_STOP = frozenset({signal.SIGTERM, signal.SIGINT})


def run(spec_path: str) -> int:
    """Hold as a specification file says: `latency_us` (0), `device`, and `output`, the file that says what is held."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOP)
    try:
        spec = files.read_json(spec_path)
        device = str(spec.get("device", pm_qos.DEVICE))
        latency_us = int(spec.get("latency_us", 0))
        fd = pm_qos.hold(latency_us, device)
        state = {
            "device": device,
            "latency_us": latency_us,
            "effective_us": pm_qos.read_effective_us(device),
            "pid": os.getpid(),
            "since_wall_s": time.time(),
        }
        if spec.get("output"):
            files.write_json(str(spec["output"]), state)
    except (pm_qos.PmQosError, files.FilesError, AttributeError, TypeError, ValueError) as exc:
        sys.stderr.write(f"hold-pm-qos: {exc}\n")
        return 1
    signal.sigwait(_STOP)
    os.close(fd)
    return 0
