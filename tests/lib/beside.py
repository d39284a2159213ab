"""What a session does beside its tests: unit tests with the newest ansible-core, and programs that scenarios need."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection
from pathlib import Path

import background
import latest
import schedule
import tooling
from programs import Programs


class Beside:
    """Both of them; each is started when a test that was collected needs it, and ended with the session."""

    def __init__(self, budget: schedule.Budget) -> None:
        """Nothing is started yet."""
        self.programs = Programs(budget)
        self.latest: background.Background | None = None

    def start(self, scenarios: Collection[str], unit_tests: bool) -> None:
        """Start what some scenarios, and the repetition of the unit tests, need."""
        python = latest.newest_python() if unit_tests else None
        if python is not None:
            # Not behind everything: they take one processor, as the other tests do, and some of them look at the clock.
            log = tooling.cache_dir() / "latest.log"
            environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
            self.latest = background.Background([sys.executable, latest.__file__, str(python)], log, environment)
        self.programs.build(scenarios)

    def pause(self, paused: bool) -> None:
        """Keep all of it from disturbing what measures, or let it go on."""
        if self.latest is not None:
            (self.latest.pause if paused else self.latest.resume)()
        self.programs.pause(paused)

    def lines(self) -> list[str]:
        """Return what is to be known of it at the end, a line each."""
        found = [f"{'':11}Go programs built beside: {', '.join(self.programs.chosen)}"] if self.programs.chosen else []
        return [*found, f"{'':11}minutes of the budget left: {self.programs.budget.left_min(time.time()):.1f}"]

    def stop(self) -> None:
        """End all of it."""
        if self.latest is not None:
            self.latest.stop()
        self.programs.stop()
