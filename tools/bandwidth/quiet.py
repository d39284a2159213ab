"""How quiet the machine was while a part of the benchmark ran: what the hypervisor took, and what else was running."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Of the machine's time; the matrix calls a window with more disturbed too.
STEAL_LIMIT_PCT = 0.5
LOAD_LIMIT = 1.0
_TICKS_PER_S = 100


def stolen_s(stat: str) -> float:
    """Return the seconds that the hypervisor gave to others, from /proc/stat."""
    fields = stat.splitlines()[0].split()
    return int(fields[8]) / _TICKS_PER_S


@dataclass
class Watch:
    """Reads the machine before and after a part."""

    started_s: float = field(default_factory=time.monotonic)
    stolen_before_s: float = 0.0
    load_before: float = 0.0
    proc_root: str = "/proc"

    def __post_init__(self) -> None:
        """Read the start."""
        self.stolen_before_s = self._stolen_s()
        self.load_before = os.getloadavg()[0]

    def _stolen_s(self) -> float:
        return stolen_s(Path(self.proc_root, "stat").read_text(encoding="ascii"))

    def end(self) -> dict[str, Any]:
        """Return what belongs to a figure's machine: share stolen since the start, load before it, and a verdict."""
        elapsed_s = time.monotonic() - self.started_s
        steal_pct = 100 * (self._stolen_s() - self.stolen_before_s) / max(elapsed_s * (os.cpu_count() or 1), 1e-9)
        return {
            "steal_pct": round(steal_pct, 3),
            "load_before": round(self.load_before, 1),
            "disturbed": steal_pct > STEAL_LIMIT_PCT or self.load_before > LOAD_LIMIT,
        }
