# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the user asked the matrix to do, checked once at the edge."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")

#: name: (lowest, highest, why) of each whole number; the reason is shown to whoever is outside.
RANGES: dict[str, tuple[int, int, str]] = {
    "blocks": (0, 1000, "0 deploys only"),
    "window_s": (2, 3600, "shorter windows hold too few requests for a tail"),
    "warmup_s": (0, 600, "0 sends no warm-up load"),
    "repeat_cap": (0, 20, "0 repeats no spoiled window"),
    "seed": (0, 2**31 - 1, "0 draws one"),
    "load_threads": (1, 256, "wrk needs at least one thread"),
    "load_connections": (1, 65535, "one for each request under way"),
    "peak_rps": (0, 10_000_000, "0 measures the peak first"),
    "peak_window_s": (1, 600, "seconds at full speed"),
}


class SettingsError(Exception):
    """Settings are outside what is allowed; ``problems`` has one sentence for each."""

    def __init__(self, problems: Sequence[str]) -> None:
        """Keep the sentences."""
        self.problems = tuple(problems)
        super().__init__("; ".join(problems))


@dataclass(frozen=True)
class MatrixSettings:
    """The arguments of one matrix, in range."""

    tested: str
    load: str
    substrate: str
    modes: tuple[str, ...]
    load_points: tuple[float, ...]
    aggressors: tuple[str, ...]
    blocks: int
    window_s: int
    warmup_s: int
    repeat_cap: int
    seed: int
    load_kind: str
    load_threads: int
    load_connections: int
    peak_rps: int
    peak_window_s: int
    hold_pm_qos: bool
    limits: dict[str, float]
    results_dir: str
    run_id: str
    resume: bool


def from_arguments(arguments: Mapping[str, Any], where: str = "matrix_") -> MatrixSettings:
    """Return the settings of validated module arguments.

    :param where: prefix of the variables that set them, for the texts of errors.
    :raises SettingsError: for a value outside what is allowed; the text names variable, value, range and remedy.
    """
    problems = list(_problems(arguments, where))
    if problems:
        raise SettingsError(problems)
    return MatrixSettings(
        tested=hosts(arguments["tested"])[0],
        load=hosts(arguments["load"])[0],
        substrate=str(arguments["substrate"]),
        modes=tuple(map(str, arguments["modes"])),
        load_points=tuple(map(float, arguments["load_points"])),
        aggressors=tuple(map(str, arguments["aggressors"])),
        load_kind=str(arguments["load_kind"]),
        hold_pm_qos=bool(arguments["hold_pm_qos"]),
        limits={str(name): float(limit) for name, limit in arguments["limits"].items()},
        results_dir=os.path.abspath(os.path.expanduser(str(arguments["results_dir"]))),
        run_id=str(arguments["run_id"]),
        resume=bool(arguments["resume"]),
        **{name: int(arguments[name]) for name in RANGES},
    )


def _problems(arguments: Mapping[str, Any], where: str) -> Iterator[str]:
    missing = [name for name, value in arguments.items() if value is None]
    for name in missing:
        yield f"{where}{name} is null: give it a value, or leave it out for the default"
    if missing:
        return
    yield from range_problems(arguments, RANGES, where)
    yield from _of_lists(arguments, where)
    yield from _of_load(arguments, where)
    run_id = str(arguments["run_id"])
    if run_id and not RUN_ID.fullmatch(run_id):
        yield f"{where}run_id is {run_id!r}: allowed are letters, digits, dot, dash and underscore"
    yield from host_problems(arguments)


def range_problems(
    arguments: Mapping[str, Any], ranges: Mapping[str, tuple[int, int, str]], where: str
) -> Iterator[str]:
    """Yield a sentence for each whole number outside its range (lowest, highest, why)."""
    for name, (low, high, why) in ranges.items():
        if not low <= int(arguments[name]) <= high:
            yield f"{where}{name} is {arguments[name]}: allowed are {low} to {high} ({why}); change it"


def host_problems(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each of the groups 'tested' and 'load' that does not have exactly one host."""
    for group in ("tested", "load"):
        found = hosts(arguments[group])
        if len(found) != 1:
            names = ", ".join(found) or "none"
            yield (
                f"inventory group {group!r} has {len(found)} hosts ({names}): exactly one is needed; "
                "correct the group in your inventory or choose with --limit"
            )


def _of_lists(arguments: Mapping[str, Any], where: str) -> Iterator[str]:
    for name in ("modes", "load_points", "aggressors"):
        values = list(arguments[name])
        if not values:
            yield f"{where}{name} is empty: name at least one"
        if len(set(values)) != len(values):
            yield f"{where}{name} names something twice: {values}; each may stand once"
    for point in arguments["load_points"]:
        if not _is_share(point):
            yield f"{where}load_points holds {point!r}: allowed are shares above 0 and below 1 of the service's peak"


def _is_share(point: Any) -> bool:
    try:
        return 0 < float(point) < 1
    except (TypeError, ValueError):
        return False


def _of_load(arguments: Mapping[str, Any], where: str) -> Iterator[str]:
    connections, threads = int(arguments["load_connections"]), int(arguments["load_threads"])
    if threads > 0 and connections % threads:
        yield (
            f"{where}load_connections is {connections}, which {where}load_threads {threads} does not divide: "
            "every thread of wrk gets as many connections; choose a multiple"
        )
    for name, limit in arguments["limits"].items():
        if isinstance(limit, bool) or not isinstance(limit, (int, float)):
            yield f"{where}limits.{name} is {limit!r}: a guard's limit is a number; correct it"


def hosts(value: Any) -> list[str]:
    """Return the names of hosts of an argument that may be one name or a list."""
    return [value] if isinstance(value, str) else [str(name) for name in value]
