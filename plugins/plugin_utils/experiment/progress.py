# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Live lines while windows run. They come from the clock alone: asking a node would disturb what is measured."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: A line about the window under way is shown this often, in seconds.
LINE_EVERY_S = 5.0

#: Whether the playbook's main process still lives is looked at this often, in seconds.
LOOK_EVERY_S = 1.0


class ControllerGoneError(Exception):
    """The playbook's main process was killed; its worker, which leads a session of its own, must not go on alone."""


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
        self._parent = os.getppid()

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
        """Let a window of known length pass, with a line every few seconds.

        :raises ControllerGoneError: where the playbook's main process has ended meanwhile.
        """
        begin_s = time.monotonic()
        next_line_s = 0.0
        while (passed_s := time.monotonic() - begin_s) < seconds:
            if os.getppid() != self._parent:
                raise ControllerGoneError("the playbook was killed, so its measurement ends; run it again to resume")
            if passed_s >= next_line_s:
                next_line_s += LINE_EVERY_S
                left = duration(self.left_s(remaining) + seconds - passed_s)
                self._show(f"{label}  {passed_s:3.0f}/{seconds:.0f} s   {left} left")
            # The window's length is the condition: it ends by the clock, and nothing may be asked of a node before.
            time.sleep(min(LOOK_EVERY_S, seconds - passed_s))
