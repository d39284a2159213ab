"""Go programs of dear scenarios: which are missing, and the building of them beside the tests."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import background
import schedule
import tooling

from ansible_collections.colocation.testbed.plugins.module_utils import apt
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import go_build, go_groups
from ansible_collections.colocation.testbed.plugins.plugin_utils.kubernetes import go_pins

#: Where roles keep them by default.
CACHE = Path("~/.cache/colocation-testbed/kubernetes").expanduser()
_LOOK_S = 2.0
_BUILDER = Path(__file__).with_name("build_programs.py")

Start = Callable[[Sequence[str]], background.Background]


class CannotRunError(Exception):
    """A scenario cannot run here, or not in the time that is left; the text says why."""


class NotBuiltError(Exception):
    """Programs cannot be built from their pins; the text says which and why."""


def wanted(names: Iterable[str]) -> list[str]:
    """Return the groups that some scenarios need, each once, in the order of the table."""
    chosen = set(names)
    return list(dict.fromkeys(group for name, dear in schedule.DEAR.items() if name in chosen for group in dear.groups))


def missing(groups: Sequence[str], store: go_build.Store) -> list[str]:
    """Return the names of groups that the cache has not, or not whole."""
    return [group.name for group in go_groups.parse(go_pins.load(groups)) if not store.has(group)]


def _buildable(name: str) -> bool:
    """Tell whether what a group is built with is there; otherwise its role has to install that first."""
    (group,) = go_groups.parse(go_pins.load([name]))
    if not group.packages:
        return True
    return bool(shutil.which("dpkg-query")) and set(group.packages) <= apt.Apt(0, "").installed()


def _start(arguments: Sequence[str]) -> background.Background:
    # With a heap that grows further before it is collected, compilers take a tenth less time, and some memory.
    environment = {**os.environ, "PYTHONPATH": str(tooling.ROOT / "collections"), "LC_ALL": "C.UTF-8", "GOGC": "400"}
    log = tooling.cache_dir() / "programs.log"
    return background.Background([*background.BEHIND, sys.executable, str(_BUILDER), *arguments], log, environment)


class Programs:
    """The programs that a session needs, and the background process that builds them while there is one."""

    def __init__(self, budget: schedule.Budget, cache: Path = CACHE, start: Start = _start) -> None:
        """Nothing is started yet."""
        self.budget = budget
        self.store = go_build.Store(str(cache))
        self._start = start
        self._building: background.Background | None = None
        self.chosen: list[str] = []

    def build(self, scenarios: Iterable[str], buildable: Callable[[str], bool] = _buildable) -> None:
        """Start to build what scenarios that were collected need and the cache has not."""
        chosen = [name for name in missing(wanted(scenarios), self.store) if buildable(name)]
        if chosen and self._building is None and shutil.which("go"):
            self._building = self._start([self.store.directory, *chosen])
            self.chosen = chosen

    def ready(self, scenario: str) -> bool:
        """Tell whether a scenario's programs are there, so that it would not have to wait."""
        return not missing(wanted([scenario]), self.store)

    def pause(self, paused: bool) -> None:
        """Keep the building from disturbing what measures, or let it go on."""
        if self._building is not None:
            (self._building.pause if paused else self._building.resume)()

    def stop(self) -> None:
        """End the building with the session."""
        if self._building is not None:
            self._building.stop()

    def admit(self, scenario: str) -> float:
        """Wait for what a scenario needs as long as it would still fit afterwards; return its limit in seconds.

        Raises CannotRunError, and NotBuiltError for programs that cannot be built at all.
        """
        dear = schedule.DEAR.get(scenario)
        if dear is None:
            return float("inf")
        lacking = self._awaited(dear)
        cost_min = dear.cost_min
        if lacking:
            self._require(lacking)
            cost_min += schedule.BUILD_MIN
        refusal = self.budget.refusal(cost_min, time.time())
        if refusal:
            raise CannotRunError(refusal)
        return (self.budget.left_min(time.time()) + schedule.OVERRUN_MIN) * 60

    def _awaited(self, dear: schedule.Dear) -> list[str]:
        """Return what is missing after as much waiting as leaves time for the scenario; others may still be built."""
        while True:
            # Looked at first: what it builds as its last act is not missed.
            building = self._building if self._building is not None and self._building.running else None
            lacking = missing(dear.groups, self.store)
            spare_s = (self.budget.left_min(time.time()) - dear.cost_min) * 60
            if not lacking or building is None or spare_s <= 0:
                return lacking
            building.wait(min(spare_s, _LOOK_S))

    def _require(self, lacking: Sequence[str]) -> None:
        """Raise for programs that neither the background process nor the role can build in time."""
        if not shutil.which("go"):
            raise CannotRunError(f"programs {', '.join(lacking)} are built with Go, which is not on PATH")
        if self._building is None:
            return
        if self._building.running:
            raise CannotRunError(
                f"programs {', '.join(lacking)} are still being built: {schedule.BUDGET}=0 make test waits for them"
            )
        failure = self._building.failure()
        if failure:
            raise NotBuiltError(f"programs {', '.join(lacking)} could not be built: {failure}")
