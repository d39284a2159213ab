# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for a cgroup v2 hierarchy: a directory tree with the kernel's rules for what may be written where.

It is not the kernel; what it refuses is written down from cgroup-v2.rst and kernel/cgroup/cgroup.c.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import files, quantity, undo
from ansible_collections.colocation.testbed.plugins.module_utils.journal import Journal
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import cgroup, cgroup_apply, cgroup_plan
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_steps import Group

ROOT = "colocation-testbed/tested"
CONTROLLERS = "cpuset cpu io memory pids"
FILES = {
    "cpu": {"cpu.weight": "100", "cpu.idle": "0", "cpu.max": "max 100000", "cpu.max.burst": "0"},
    "cpuset": {
        "cpuset.cpus": "",
        "cpuset.mems": "",
        "cpuset.cpus.effective": "0-3",
        "cpuset.cpus.partition": "member",
    },
    "io": {"io.weight": "default 100", "io.max": "", "io.latency": ""},
    "memory": {
        "memory.min": "0",
        "memory.low": "0",
        "memory.high": "max",
        "memory.max": "max",
        "memory.swap.max": "max",
        "memory.oom.group": "0",
    },
    "pids": {"pids.max": "max"},
}


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)


class FakeCgroup2:
    """The tree; ``install`` puts its rules in the place of the system calls that the library uses."""

    def __init__(self, root: Path) -> None:
        self.mount = root / "sys/fs/cgroup"
        self.mount.mkdir(parents=True)
        self._set(self.mount, "cgroup.controllers", CONTROLLERS)
        self._set(self.mount, "cgroup.subtree_control", "")
        self._set(self.mount, "cgroup.procs", "1")
        self._set(self.mount, "cpuset.cpus.effective", "0-3")
        self._set(self.mount, "cpuset.mems.effective", "0")
        self.writes: list[str] = []
        self.disks = ["8:0", "8:16"]
        self.ended: list[str] = []
        self.refuse: dict[str, int] = {}
        self.refuse_after: dict[str, int] = {}
        self._real = {"mkdir": os.mkdir, "rmdir": os.rmdir, "write": files.write_kernel}

    def mountinfo(self) -> str:
        return "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"

    def install(self, monkeypatch: Any) -> None:
        monkeypatch.setattr(os, "mkdir", self.mkdir)
        monkeypatch.setattr(os, "rmdir", self.rmdir)
        monkeypatch.setattr(files, "write_kernel", self.write)

    def get(self, name: str) -> str:
        return (self.mount / name).read_text().strip()

    def groups(self) -> list[str]:
        return sorted(str(path.parent.relative_to(self.mount)) for path in self.mount.rglob("cgroup.controllers"))

    def _inside(self, path: str | Path) -> bool:
        return str(path).startswith(f"{self.mount}/")

    def _set(self, directory: Path, name: str, text: str) -> None:
        (directory / name).write_text(f"{text}\n")

    def mkdir(self, path: str, mode: int = 0o777, **more: Any) -> None:
        self._real["mkdir"](path, mode, **more)
        if not self._inside(path):
            return
        place = Path(path)
        enabled = (place.parent / "cgroup.subtree_control").read_text().split()
        self._set(place, "cgroup.controllers", " ".join(enabled))
        self._set(place, "cgroup.subtree_control", "")
        self._set(place, "cgroup.procs", "")
        for controller in enabled:
            self._files(place, controller)

    def _files(self, place: Path, controller: str) -> None:
        for name, text in FILES[controller].items():
            self._set(place, name, text)

    def rmdir(self, path: str, **more: Any) -> None:
        if not self._inside(path):
            self._real["rmdir"](path, **more)
            return
        place = Path(path)
        if self._children(place) or (place / "cgroup.procs").read_text().split():
            raise _error(errno.EBUSY, path)
        for item in place.iterdir():
            item.unlink()
        self._real["rmdir"](path)
        self._hand_over()

    @staticmethod
    def _children(place: Path) -> list[Path]:
        return [item for item in place.iterdir() if item.is_dir()]

    def write(self, path: str, text: str) -> None:
        if not self._inside(path):
            self._real["write"](path, text)
            return
        try:
            self._write(Path(path), text)
        except OSError as exc:
            raise files.FilesError(f"{path}: the kernel refused {text!r}") from exc

    def _write(self, path: Path, text: str) -> None:
        shown = str(path.relative_to(self.mount))
        self.writes.append(f"{shown} {text}")
        left = self.refuse_after.get(shown, 0)
        self.refuse_after[shown] = left - 1
        if shown in self.refuse and left <= 0:
            raise _error(self.refuse[shown], str(path))
        if not path.exists():
            raise _error(errno.ENOENT, str(path))
        rule = getattr(self, "_" + path.name.replace(".", "_"), None)
        stored = rule(path.parent, text) if rule else text
        self._set(path.parent, path.name, stored)
        if path.name.startswith("cpuset.cpus"):
            self._hand_over()

    def _cgroup_subtree_control(self, place: Path, text: str) -> str:
        available = (place / "cgroup.controllers").read_text().split()
        enabled = (place / "cgroup.subtree_control").read_text().split()
        for word in text.split():
            sign, name = word[0], word[1:]
            if sign == "+" and name not in available:
                raise _error(errno.ENOENT, str(place))
            if sign == "+" and place != self.mount and (place / "cgroup.procs").read_text().split():
                raise _error(errno.EBUSY, str(place))
            for child in self._children(place):
                if sign == "-" and name in (child / "cgroup.subtree_control").read_text().split():
                    raise _error(errno.EBUSY, str(place))
                if sign == "+" and name not in enabled:
                    self._files(child, name)
                elif sign == "-":
                    for file in FILES[name]:
                        (child / file).unlink()
            enabled = [*enabled, name] if sign == "+" and name not in enabled else enabled
            enabled = [item for item in enabled if sign == "+" or item != name]
        for child in self._children(place):
            self._set(child, "cgroup.controllers", " ".join(enabled))
        return " ".join(enabled)

    def _cpu_idle(self, place: Path, text: str) -> str:
        if text not in ("0", "1"):
            raise _error(errno.ERANGE, str(place))
        self._set(place, "cpu.weight", "0" if text == "1" else "100")
        return text

    def _cpu_weight(self, place: Path, text: str) -> str:
        if (place / "cpu.idle").read_text().strip() == "1" or not 1 <= int(text) <= 10000:
            raise _error(errno.EINVAL, str(place))
        return text

    def _cpu_max(self, place: Path, text: str) -> str:
        quota, period = text.split()
        burst = int((place / "cpu.max.burst").read_text())
        if not 1000 <= int(period) <= 1_000_000 or (quota != "max" and (int(quota) < 1000 or burst > int(quota))):
            raise _error(errno.EINVAL, str(place))
        return text

    def _cpu_max_burst(self, place: Path, text: str) -> str:
        quota = (place / "cpu.max").read_text().split()[0]
        if quota != "max" and int(text) > int(quota):
            raise _error(errno.EINVAL, str(place))
        return text

    def _cpuset_cpus_partition(self, place: Path, text: str) -> str:
        if text not in ("member", "root", "isolated"):
            raise _error(errno.EINVAL, str(place))
        if text == "member":
            return text
        if not (place / "cpuset.cpus").read_text().strip():
            return f"{text} invalid (cpuset.cpus and cpuset.cpus.exclusive are empty)"
        above = place.parent / "cpuset.cpus.partition"
        if above.exists() and above.read_text().split()[0] == "member":
            return f"{text} invalid (Parent is not a partition root)"
        if set(quantity.parse_cpu_list((place / "cpuset.cpus").read_text().strip())) == set(range(4)):
            return f"{text} invalid (Parent unable to distribute cpu downstream)"
        return text

    def _hand_over(self) -> None:
        """Leave to the root what no partition has: update_cpumasks_hier() of kernel/cgroup/cpuset.c."""
        left = set(range(4))
        for child in self._children(self.mount):
            word = child / "cpuset.cpus.partition"
            if word.exists() and word.read_text().strip() in ("root", "isolated"):
                left -= set(quantity.parse_cpu_list((child / "cpuset.cpus").read_text().strip()))
        self._set(self.mount, "cpuset.cpus.effective", quantity.format_cpu_list(left))

    def _lines(self, place: Path, name: str, text: str, absent: str) -> str:
        """Change a line as blkcg's files do: fields that are not written stay, a line without limits goes."""
        lines = {line.split()[0]: line for line in (place / name).read_text().splitlines() if line}
        device, *words = text.split()
        if device not in self.disks:
            raise _error(errno.ENODEV, str(place))
        fields = dict(word.split("=") for word in [*lines.get(device, "").split()[1:], *words])
        if "0" in fields.values() and absent == "max":
            raise _error(errno.ERANGE, str(place))
        lines[device] = " ".join([device, *(f"{key}={value}" for key, value in fields.items())])
        if set(fields.values()) == {absent}:
            del lines[device]
        return "\n".join(lines.values())

    def _io_max(self, place: Path, text: str) -> str:
        device, *words = text.split()
        present = (place / "io.max").read_text()
        every = [] if f"{device} " in present else [f"{name}=max" for name in ("rbps", "wbps", "riops", "wiops")]
        return self._lines(place, "io.max", " ".join([device, *every, *words]), "max")

    def _io_latency(self, place: Path, text: str) -> str:
        return self._lines(place, "io.latency", text, "0")

    def _io_weight(self, place: Path, text: str) -> str:
        head, word = text.split()
        if not 1 <= int(word) <= 10000 or head != "default":
            raise _error(errno.EINVAL, str(place))
        return "\n".join([text, *(place / "io.weight").read_text().splitlines()[1:]])

    def _memory_max(self, place: Path, text: str) -> str:
        return text if text == "max" else str(int(text) // 4096 * 4096)

    _memory_high = _memory_low = _memory_min = _memory_swap_max = _memory_max

    def _cgroup_procs(self, place: Path, text: str) -> str:
        if place != self.mount and (place / "cgroup.subtree_control").read_text().split():
            raise _error(errno.EBUSY, str(place))
        if text in self.ended:
            raise _error(errno.ESRCH, str(place))
        for other in self.mount.rglob("cgroup.procs"):
            self._set(other.parent, other.name, "\n".join(pid for pid in other.read_text().split() if pid != text))
        left = (place / "cgroup.procs").read_text().split()
        return "\n".join([*left, text])

    def vanish(self, name: str) -> None:
        """Remove a group behind the library's back."""
        for item in (self.mount / name).iterdir():
            item.unlink()
        self._real["rmdir"](self.mount / name)


class Host:
    """The library on a tree, with a journal and a /proc of its own; disks are those of the tree."""

    def __init__(self, directory: Path, monkeypatch: Any) -> None:
        self.tree = FakeCgroup2(directory)
        self.tree.install(monkeypatch)
        self.layout = cgroup.parse_layout(self.tree.mountinfo(), str(directory))
        self.book = Journal(str(directory / "state/journal.json"))
        self.proc = directory / "proc"
        self.proc.mkdir()

    def ours(self) -> frozenset[str]:
        return frozenset(entry.target for entry in self.book.entries() if entry.kind == "cgroup")

    def plan(self, *groups: Group) -> Any:
        return cgroup_plan.plan(self.layout, ROOT, groups, self.ours(), str(self.proc), self._disk)

    def _disk(self, device: str) -> str:
        return device.replace("/dev/sda", "8:0")

    def apply(self, *groups: Group) -> int:
        found = self.plan(*groups)
        cgroup_apply.apply(found.steps, self.book, "test", self.ours())
        return len(found.steps)

    def foreign(self, *groups: Group) -> None:
        """Make groups that the journal knows nothing of."""
        self.apply(*groups)
        self.book.forget_many((entry.kind, entry.target) for entry in self.book.entries())

    def undo(self) -> list[str]:
        return [item.outcome.result for item in self.book.undo(undo.Undo(term_deadline_s=0.1).handlers())]

    def get(self, name: str) -> str:
        return self.tree.get(f"{ROOT}/{name}")
