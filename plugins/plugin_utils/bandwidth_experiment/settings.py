# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the user asked the bandwidth experiment to do, checked once at the edge."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment.scenario_checks import SHAPERS
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.settings import (
    RUN_ID,
    SettingsError,
    host_problems,
    hosts,
    range_problems,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PREFIX = "bandwidth_matrix_"
MAX_PORT = 60_000

#: name: (lowest, highest, why) of each whole number; the reason is shown to whoever is outside.
RANGES: dict[str, tuple[int, int, str]] = {
    "blocks": (0, 1000, "0 deploys only"),
    "window_s": (1, 3600, "shorter windows hold too little to count"),
    "warmup_s": (1, 600, "connections need a moment to find their rate"),
    "repeat_cap": (0, 20, "0 repeats no spoiled window"),
    "seed": (0, 2**31 - 1, "0 draws one"),
    "port": (1024, MAX_PORT, "one port for each class follows it, and 2000 after it one for each probe"),
}


@dataclass(frozen=True)
class BandwidthSettings:
    """The arguments of one run, in range."""

    tested: str
    load: str
    shapers: tuple[str, ...]
    blocks: int
    window_s: int
    warmup_s: int
    repeat_cap: int
    seed: int
    port: int
    plane: str
    accounting: str
    congestion_control: str
    program_statistics: bool
    hold_pm_qos: bool
    limits: dict[str, float]
    results_dir: str
    run_id: str
    resume: bool


def from_arguments(arguments: Mapping[str, Any]) -> BandwidthSettings:
    """Return the settings of validated module arguments.

    :raises SettingsError: for a value outside what is allowed; the text names variable, value, range and remedy.
    """
    problems = list(_problems(arguments))
    if problems:
        raise SettingsError(problems)
    return BandwidthSettings(
        tested=hosts(arguments["tested"])[0],
        load=hosts(arguments["load"])[0],
        shapers=tuple(map(str, arguments["shapers"])),
        plane=str(arguments["plane"]),
        accounting=str(arguments["accounting"]),
        congestion_control=str(arguments["congestion_control"]),
        program_statistics=bool(arguments["program_statistics"]),
        hold_pm_qos=bool(arguments["hold_pm_qos"]),
        limits={str(name): float(limit) for name, limit in arguments["limits"].items()},
        results_dir=os.path.abspath(os.path.expanduser(str(arguments["results_dir"]))),
        run_id=str(arguments["run_id"]),
        resume=bool(arguments["resume"]),
        **{name: int(arguments[name]) for name in RANGES},
    )


def _problems(arguments: Mapping[str, Any]) -> Iterator[str]:
    missing = [name for name, value in arguments.items() if value is None]
    for name in missing:
        yield f"{PREFIX}{name} is null: give it a value, or leave it out for the default"
    if missing:
        return
    yield from range_problems(arguments, RANGES, PREFIX)
    for name in ("select", "shapers"):
        if not arguments[name]:
            yield f"{PREFIX}{name} is empty: name at least one"
    for shaper in arguments["shapers"]:
        if shaper not in SHAPERS:
            yield f"{PREFIX}shapers holds {shaper!r}: allowed are {', '.join(SHAPERS)}"
    run_id = str(arguments["run_id"])
    if run_id and not RUN_ID.fullmatch(run_id):
        yield f"{PREFIX}run_id is {run_id!r}: allowed are letters, digits, dot, dash and underscore"
    yield from host_problems(arguments)
