"""How quiet the machine was when a part of the benchmark ran: what the hypervisor took, and what others used before."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Of the machine's time; the matrix calls a window with more disturbed too.
STEAL_LIMIT_PCT = 0.5
# Of the machine's time, while nothing of the benchmark runs: about what an idle system's own services use.
BUSY_LIMIT_PCT = 5.0
SAMPLE_S = 2.0
_TICKS_PER_S = 100


@dataclass(frozen=True)
class Times:
    """Seconds of all CPUs together since boot: given to others by the hypervisor, idle; and the clock."""

    stolen_s: float
    idle_s: float
    clock_s: float


def times(stat: str, clock_s: float) -> Times:
    """Return the times in the text of /proc/stat."""
    fields = [int(field) / _TICKS_PER_S for field in stat.splitlines()[0].split()[1:]]
    return Times(fields[7], fields[3] + fields[4], clock_s)


class Watch:
    """Reads the machine before a part, when nothing of the benchmark runs, and after it."""

    def __init__(self, proc_root: str = "/proc", sample_s: float = SAMPLE_S) -> None:
        """Look for a moment at what others use."""
        self.proc_root, self.cpus = proc_root, os.cpu_count() or 1
        before = self._read()
        time.sleep(sample_s)
        self.start = self._read()
        elapsed_s = max(self.start.clock_s - before.clock_s, 1e-9)
        self.busy_pct = max(0.0, 100 * (1 - (self.start.idle_s - before.idle_s) / (elapsed_s * self.cpus)))

    def _read(self) -> Times:
        return times(Path(self.proc_root, "stat").read_text(encoding="ascii"), time.monotonic())

    def end(self) -> dict[str, Any]:
        """Return what belongs to a figure: share stolen since the start, load, what others used before, a verdict."""
        end = self._read()
        elapsed_s = max(end.clock_s - self.start.clock_s, 1e-9)
        steal_pct = 100 * (end.stolen_s - self.start.stolen_s) / (elapsed_s * self.cpus)
        return {
            "steal_pct": round(steal_pct, 3),
            "load_after": round(os.getloadavg()[0], 1),
            "busy_before_pct": round(self.busy_pct, 1),
            "disturbed": steal_pct > STEAL_LIMIT_PCT or self.busy_pct > BUSY_LIMIT_PCT,
        }
