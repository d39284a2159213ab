# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a guest is: its files, and the second disk that tells it who it is. Pure."""

from __future__ import annotations

import io
import os
import re
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils.lab import image

GUESTS = "guests"
MEMORY_RANGE_MIB = (128, 65536)
CPU_COUNT_RANGE = (1, 64)
# The command lines take commas, colons and blanks as separators, and one offers no way to quote them.
_PLAIN_PATH = re.compile(r"/[A-Za-z0-9._/@+-]*")


class GuestError(Exception):
    """A guest cannot be as asked for; the text says what, why and what is allowed."""


@dataclass(frozen=True)
class Machine:
    """What all guests of a lab have in common: program, image, memory in MiB, CPUs, network, MTU in bytes."""

    driver: str
    program: str
    image: str
    memory_mib: int
    cpu_count: int
    namespace: str
    prefix_length: int
    mtu_bytes: int


@dataclass(frozen=True)
class Guest:
    """One guest: name, IPv4 address, tap in the lab's namespace, CPUs of the machine that its kernel may use."""

    name: str
    address: str
    tap: str
    cpus: str


@dataclass(frozen=True)
class Paths:
    """The files of one guest, all in a directory that is removed as a whole."""

    directory: str

    @classmethod
    def of(cls, state_dir: str, name: str) -> Paths:
        """Return the files of the guest ``name`` below a state directory."""
        return cls(os.path.join(state_dir, GUESTS, name))

    @property
    def disk(self) -> str:
        """What the guest has written; all else is read from the image."""
        return os.path.join(self.directory, "disk.cow")

    @property
    def seed(self) -> str:
        """The second disk."""
        return os.path.join(self.directory, "seed.tar")

    @property
    def console(self) -> str:
        """What kernel and systemd print."""
        return os.path.join(self.directory, "console.log")

    @property
    def pid(self) -> str:
        """The pid file."""
        return os.path.join(self.directory, "guest.pid")

    @property
    def launcher(self) -> str:
        """The program that becomes the kernel, at the start and at each reboot."""
        return os.path.join(self.directory, "kernel")

    @property
    def record(self) -> str:
        """What the guest was made as."""
        return os.path.join(self.directory, "guest.json")


@dataclass(frozen=True)
class Keys:
    """Public key of the lab, and the host's key pair, as OpenSSH writes them."""

    authorized: str
    host_private: str
    host_public: str


def check(machine: Machine, state_dir: str) -> None:
    """Raise GuestError where a guest with these options cannot be started."""
    for what, path in (
        ("lab_state_dir", state_dir),
        ("lab_image_cache_dir", machine.image),
        ("program", machine.program),
    ):
        if not _PLAIN_PATH.fullmatch(path):
            raise GuestError(f"{what} {path!r}: must be an absolute path of letters, digits and . _ / @ + -; rename it")
    for what, value, (lowest, highest) in (
        ("lab_memory_mib", machine.memory_mib, MEMORY_RANGE_MIB),
        ("lab_cpu_count", machine.cpu_count, CPU_COUNT_RANGE),
    ):
        if not lowest <= value <= highest:
            raise GuestError(f"{what} {value}: must be from {lowest} to {highest}")


def network_file(guest: Guest, machine: Machine) -> str:
    """Return the guest's systemd.network(5): its address, and no way out of the lab's network."""
    return (
        f"[Match]\nType=ether\n\n[Link]\nMTUBytes={machine.mtu_bytes}\n\n"
        f"[Network]\nAddress={guest.address}/{machine.prefix_length}\nLinkLocalAddressing=no\nIPv6AcceptRA=no\n"
        "LLMNR=no\nMulticastDNS=no\n"
    )


def seed_files(guest: Guest, machine: Machine, keys: Keys) -> Mapping[str, tuple[int, str]]:
    """Return the files of the second disk: path to mode and text."""
    return {
        "etc/hostname": (0o644, f"{guest.name}\n"),
        "etc/hosts": (0o644, f"127.0.0.1 localhost\n{guest.address} {guest.name}\n"),
        "etc/systemd/network/10-lab.network": (0o644, network_file(guest, machine)),
        "etc/ssh/ssh_host_ed25519_key": (0o600, keys.host_private),
        "etc/ssh/ssh_host_ed25519_key.pub": (0o644, keys.host_public),
        "root/.ssh/authorized_keys": (0o600, keys.authorized),
        image.SEEDED.lstrip("/"): (0o644, f"{guest.name}\n"),
    }


def seed(guest: Guest, machine: Machine, keys: Keys) -> bytes:
    """Return the second disk: a tar archive, the same bytes for the same guest."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        home = tarfile.TarInfo("root/.ssh")
        home.type, home.mode = tarfile.DIRTYPE, 0o700
        archive.addfile(home)
        for path, (mode, text) in seed_files(guest, machine, keys).items():
            content = text.encode()
            entry = tarfile.TarInfo(path)
            entry.mode, entry.size = mode, len(content)
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()
