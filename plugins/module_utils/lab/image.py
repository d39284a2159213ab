# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is in the disk image that guests boot from: pure, so that the same pins give the same key.

Nothing of one lab is in it. Names, addresses and keys come from a guest's second disk, a tar archive that is unpacked
once, at its first boot.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from ansible_collections.colocation.testbed.plugins.module_utils import apt
from ansible_collections.colocation.testbed.plugins.module_utils.lab import drivers

# What a guest needs to be a host like any other: systemd with a bus, ssh, and the Python that Ansible's modules run on.
BASE_PACKAGES = (
    *("dbus", "e2fsprogs", "iproute2", "kmod", "openssh-server", "procps", "python3", "python3-apt"),
    *("systemd", "systemd-sysv", "udev", "util-linux"),
)
SEED_UNIT = "colocation-testbed-seed.service"
SEEDED = "/etc/colocation-testbed-guest"
SIZE_RANGE_MIB = (1024, 65536)
# What lies beside an image that has its own kernel.
KERNEL_FILES = ("vmlinuz", "initrd")
_SUITE = re.compile(r"[a-z][a-z0-9-]*")
_KEY_LENGTH = 16

# Timers and services that cost boot time or wake up on their own, and serve nobody on a host that lives for an hour.
MASKED = (
    *("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer"),
    *("e2scrub_reap.service", "getty.target", "systemd-networkd-wait-online.service", "systemd-pstore.service"),
    *("systemd-udev-settle.service", "systemd-timesyncd.service", "systemd-rfkill.service", "systemd-rfkill.socket"),
    *("proc-sys-fs-binfmt_misc.automount", "systemd-binfmt.service", "systemd-update-utmp-runlevel.service"),
    *("modprobe@configfs.service", "modprobe@dm_mod.service", "modprobe@drm.service", "modprobe@efi_pstore.service"),
    *("modprobe@fuse.service", "modprobe@loop.service", "sys-fs-fuse-connections.mount", "sys-kernel-config.mount"),
    *("dev-hugepages.mount", "dev-mqueue.mount"),
)
ENABLED = (
    ("multi-user.target.wants/systemd-networkd.service", "/lib/systemd/system/systemd-networkd.service"),
    ("sockets.target.wants/systemd-networkd.socket", "/lib/systemd/system/systemd-networkd.socket"),
    ("default.target", "/lib/systemd/system/multi-user.target"),
    (f"sysinit.target.wants/{SEED_UNIT}", f"/etc/systemd/system/{SEED_UNIT}"),
)
# Of the units that packages enable by themselves, these stay; as on every host, the collection starts its workloads.
STARTING = ("dbus.service", "dbus.socket", "remote-fs.target", "ssh.service", "sshd.service")
STARTING_PREFIX = "systemd-"

_SEED_SERVICE = f"""\
[Unit]
Description=Take name, address and keys from the second disk
DefaultDependencies=no
ConditionPathExists=!{SEEDED}
After=local-fs.target
Before=sysinit.target network-pre.target systemd-networkd.service ssh.service shutdown.target
Conflicts=shutdown.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -ec 'for disk in /dev/ubdb /dev/vdb; do if [ -b $disk ]; then tar -xf $disk -C /; fi; done'
ExecStart=/bin/hostname -F /etc/hostname
"""

# Announcing every device there is, a hundred terminals among them, takes most of a boot; these are the ones in use.
_UDEV_TRIGGER = """\
[Service]
ExecStart=
ExecStart=udevadm trigger --type=devices --action=add --subsystem-match=net --subsystem-match=block
"""

_SSHD = """\
HostKey /etc/ssh/ssh_host_ed25519_key
PasswordAuthentication no
UseDNS no
"""


class ImageError(Exception):
    """An image cannot be made as asked for; the text says what, why and what to do."""


