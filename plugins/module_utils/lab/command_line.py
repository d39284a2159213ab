# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs that a guest is made and run by, with all their options. Pure.

With driver uml a guest is a User-Mode Linux kernel, a program that needs no virtualisation, described in
https://docs.kernel.org/virt/uml/user_mode_linux_howto_v2.html. With driver qemu it is a distribution's kernel on CPUs
that QEMU translates (TCG), described in qemu-system-x86_64(1).
"""

from __future__ import annotations

import hashlib
import json

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import netns
from ansible_collections.colocation.testbed.plugins.module_utils.lab import drivers, image
from ansible_collections.colocation.testbed.plugins.module_utils.lab.guest import Guest, Machine, Paths

# Of the addresses that nobody is given by a registry (RFC 7042), with the guest's IPv4 address in it.
_MAC_PREFIX = "02:00"
# A translated CPU can be away for seconds when others use the machine: that is no lockup, and no reason to read time
# from a device, which takes a hundred times as long as from the CPU. Guarding against leaks between processes costs
# time and serves nobody here.
_KERNEL_OPTIONS = "console=ttyS0 loglevel=4 mitigations=off nowatchdog tsc=reliable"
# What QEMU keeps of translated code in MiB; by itself it takes up to a GiB for each guest.
_TRANSLATED_MIB = 128


def mac(address: str) -> str:
    """Return a locally administered MAC address, the same for the same IPv4 address."""
    return ":".join([_MAC_PREFIX, *(f"{int(part):02x}" for part in address.split("."))])


def argv(guest: Guest, machine: Machine, paths: Paths) -> tuple[str, ...]:
    """Return the command line of a guest, in the lab's network namespace."""
    options = {drivers.UML.name: _uml, drivers.QEMU.name: _qemu}[machine.driver]
    return ("nsenter", f"--net={netns.path(machine.namespace)}", paths.launcher, *options(guest, machine, paths))


def _uml(guest: Guest, machine: Machine, paths: Paths) -> tuple[str, ...]:
    network = f"transport=tap,ifname={guest.tap},mac={mac(guest.address)},depth=128,gro=1,mtu={machine.mtu_bytes}"
    return (
        *(f"mem={machine.memory_mib}M", f"ubd0={paths.disk},{machine.image}", f"ubd1r={paths.seed}"),
        *("root=/dev/ubda", "rw", f"vec0:{network}"),
        # Its sockets and pid file would lie in the home directory otherwise.
        *(f"uml_dir={paths.directory}/", "umid=uml", "con=null", "con0=null,fd:1"),
    )


def _qemu(guest: Guest, machine: Machine, paths: Paths) -> tuple[str, ...]:
    kernel, first = (image.beside(machine.image, name) for name in image.KERNEL_FILES)
    card = f"virtio-net-pci,netdev=lab,mac={mac(guest.address)},host_mtu={machine.mtu_bytes},romfile="
    return (
        # Never KVM: where a machine is virtual itself, the device may exist and not work.
        *("-accel", f"tcg,thread=multi,tb-size={_TRANSLATED_MIB}", "-cpu", "max"),
        *("-smp", str(machine.cpu_count), "-m", f"{machine.memory_mib}M"),
        *("-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio"),
        *("-kernel", kernel, "-initrd", first, "-append", _KERNEL_OPTIONS),
        *("-drive", f"if=virtio,format=qcow2,file={paths.disk}"),
        *("-drive", f"if=virtio,format=raw,readonly=on,file={paths.seed}"),
        *("-netdev", f"tap,id=lab,ifname={guest.tap},script=no,downscript=no", "-device", card),
    )


def disk(machine: Machine, paths: Paths) -> tuple[str, ...]:
    """Return the command line that makes a guest's disk, empty where the guest does that itself."""
    if machine.driver == drivers.UML.name:
        return ()
    return ("qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", machine.image, paths.disk)


def launcher(machine: Machine, python: str) -> str:
    """Return the program that a guest is started by.

    To reboot, a kernel that is a program executes its own argv[0] again, with all its files still open: its tap would
    be busy, and its memory never given back (arch/um/os-Linux/main.c). So argv[0] is this program, which closes them
    first.
    """
    return (
        f"#!{python} -IS\nimport os\nimport sys\n\n"
        "os.closerange(3, os.sysconf('SC_OPEN_MAX'))\n"
        f"os.execv({machine.program!r}, sys.argv)\n"
    )


def digest(guest: Guest, machine: Machine, paths: Paths, seed_bytes: bytes) -> str:
    """Return what changes when the guest has to be made anew: any option, image or key."""
    pins = {
        "argv": argv(guest, machine, paths),
        "disk": disk(machine, paths),
        "program": machine.program,
        "cpus": guest.cpus,
        "seed": hashlib.sha256(seed_bytes).hexdigest(),
    }
    return hashlib.sha256(json.dumps(pins, sort_keys=True).encode()).hexdigest()
