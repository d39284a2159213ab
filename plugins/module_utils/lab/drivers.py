# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ways to run a guest: which program it is, and where its kernel comes from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Driver:
    """A program that a guest runs as, the package that has it, and what the image must hold for it.

    Where ``kernel_package`` is empty the program is the kernel itself.
    """

    name: str
    program: str
    package: str
    kernel_package: str = ""
    image_packages: tuple[str, ...] = ()


UML = Driver("uml", "/usr/bin/linux.uml", "user-mode-linux")
QEMU = Driver(
    "qemu",
    "/usr/bin/qemu-system-x86_64",
    "qemu-system-x86",
    "linux-image-cloud-amd64",
    # Its shell and insmod, which need no library, are all that is between the kernel and the disk.
    ("busybox-static",),
)
DRIVERS = {driver.name: driver for driver in (UML, QEMU)}