@dataclass(frozen=True)
class Recipe:
    """The pins of an image: release, packages beside the base, what runs the guests, size in MiB.

    ``kernel_version`` is the version of the package whose program is the kernel, empty where the image has its own.
    """

    suite: str
    packages: tuple[str, ...]
    driver: str
    kernel_version: str
    size_mib: int

    @property
    def included(self) -> tuple[str, ...]:
        """Return all packages that are asked for by name, sorted."""
        driver = drivers.DRIVERS[self.driver]
        kernel = (driver.kernel_package,) if driver.kernel_package else ()
        return tuple(sorted({*BASE_PACKAGES, *kernel, *driver.image_packages, *self.packages}))

    @property
    def key(self) -> str:
        """Return what names the image in the cache: equal pins and equal contents of ours give equal keys."""
        ours = {"files": contents(), "masked": MASKED, "enabled": ENABLED, "starting": STARTING}
        pins = {**asdict(self), "packages": self.included, **ours}
        return hashlib.sha256(json.dumps(pins, sort_keys=True).encode()).hexdigest()[:_KEY_LENGTH]


def beside(path: str, name: str) -> str:
    """Return where a file that belongs to an image is."""
    return f"{path}.{name}"


def contents() -> Mapping[str, str]:
    """Return our own files in the image: path to text."""
    return {
        f"/etc/systemd/system/{SEED_UNIT}": _SEED_SERVICE,
        "/etc/systemd/system/systemd-udev-trigger.service.d/colocation-testbed.conf": _UDEV_TRIGGER,
        "/etc/ssh/sshd_config.d/colocation-testbed.conf": _SSHD,
        "/etc/systemd/system.conf.d/colocation-testbed.conf": "[Manager]\nDefaultTimeoutStopSec=10s\n",
        "/etc/systemd/journald.conf.d/colocation-testbed.conf": "[Journal]\nStorage=persistent\nSystemMaxUse=64M\n",
        # Emptied, not removed: each guest makes its own at its first boot, without the rest of a first boot's set-up.
        "/etc/machine-id": "",
    }


def check(recipe: Recipe) -> None:
    """Raise ImageError for a recipe that cannot be cooked."""
    if not _SUITE.fullmatch(recipe.suite):
        raise ImageError(f"lab_image_suite {recipe.suite!r}: is no release's name; give one such as bookworm")
    try:
        apt.check_names(list(recipe.packages))
    except apt.AptError as exc:
        raise ImageError(f"lab_image_packages: {exc}") from exc
    if not SIZE_RANGE_MIB[0] <= recipe.size_mib <= SIZE_RANGE_MIB[1]:
        raise ImageError(
            f"lab_image_size_mib {recipe.size_mib}: must be from {SIZE_RANGE_MIB[0]} to {SIZE_RANGE_MIB[1]}; "
            "only what is used takes space"
        )


def debootstrap_argv(recipe: Recipe, root: str, sources: str, acquire: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command line that makes the root directory; ``acquire`` are settings of apt such as a proxy.

    In a mount namespace of its own: what a killed run had mounted inside goes with it, so that removing the directory
    never reaches the machine's own /dev.
    """
    left_out = ("doc", "man", "info", "locale")
    return (
        *("unshare", "--mount", "--propagation", "private", "mmdebstrap", "--mode=root", "--variant=minbase"),
        *("--format=directory", f"--include={','.join(recipe.included)}", '--aptopt=Acquire::Languages "none"'),
        *(f"--aptopt={line}" for line in acquire),
        *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in left_out),
        *(recipe.suite, root, sources),
    )


def parse_acquire(text: str) -> tuple[str, ...]:
    """Return the lines of ``apt-config dump`` that say how this machine reaches its archives, with a value."""
    wanted = re.compile(r'Acquire::(?:http|https|Check-Date|Check-Valid-Until|Retries)(?:::\S+)? "[^"]+";')
    return tuple(line for line in text.splitlines() if wanted.fullmatch(line))
