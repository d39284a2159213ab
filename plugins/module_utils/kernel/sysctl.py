# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sysctls: names and their files below /proc/sys, pairs that exclude each other, and files of sysctl.d(5)."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator

PROC_ROOT = "/proc"

# Setting one of these makes the kernel set the other to 0, and 0 itself may be refused (kernel/sysctl docs, vm.rst):
# what brings the old state back is writing the one that was not 0.
_PAIRS = (
    ("vm.dirty_ratio", "vm.dirty_bytes"),
    ("vm.dirty_background_ratio", "vm.dirty_background_bytes"),
    ("vm.overcommit_ratio", "vm.overcommit_kbytes"),
)
PARTNER = {**dict(_PAIRS), **{second: first for first, second in _PAIRS}}
# Writing these does something once; there is no value to keep.
COMMANDS = ("vm.drop_caches", "vm.compact_memory", "vm.stat_refresh", "net.ipv4.route.flush", "net.ipv6.route.flush")
_COMPONENT = re.compile(r"[A-Za-z0-9_.:@-]+\Z")


class SysctlError(Exception):
    """A name is no sysctl's; the text says what to write."""


def components(name: str) -> tuple[str, ...]:
    """Return the parts of a name, by the rule of sysctl(8): the first of ``.`` and ``/`` separates, the other is text.

    So both ``net.ipv4.conf.eth0/100.rp_filter`` and ``net/ipv4/conf/eth0.100/rp_filter`` mean interface eth0.100.
    Raises SysctlError.
    """
    first = re.search(r"[./]", name)
    plain = name if first is not None and first.group() == "/" else name.translate(str.maketrans("./", "/."))
    parts = tuple(plain.split("/"))
    wrong = [part for part in parts if not _COMPONENT.match(part) or part in (".", "..")]
    if wrong or len(parts) < 2 or name.startswith("-"):
        raise SysctlError(f"{name!r}: is not the name of a sysctl; write it like 'vm.swappiness' or 'vm/swappiness'")
    return parts


def canonical(name: str) -> str:
    """Return the one spelling of a name: with dots, or with slashes where a part itself has a dot."""
    parts = components(name)
    return ("/" if any("." in part for part in parts) else ".").join(parts)


def path(name: str, proc_root: str = PROC_ROOT) -> str:
    """Return the file of a sysctl. Raises SysctlError."""
    return os.path.join(proc_root, "sys", *components(name))


def affected(name: str, proc_root: str = PROC_ROOT) -> tuple[str, ...]:
    """Return the files that the kernel changes along with a sysctl, where undoing that one doesn't bring them back.

    Forwarding of IPv4 sets that of every interface and refuses redirects (inet_forward_change in net/ipv4/devinet.c);
    ``default`` of IPv4 and ``all`` of IPv6 reach interfaces too.
    """
    parts = components(name)
    net4, net6 = os.path.join(proc_root, "sys/net/ipv4"), os.path.join(proc_root, "sys/net/ipv6")
    if parts in (("net", "ipv4", "ip_forward"), ("net", "ipv4", "conf", "all", "forwarding")):
        others = [f"{net4}/ip_forward", f"{net4}/conf/all/accept_redirects"]
        found = [*glob.glob(f"{glob.escape(net4)}/conf/*/forwarding"), *others]
    elif parts[:4] in (("net", "ipv4", "conf", "default"), ("net", "ipv6", "conf", "all")) and len(parts) == 5:
        folder = glob.escape(net4 if parts[1] == "ipv4" else net6)
        found = glob.glob(f"{folder}/conf/*/{glob.escape(parts[4])}")
    else:
        return ()
    return tuple(sorted(item for item in found if item != path(name, proc_root)))


def assignments(text: str) -> Iterator[tuple[str, str]]:
    """Yield name and value of each assignment in a file of sysctl.d(5).

    Names are canonical. Comments, patterns, and lines without a value are left out; so is what is no name at all.
    """
    for line in text.splitlines():
        name, sign, value = line.strip().removeprefix("-").partition("=")
        if not sign or line.lstrip().startswith(("#", ";")):
            continue
        try:
            yield canonical(name.strip()), " ".join(value.split())
        except SysctlError:
            continue


def render(values: Iterable[tuple[str, str]]) -> str:
    """Return the lines of a file of sysctl.d(5)."""
    return "".join(f"{name} = {value}\n" for name, value in values)
