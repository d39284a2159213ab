# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel of an image: modules for one that is a program, kernel and first file system for one that is emulated."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from typing import Callable

from ansible_collections.colocation.testbed.plugins.module_utils import commands, files
from ansible_collections.colocation.testbed.plugins.module_utils.lab.image import ImageError

UML_MODULES_ROOT = "/usr/lib/uml/modules"
MODULES = "usr/lib/modules"
# Without these a distribution's kernel sees neither disk nor network. All else is loaded from the disk.
DEVICE_MODULES = ("virtio_pci", "virtio_blk", "virtio_net")
_MODULES_LIST = "modules"
_DIRECTORY, _PROGRAM, _FILE = 0o040755, 0o100755, 0o100644
# A disk that isn't there ends the guest, so that whoever waits for it is told at once.
_INIT = f"""\
#!/bin/busybox sh
busybox mount -t devtmpfs devtmpfs /dev
while read -r module; do busybox insmod "/$module"; done < /{_MODULES_LIST}
if busybox mount -t ext4 /dev/vda /root; then exec busybox switch_root /root /sbin/init; fi
echo 'Unable to mount root fs on /dev/vda: it holds no system'
busybox poweroff -f
"""

Run = Callable[..., commands.Result]


def install_modules(root: str, modules_root: str, run: Run) -> str:
    """Copy the modules of the kernel that is a program into the image, and return its release.

    Raises ImageError, CommandError.
    """
    release = _only_release(modules_root, "install package user-mode-linux again")
    shutil.copytree(os.path.join(modules_root, release), os.path.join(root, MODULES, release), symlinks=True)
    run(["chroot", root, "/sbin/depmod", release])
    return release


def take_out(root: str, folder: str, run: Run) -> str:
    """Put ``vmlinuz`` and ``initrd`` of the image's own kernel into a folder, and return its release.

    Raises ImageError, CommandError, FilesError.
    """
    release = _only_release(os.path.join(root, MODULES), "lab_image_packages must not name a kernel")
    shutil.copyfile(os.path.join(root, "boot", f"vmlinuz-{release}"), os.path.join(folder, "vmlinuz"))
    argv = ["chroot", root, "/sbin/modprobe", "--show-depends", "--set-version", release, "--all", *DEVICE_MODULES]
    modules = parse_dependencies(run(argv).stdout)
    busybox = files.read_bytes(os.path.join(root, "bin/busybox"))
    content = {path: files.read_bytes(os.path.join(root, path)) for path in modules}
    files.write_atomic(os.path.join(folder, "initrd"), first_file_system(busybox, content))
    return release


def _only_release(modules_root: str, advice: str) -> str:
    releases = sorted(os.listdir(modules_root)) if os.path.isdir(modules_root) else []
    if len(releases) != 1:
        raise ImageError(f"{modules_root}: holds {len(releases)} kernels instead of one; {advice}")
    return releases[0]


def parse_dependencies(text: str) -> tuple[str, ...]:
    """Return the modules that ``modprobe --show-depends`` names, without the leading slash, each once, in order."""
    lines = [line.split() for line in text.splitlines()]
    return tuple(dict.fromkeys(words[1].lstrip("/") for words in lines if len(words) > 1 and words[0] == "insmod"))


def first_file_system(busybox: bytes, modules: dict[str, bytes]) -> bytes:
    """Return the archive that the kernel unpacks before it has a disk: it loads the modules and goes on from the disk.

    The format is "newc" of https://docs.kernel.org/driver-api/early-userspace/buffer-format.html.
    """
    names = "".join(f"m{number}.ko\n" for number in range(len(modules)))
    entries: list[tuple[str, int, bytes]] = [
        *((name, _DIRECTORY, b"") for name in ("bin", "dev", "root")),
        ("bin/busybox", _PROGRAM, busybox),
        ("init", _PROGRAM, _INIT.encode()),
        (_MODULES_LIST, _FILE, names.encode()),
        *((name, _FILE, content) for name, content in zip(names.split(), modules.values())),
    ]
    return _archive(entries)


def _archive(entries: Sequence[tuple[str, int, bytes]]) -> bytes:
    parts = []
    for number, (name, mode, content) in enumerate([*entries, ("TRAILER!!!", 0, b"")], start=1):
        fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
        head = b"070701" + b"".join(b"%08x" % field for field in fields) + name.encode() + b"\0"
        parts += [_padded(head), _padded(content)]
    return b"".join(parts)


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 4)
