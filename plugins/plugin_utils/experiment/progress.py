# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Live lines while windows run. They come from the clock alone: asking a node would disturb what is measured."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: A line about the window under way is shown this often, in seconds.
LINE_EVERY_S = 5.0


def duration(seconds: float) -> str:
    """Return a length of time for people: ``45 s``, ``3 min 05 s``, ``1 h 02 min``."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


class Progress:
    """Shows where a run stands, and estimates what is left from the measurements so far."""

    def __init__(self, show: Callable[[str], None], guess_s: float) -> None:
        """Start with ``guess_s`` as the length of one measurement until the first is done."""
        self._show = show
        self._guess_s = guess_s
        self._lengths_s: list[float] = []
        self._started_s = time.monotonic()

    def start(self) -> None:
        """Note that a measurement begins."""
        self._started_s = time.monotonic()

    def done(self) -> None:
        """Note that it has ended."""
        self._lengths_s.append(time.monotonic() - self._started_s)

    def left_s(self, remaining: int) -> float:
        """Return the seconds that so many further measurements will take."""
        each_s = sum(self._lengths_s) / len(self._lengths_s) if self._lengths_s else self._guess_s
        return remaining * each_s

    def wait(self, seconds: float, label: str, remaining: int) -> None:
        """Let a window of known length pass, with a line every few seconds."""
        end_s = time.monotonic() + seconds
        while True:
            left_s = end_s - time.monotonic()
            if left_s <= 0:
                return
            passed_s = seconds - left_s
            line = f"{label}  {passed_s:3.0f}/{seconds:.0f} s   {duration(self.left_s(remaining) + left_s)} left"
            self._show(line)
            # The window's length is the condition: it ends by the clock, and nothing may be asked of a node before.
            time.sleep(min(LINE_EVERY_S, left_s))
