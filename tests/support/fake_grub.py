# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A made-up host with GRUB, whose update-grub is a script of a few lines, and a journal."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import journal, own_changes, undo
from ansible_collections.colocation.testbed.plugins.module_utils.boot import grub, kernel_args

# What Debian's grub-mkconfig does with the arguments, and nothing else.
UPDATE = """#!/bin/sh
set -e
echo run >> {root}/runs
test ! -e {root}/broken || {{ echo "no space left" >&2; exit 1; }}
GRUB_CMDLINE_LINUX_DEFAULT=quiet
for x in {root}/etc/default/grub.d/*.cfg; do
  if [ -e "$x" ]; then . "$x"; fi
done
test ! -e {root}/deaf || GRUB_CMDLINE_LINUX_DEFAULT=quiet
exec > {root}/boot/grub/grub.cfg
printf 'menuentry x {{\\n\\tlinux\\t/vmlinuz-6.1 root=UUID=1 ro %s\\n}}\\n' "$GRUB_CMDLINE_LINUX_DEFAULT"
"""


class Machine:
    """The host: plan, apply, boot, undo."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.roots = grub.Roots(*(str(root / name) for name in ("etc", "usr", "boot", "proc", "sys")))
        for name in ("etc/default", "usr/sbin", "boot/grub", "proc", "sys/devices/system/cpu"):
            os.makedirs(root / name)
        (root / "sys/devices/system/cpu/online").write_text("0-3\n")
        (root / "usr/sbin/grub-mkconfig").write_text("for x in ${sysconfdir}/default/grub.d/*.cfg ; do\n")
        (root / "usr/sbin/update-grub").write_text(UPDATE.format(root=root))
        os.chmod(root / "usr/sbin/update-grub", 0o755)
        subprocess.run([str(root / "usr/sbin/update-grub")], check=True)
        self.boot()
        self.book = journal.Journal(str(root / "state/journal.json"))

    def boot(self) -> None:
        line = (self.root / "boot/grub/grub.cfg").read_text().split("\n")[1]
        (self.root / "proc/cmdline").write_text("BOOT_IMAGE=/vmlinuz-6.1 " + line.split(None, 2)[2] + "\n")

    def runs(self) -> int:
        return len((self.root / "runs").read_text().split())

    def plan(self, *raw: dict[str, Any]) -> kernel_args.Plan:
        wanted = kernel_args.parse([{"state": "present", **item} for item in raw], self.roots.sys)
        return kernel_args.plan(wanted, self.roots, own_changes.written(self.book))

    def apply(self, *raw: dict[str, Any]) -> kernel_args.Plan:
        made = self.plan(*raw)
        if made.changed:
            kernel_args.apply(made, self.roots, self.book)
        return made

    def undo(self) -> None:
        own_changes.undo(self.book, kernel_args.BY, undo.Undo().handlers())

    def tree(self) -> dict[str, str]:
        found = {}
        for top in ("etc", "boot", "usr"):
            for folder, below, names in os.walk(self.root / top):
                found.update({os.path.join(folder, name): "" for name in below})
                for name in names:
                    with open(os.path.join(folder, name), encoding="utf-8") as handle:
                        found[os.path.join(folder, name)] = handle.read()
        return found
