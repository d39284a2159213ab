# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel has of what shaping needs, found by doing it in a network namespace that goes at once."""

from __future__ import annotations

import contextlib
from typing import Callable

from ansible_collections.colocation.testbed.plugins.module_utils import commands

Run = Callable[..., commands.Result]

# What passes everything on, as an instruction of the classic kind: no program has to be loaded for it.
_MATCH_ALL = "protocol all pref 1 bpf bytecode '1,6 0 0 4294967295'"
_PROBES = {
    "fq": ("tc", "qdisc add dev lo root fq"),
    "htb": ("tc", "qdisc add dev lo root htb"),
    "clsact": ("tc", "qdisc add dev lo clsact"),
    "programs": ("tc", f"qdisc add dev lo clsact\nfilter add dev lo ingress {_MATCH_ALL}"),
    "redirection": (
        "tc",
        f"qdisc add dev lo clsact\nfilter add dev lo ingress {_MATCH_ALL} action mirred egress redirect dev lo",
    ),
    "ifb": ("ip", "link add dev probe type ifb"),
}


class Abilities:
    """Answers of one kernel; each question is asked at most once."""

    def __init__(self, run: Run) -> None:
        """Keep how programs are run; nothing is asked yet."""
        self._run = run
        self._known: dict[str, bool] = {}

    def has(self, name: str) -> bool:
        """Tell whether the kernel has a queueing discipline or another thing by its name in _PROBES."""
        if name not in self._known:
            if name == "ifb":
                # Loaded on demand, the module would make two devices of its own, which nobody asked for.
                with contextlib.suppress(commands.CommandError):
                    self._run(["modprobe", "-q", "ifb", "numifbs=0"], check=False)
            program, lines = _PROBES[name]
            argv = ["unshare", "--net", program, "-batch", "-"]
            self._known[name] = self._run(argv, check=False, input_text=lines + "\n").status == 0
        return self._known[name]

    @property
    def diverts(self) -> bool:
        """Tell whether packets that arrive can be passed through a device of ours first."""
        return self.has("ifb") and self.has("redirection")
