"""In which order the suite runs, what of it is dear, and whether a dear part still fits into the time there is."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

BUDGET = "COLOCATION_TESTBED_BUDGET_MIN"
#: Seconds since the epoch; `make test` sets it, since making the virtual environment takes part of the time too.
STARTED = "COLOCATION_TESTBED_STARTED_S"
#: CI ends everything after an hour; fetching the checkout, an overrun and what ends a session come out of it too.
DEFAULT_BUDGET_MIN = 52.0
#: What is quick and tells most comes first, then what measures: nothing runs beside that.
ORDER = ("unit", "gates", "report", "molecule", "kernel", "end_to_end", "latest", "measures")
#: The same where what only computes has a lane of its own, whose reports are taken over when it has had its time.
LANES = ("molecule", "kernel", "end_to_end", "unit", "gates", "report", "latest", "measures")
MEASURES = "measures"
_CLUSTER = ("etcd", "kubernetes", "containerd", "crictl")


@dataclass(frozen=True)
class Dear:
    """A molecule scenario that takes minutes: how many, and the groups of Go programs that its roles need."""

    cost_min: float
    groups: tuple[str, ...] = ()


#: In the order in which they run, after all other tests. The first needs no programs: the last of them are built
#: beside it. The last one is what other scenarios and tests/kernel cover best, should time run out.
DEAR: Mapping[str, Dear] = {
    "bandwidth_boot": Dear(3),
    "kubernetes": Dear(3, _CLUSTER),
    "matrix_pods": Dear(9, (*_CLUSTER, "koordinator")),
    "kubernetes_nodes": Dear(6, _CLUSTER),
    "koordinator": Dear(6, (*_CLUSTER, "koordinator")),
    "cgroup_qemu": Dear(5),
}
#: What a role needs for programs that were not built beforehand.
BUILD_MIN = 15.0
#: How long a scenario may go on after all minutes are used, until it is ended: it was admitted by an estimate.
OVERRUN_MIN = 3.0


class ScheduleError(Exception):
    """A setting cannot be read; the text says which, and what it may be."""


@dataclass(frozen=True)
class Budget:
    """Minutes for all tests together, from a start in seconds since the epoch; 0 minutes mean no limit."""

    started_s: float
    minutes: float

    def left_min(self, now_s: float) -> float:
        """Return how many minutes are left; there are always some without a limit."""
        return self.minutes - (now_s - self.started_s) / 60 if self.minutes else float("inf")

    def refusal(self, cost_min: float, now_s: float) -> str:
        """Return why something does not fit any more, empty where it does."""
        left = max(self.left_min(now_s), 0.0)
        if cost_min <= left:
            return ""
        return f"needs {cost_min:g} min, and {left:.1f} of {self.minutes:g} are left: {BUDGET}=0 make test runs it"


def budget(environment: Mapping[str, str] = os.environ, now_s: float | None = None) -> Budget:
    """Read the budget. Raises ScheduleError for a number that is none, or below 0."""
    now = time.time() if now_s is None else now_s
    return Budget(_number(environment, STARTED, now), _number(environment, BUDGET, DEFAULT_BUDGET_MIN))


def _number(environment: Mapping[str, str], name: str, default: float) -> float:
    text = environment.get(name, "")
    try:
        value = float(text) if text else default
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise ScheduleError(f"{name}={text}: is not a number of 0 or more; correct it or leave it away")
    return value


def position(stage: str, scenario: str = "", order: Sequence[str] = ORDER) -> tuple[int, int]:
    """Return where a test of a stage, and of a molecule scenario, comes; those of equal positions keep their order.

    A stage is the test's folder, or `MEASURES`.
    """
    if scenario in DEAR:
        return len(order) + 1, list(DEAR).index(scenario)
    return order.index(stage) if stage in order else len(order), 0
