# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Devices of ours (ifb) that packets pass on their way in: there they can wait, as nothing can where they arrive."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.devices import INTERMEDIATE, Run
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth.values import BandwidthError

_OURS = "colocation-testbed"


@dataclass(frozen=True)
class Link:
    """An intermediate device that is there: its index, whether it is an instance's of ours, whether it is up."""

    index: int
    ours: bool
    up: bool


def name_of(index: int) -> str:
    """Return the name of the device that goes with the one of an index."""
    return f"ctb{index}"


def _alias(instance: str) -> str:
    return f"{_OURS} {instance}"


def look(instance: str, recorded: Collection[str], run: Run) -> dict[str, Link]:
    """Return the devices that have a name as ours have; ``recorded`` are those that the state says were made.

    A run that was killed may have made a device and not marked it yet. Raises CommandError.
    """
    found = {}
    for raw in json.loads(run(["ip", "-j", "link", "show", "type", "ifb"]).stdout or "[]"):
        name = raw.get("ifname", "")
        if INTERMEDIATE.match(name):
            mark = raw.get("ifalias", "")
            ours = mark == _alias(instance) or (not mark and name in recorded)
            found[name] = Link(int(raw["ifindex"]), ours, "UP" in raw.get("flags", ()) and bool(mark))
    return found


def silent_lines(name: str, proc_root: str = "/proc") -> list[str]:
    """Return the lines for ip(8) that keep a device from sending by itself, before it is brought up.

    What the stack sends for an address of its own never came in anywhere, so the device drops it, and whoever counts
    drops is misled. A kernel without IPv6 refuses the setting and needs none.
    """
    has_ipv6 = os.path.exists(os.path.join(proc_root, "self/net/if_inet6"))
    return [f"link set dev {name} addrgenmode none"] if has_ipv6 else []


def make_lines(name: str, instance: str, found: Mapping[str, Link], proc_root: str = "/proc") -> list[str]:
    """Return the lines for ip(8) that a device lacks. Raises BandwidthError when somebody else has its name."""
    link = found.get(name)
    if link is not None and not link.ours:
        raise BandwidthError(f"device {name}: is there already and isn't this instance's; rename or delete it")
    made = [f"link add dev {name} type ifb"] if link is None else []
    if link is not None and link.up:
        return []
    marked = f'link set dev {name} alias "{_alias(instance)}"'
    return [*made, marked, *silent_lines(name, proc_root), f"link set dev {name} up"]


def delete_lines(kept: Collection[str], found: Mapping[str, Link]) -> list[str]:
    """Return the lines for ip(8) that remove our devices but those that are kept."""
    return [f"link delete dev {name}" for name, link in sorted(found.items()) if link.ours and name not in kept]
