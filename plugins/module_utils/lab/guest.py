# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a guest is: its files, its command line, and the second disk that tells it who it is. Pure.

A guest is a User-Mode Linux kernel, a program that needs no virtualisation. Its command line is described in
https://docs.kernel.org/virt/uml/user_mode_linux_howto_v2.html.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import netns
from ansible_collections.colocation.testbed.plugins.module_utils.lab import image

GUESTS = "guests"
MEMORY_RANGE_MIB = (128, 65536)
# The kernel's command line takes commas, colons and blanks as separators, and offers no way to quote them.
_PLAIN_PATH = re.compile(r"/[A-Za-z0-9._/@+-]*")
# Of the addresses that nobody is given by a registry (RFC 7042), with the guest's IPv4 address in it.
_MAC_PREFIX = "02:00"


class GuestError(Exception):
    """A guest cannot be as asked for; the text says what, why and what is allowed."""


@dataclass(frozen=True)
class Machine:
    """What all guests of a lab have in common: kernel, image, memory in MiB, network, MTU in bytes."""

    kernel: str
    image: str
    memory_mib: int
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
        ("kernel", machine.kernel),
    ):
        if not _PLAIN_PATH.fullmatch(path):
            raise GuestError(f"{what} {path!r}: must be an absolute path of letters, digits and . _ / @ + -; rename it")
    if not MEMORY_RANGE_MIB[0] <= machine.memory_mib <= MEMORY_RANGE_MIB[1]:
        raise GuestError(
            f"lab_memory_mib {machine.memory_mib}: must be from {MEMORY_RANGE_MIB[0]} to {MEMORY_RANGE_MIB[1]}"
        )


def mac(address: str) -> str:
    """Return a locally administered MAC address, the same for the same IPv4 address."""
    return ":".join([_MAC_PREFIX, *(f"{int(part):02x}" for part in address.split("."))])


def argv(guest: Guest, machine: Machine, paths: Paths) -> tuple[str, ...]:
    """Return the command line of a guest's kernel, in the lab's network namespace."""
    network = f"transport=tap,ifname={guest.tap},mac={mac(guest.address)},depth=128,gro=1,mtu={machine.mtu_bytes}"
    return (
        *("nsenter", f"--net={netns.path(machine.namespace)}", paths.launcher, f"mem={machine.memory_mib}M"),
        *(f"ubd0={paths.disk},{machine.image}", f"ubd1r={paths.seed}", "root=/dev/ubda", "rw", f"vec0:{network}"),
        # Its sockets and pid file would lie in the home directory otherwise.
        *(f"uml_dir={paths.directory}/", "umid=uml", "con=null", "con0=null,fd:1"),
    )


def launcher(machine: Machine, python: str) -> str:
    """Return the program that a guest is started by.

    To reboot, the kernel executes its own argv[0] again, with all its files still open: its tap would be busy, and its
    memory never given back (arch/um/os-Linux/main.c). So argv[0] is this program, which closes them first.
    """
    return (
        f"#!{python} -IS\nimport os\nimport sys\n\n"
        "os.closerange(3, os.sysconf('SC_OPEN_MAX'))\n"
        f"os.execv({machine.kernel!r}, sys.argv)\n"
    )


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


def digest(guest: Guest, machine: Machine, paths: Paths, seed_bytes: bytes) -> str:
    """Return what changes when the guest has to be made anew: any option, image or key."""
    pins = {
        "argv": argv(guest, machine, paths),
        "kernel": machine.kernel,
        "cpus": guest.cpus,
        "seed": hashlib.sha256(seed_bytes).hexdigest(),
    }
    return hashlib.sha256(json.dumps(pins, sort_keys=True).encode()).hexdigest()
