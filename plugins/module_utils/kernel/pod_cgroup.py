# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Control groups of Kubernetes pods, found by the pods' uids in the names that kubelet gives them.

Both drivers of kubelet are understood: kubepods/burstable/pod<uid> (cgroupfs), and
kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid with _>.slice (systemd), also below other groups.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

_HEX = "[0-9a-f]"
# Pods of a file have a digest for a uid, without hyphens.
_UID = rf"{_HEX}{{8}}[-_]?(?:{_HEX}{{4}}[-_]?){{3}}{_HEX}{{12}}"
_GROUP = re.compile(rf"(?:[A-Za-z0-9_.-]*-)?pod({_UID})(?:\.slice)?\Z")
_WHOLE = re.compile(rf"{_UID}\Z")
_ABOVE = re.compile("kube")
# kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/…, and one more that an operator put above.
_DEPTH = 5


def normal(uid: str) -> str | None:
    """Return a uid as kubelet's systemd driver and its cgroupfs driver both mean it; None for what isn't one."""
    found = uid.strip().lower().replace("_", "-")
    return found if _WHOLE.match(found) else None


def scan(mount: str) -> dict[str, str]:
    """Return the group of each pod below a hierarchy's mount point: uid -> path relative to it."""
    return dict(_below(mount, "", _DEPTH))


def _below(mount: str, path: str, depth: int) -> Iterator[tuple[str, str]]:
    try:
        with os.scandir(os.path.join(mount, path)) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        # Went away while it was looked at.
        return
    for name in sorted(names):
        place = os.path.join(path, name)
        match = _GROUP.match(name)
        if match:
            yield match[1].replace("_", "-"), place
        elif depth and (_ABOVE.search(name) or _ABOVE.search(path) or depth == _DEPTH):
            yield from _below(mount, place, depth - 1)
