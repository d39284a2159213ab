# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host shall be tuned to, as given and checked: one setting for each line of the list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import quantity

KINDS = (
    "sysctl",
    "sysfs",
    "thp",
    "numa_balancing",
    "governor",
    "energy_preference",
    "turbo",
    "idle_states",
    "irq_affinity",
    "rps",
    "ksm",
    "swap",
)
NAMED = ("sysctl", "sysfs", "thp", "irq_affinity", "rps", "ksm", "swap")
WITH_CPUS = ("governor", "energy_preference", "idle_states")
MAY_BE_EMPTY = ("rps",)
MISSING = ("fail", "skip")


class TuningError(Exception):
    """Settings are refused or cannot be made; the text names each, why, and what to write."""


@dataclass(frozen=True)
class Roots:
    """Where the host's files are; tests put trees of their own there."""

    sys: str = "/sys"
    proc: str = "/proc"
    etc: str = "/etc"
    run: str = "/run"
    usr: str = "/usr"
    netns: str = "/run/netns"


@dataclass(frozen=True)
class Setting:
    """One wanted value: what kind, of what, the value as text, whether for the next boots too."""

    index: int
    kind: str
    name: str
    value: str
    cpus: str
    persist: bool
    skip_missing: bool

    @property
    def label(self) -> str:
        """Return how errors and reports call it."""
        return f"settings[{self.index}] {self.kind}{' ' + self.name if self.name else ''}"


def _value(raw: Any, kind: str) -> str:
    """Return a value as text. Raises TuningError for what YAML has turned into something else."""
    if isinstance(raw, bool):
        raise TuningError(
            f"the value is the boolean {str(raw).lower()}, which YAML makes of on, off, yes and no; "
            "write what the kernel takes, in quotes, such as '1' or 'never'"
        )
    if isinstance(raw, float):
        raise TuningError(
            f"the value {raw!r} is a floating-point number, which YAML may have rounded; write it in quotes"
        )
    if not isinstance(raw, (str, int)):
        raise TuningError(
            f"the value is {quantity.kind_of(raw)}, not a text or a whole number; write one value in quotes"
        )
    text = str(raw).strip()
    if any(ord(char) < 32 and char != "\t" for char in text):
        raise TuningError(f"the value {text[:40]!r} has a line break or control character; write one line")
    if not text and kind not in MAY_BE_EMPTY:
        raise TuningError("the value is empty; write what the kernel shall hold, or leave the setting out")
    return text


def _setting(index: int, raw: Mapping[str, Any], persist: bool, on_missing: str) -> Setting:
    kind = raw["kind"]
    name = str(raw.get("name") or "").strip()
    if kind in NAMED and not name:
        raise TuningError("needs a name, which says what the value is of")
    if name == kind:
        name = ""
    if kind not in NAMED and name:
        raise TuningError(f"takes no name, as there is one on a host; leave {name!r} out")
    if raw.get("cpus") and kind not in WITH_CPUS:
        raise TuningError(f"takes no cpus; only {', '.join(WITH_CPUS)} are set by CPU")
    missing = raw.get("on_missing") or on_missing
    chosen = raw.get("persist")
    keep = persist if chosen is None else bool(chosen)
    cpus = str(raw.get("cpus") or "")
    return Setting(index, kind, name, _value(raw["value"], kind), cpus, keep, missing == "skip")


def parse(raw: list[Mapping[str, Any]], persist: bool, on_missing: str) -> tuple[tuple[Setting, ...], list[str]]:
    """Return the settings that can be understood, and a sentence for each that can't.

    ``persist`` and ``on_missing`` are for those that don't say themselves.
    """
    settings, problems = [], []
    for index, item in enumerate(raw):
        try:
            settings.append(_setting(index, item, persist, on_missing))
        except TuningError as exc:
            name = str(item.get("name") or "")
            problems.append(f"settings[{index}] {item['kind']}{' ' + name if name else ''}: {exc}")
    return tuple(settings), problems
