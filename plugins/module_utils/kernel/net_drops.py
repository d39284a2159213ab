# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packets that the network stack threw away by itself: at devices, and where processors could not keep up."""

from __future__ import annotations

from ansible_collections.colocation.testbed.plugins.module_utils import files

PROC_ROOT = "/proc"
# Of /proc/net/dev: received packets dropped, packets to send dropped.
_DROP_FIELDS = (3, 11)
_FIELDS = 16


def parse_devices(text: str) -> int:
    """Return the packets that all devices but the loopback dropped, from the text of /proc/net/dev."""
    total = 0
    for line in text.splitlines()[2:]:
        name, colon, rest = line.partition(":")
        fields = rest.split()
        if colon and len(fields) == _FIELDS and name.strip() != "lo":
            total += sum(int(fields[number]) for number in _DROP_FIELDS)
    return total


def parse_softnet(text: str) -> int:
    """Return the packets that found a processor's queue full, from the text of /proc/net/softnet_stat."""
    # One line for each processor, hexadecimal; the second field is dropped packets (net/core/net-procfs.c).
    return sum(int(line.split()[1], 16) for line in text.splitlines() if line.strip())


def parse_datagrams(text: str) -> int:
    """Return the datagrams that sockets had no room for, from the text of /proc/net/snmp (pairs of lines)."""
    lines = [line.split() for line in text.splitlines() if line.startswith("Udp:")]
    if len(lines) != 2:
        return 0
    return int(dict(zip(*lines)).get("RcvbufErrors", 0))


def parse_datagrams6(text: str) -> int:
    """Return the same of IPv6, from the text of /proc/net/snmp6 (a name and a number in each line)."""
    found = dict(line.split() for line in text.splitlines() if len(line.split()) == 2)
    return int(found.get("Udp6RcvbufErrors", 0))


def read_datagrams(proc_root: str = PROC_ROOT) -> int:
    """Return the datagrams that sockets of this network namespace had no room for so far. Raises FilesError."""
    try:
        newer = files.read_text(f"{proc_root}/self/net/snmp6")
    except files.FilesError:
        # A kernel without IPv6.
        newer = ""
    return parse_datagrams(files.read_text(f"{proc_root}/self/net/snmp")) + parse_datagrams6(newer)


def read(proc_root: str = PROC_ROOT) -> int:
    """Return the packets dropped so far in this network namespace, and by the machine's processors.

    Raises FilesError where the kernel does not tell.
    """
    devices = parse_devices(files.read_text(f"{proc_root}/self/net/dev"))
    return devices + parse_softnet(files.read_text(f"{proc_root}/self/net/softnet_stat"))
