# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Control groups that stand for classes of packets: of version 2, whose identity each socket carries.

Where version 2 has no controllers (hybrid hosts), module cgroup makes no groups in it; these need none.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence

from ansible_collections.colocation.testbed.plugins.module_utils import journal
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.values import BandwidthError
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup
from ansible_collections.colocation.testbed.plugins.module_utils.recorded_process import wait

_BY = "bandwidth_shaper"
_EMPTY_DEADLINE_S = 5.0


def mount(proc_root: str = cgroup.PROC_ROOT) -> str:
    """Return where version 2 is mounted. Raises BandwidthError where it is not."""
    found = next((item.mount for item in cgroup.detect(proc_root).hierarchies if item.version == 2), "")
    if not found:
        raise BandwidthError("cgroup2: is not mounted, and it is what tells classes apart; mount it and run again")
    return found


def missing(base: str, names: Sequence[str]) -> list[str]:
    """Return the directories that groups lack, parents first. Raises CgroupError for names that are not allowed."""
    lacking: list[str] = []
    for name in names:
        place = base
        for part in cgroup.check_name(name).split("/"):
            place = f"{place}/{part}"
            if place not in lacking and not os.path.isdir(place):
                lacking.append(place)
    return lacking


def make(lacking: Sequence[str], book: journal.Journal) -> None:
    """Make directories, in their order. Raises JournalError, BandwidthError."""
    book.record_many([journal.Change("cgroup", place) for place in lacking], _BY)
    for place in lacking:
        try:
            os.mkdir(place)
        except OSError as exc:
            raise BandwidthError(
                f"{place}: cannot be made ({exc.strerror}); see dmesg, or remove other groups"
            ) from exc


def ours(book: journal.Journal) -> list[str]:
    """Return the directories that this module made and that are still there, children first."""
    return [item.target for item in reversed(book.entries()) if item.kind == "cgroup" and item.by == _BY]


def _empty(place: str) -> bool:
    return not cgroup.read_pids(place)


def remove(places: Sequence[str], book: journal.Journal) -> None:
    """Remove directories of ours that nobody is in, and forget them. Raises BandwidthError for one that is in use."""
    for place in places:
        # Ended processes stay in their group until their parent has reaped them.
        wait(functools.partial(_empty, place), _EMPTY_DEADLINE_S)
        if os.path.isdir(place):
            try:
                os.rmdir(place)
            except OSError as exc:
                raise BandwidthError(f"{place}: is in use ({exc.strerror}); end who is in it, then reset") from exc
    book.forget_many([("cgroup", place) for place in places])
