# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Let a run that is interrupted (Ctrl-C, SIGTERM) stop what it started on the hosts before it ends.

Ansible's worker dies at once at a signal, and no ``finally`` of the experiment would run: the service and the hold on
idle states would stay for ever.
"""

from __future__ import annotations

import contextlib
import signal
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class InterruptedRunError(Exception):
    """The user, or the system, asked the playbook to end."""


@contextlib.contextmanager
def orderly_end() -> Iterator[None]:
    """Turn the first signal into an exception, and ignore more of them until the block has ended.

    Only in the main thread of a process, which is where Ansible runs an action.

    :raises InterruptedRunError: where a signal came.
    """
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        for one in SIGNALS:
            signal.signal(one, signal.SIG_IGN)
        raise InterruptedRunError(
            f"interrupted by {signal.Signals(number).name}: what ran on the hosts was stopped; run it again to resume"
        )

    for number in SIGNALS:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
