# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: bwmcli_settings
short_description: Translate settings of oncn-bwm's bwmcli
version_added: 0.1.0
description:
  - Takes C(bwmcli) command lines that set something and returns pools, classes and devices for role
    C(colocation.testbed.bandwidth).
  - Units are bytes a second in powers of 1024, as bwmcli reads them, so V(20mb) becomes V(20MiB/s).
positional: _input
options:
  _input:
    description: Command lines, the program's name included.
    type: list
    elements: str
    required: true
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Show the pools
  ansible.builtin.debug:
    msg: "{{ (['bwmcli -e eth0', 'bwmcli -s bandwidth 20mb,1gb'] | colocation.testbed.bwmcli_settings).pools }}"
"""

RETURN = r"""
_value:
  description: Lists V(pools), V(classes) and V(devices).
  type: dict
  sample:
    pools: [{name: egress, direction: egress, accounting: skb, low: 20MiB/s, high: 1GiB/s, waterline: 20MiB/s}]
    classes: []
    devices: [{name: eth0, pool: egress}]
"""

import re
import shlex
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_UNITS = {"kb": "KiB/s", "mb": "MiB/s", "gb": "GiB/s"}
_RATE = re.compile(r"([1-9][0-9]{0,12})(kb|mb|gb|KB|MB|GB)\Z")
# What bwmcli uses where nothing was set.
_DEFAULTS = {"waterline": "20MiB/s", "low": "20MiB/s", "high": "1GiB/s"}
_DIRECTIONS = {"-s": "egress", "-S": "ingress", "-e": "egress", "-E": "ingress", "-A": "ingress"}
_OFFLINE = "-1"
_VERSION_1 = re.compile(r"/net_(?:cls|prio)\b[^/]*(?:/|$)")


def _rate(text: str, line: str) -> str:
    found = _RATE.match(text)
    if not found:
        raise AnsibleFilterError(f"bwmcli line {line!r}: {text!r} is not a rate; write digits and kb, mb or gb")
    return f"{found[1]}{_UNITS[found[2].lower()]}"


class _Settings:
    def __init__(self) -> None:
        self.pools: dict[str, dict[str, Any]] = {}
        self.offline: dict[tuple[str, str], list[str]] = {}
        self.devices: list[dict[str, str]] = []

    def pool(self, direction: str) -> dict[str, Any]:
        # bwmcli counts what the stack sends in one piece.
        fresh = {"name": direction, "direction": direction, "accounting": "skb", **_DEFAULTS}
        return self.pools.setdefault(direction, fresh)

    def read(self, line: str) -> None:
        try:
            # Manuals print a dash where the program takes a hyphen.
            words = shlex.split(line.replace("\N{EN DASH}", "-"))
        except ValueError as exc:
            raise AnsibleFilterError(f"bwmcli line {line!r}: {exc}; close the quotation mark") from exc
        if len(words) < 3 or words[0].rpartition("/")[2] != "bwmcli" or words[1] not in _DIRECTIONS:
            raise AnsibleFilterError(
                f"bwmcli line {line!r}: sets nothing that is known here; give lines with -e, -E, -s, -S or -A"
            )
        option, rest, direction = words[1], words[2:], _DIRECTIONS[words[1]]
        if option in ("-e", "-E"):
            self.pool(direction)
            self.devices += [{"name": name, "pool": direction} for name in rest if name != option]
        elif option == "-A":
            self.pool(direction)
            self.offline.setdefault((direction, "prefixes"), []).append(f"{rest[0]}/32")
        else:
            self._set(rest, direction, line)

    def _set(self, rest: list[str], direction: str, line: str) -> None:
        pool = self.pool(direction)
        if rest[0] == "bandwidth" and len(rest) == 2 and rest[1].count(",") == 1:
            pool["low"], pool["high"] = (_rate(part, line) for part in rest[1].split(","))
        elif rest[0] == "waterline" and len(rest) == 2:
            pool["waterline"] = _rate(rest[1], line)
        elif direction == "egress" and len(rest) == 2 and rest[1] in ("0", _OFFLINE) and _VERSION_1.search(rest[0]):
            raise AnsibleFilterError(
                f"bwmcli line {line!r}: {rest[0]} is a control group of version 1, by which no class is known; "
                "write the path of a group of version 2, or a class with classids and the group's net_cls.classid"
            )
        elif direction == "egress" and len(rest) == 2 and rest[1] in ("0", _OFFLINE):
            groups = self.offline.setdefault((direction, "cgroups"), [])
            if rest[1] == _OFFLINE:
                groups.append(rest[0])
            elif rest[0] in groups:
                groups.remove(rest[0])
        else:
            raise AnsibleFilterError(
                f"bwmcli line {line!r}: is not understood; write bandwidth LOW,HIGH, waterline RATE, or CGROUP 0|-1"
            )


def bwmcli_settings(lines: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Return pools, classes and devices. Raises AnsibleFilterError for a line that isn't understood."""
    settings = _Settings()
    for line in lines:
        settings.read(str(line))
    return {
        "pools": list(settings.pools.values()),
        "classes": [
            {"name": f"offline-{direction}", "pool": direction, "role": "offline", kind: members}
            for (direction, kind), members in settings.offline.items()
            if members
        ],
        "devices": settings.devices,
    }


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"bwmcli_settings": bwmcli_settings}
