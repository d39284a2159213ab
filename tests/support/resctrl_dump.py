"""The stand-in without FUSE: its state as plain files to read, and planned steps carried out on the state itself."""

from __future__ import annotations

import shutil
from pathlib import Path

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import resctrl
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.resctrl_steps import (
    CPUS,
    MAKE,
    MOVE,
    REMOVE,
    SCHEMATA,
    Step,
)
from tests.support.resctrl_machine import Machine, Tasks
from tests.support.resctrl_rules import Resctrl
from tests.support.resctrl_tree import File, Tree

BOOT_ID = "boot"


class Dumped:
    """A machine of the stand-in below a directory, with a /proc that knows its mount and some processes."""

    def __init__(self, directory: Path, options: str = "", processes: dict[int, list[int]] | None = None, **machine):  # type: ignore[no-untyped-def]
        self.processes = processes or {}
        started = {tid: 1000 + tid for tids in self.processes.values() for tid in tids}
        self.rules = Resctrl(Machine(tasks=Tasks(lambda: list(started), started.get), **machine))
        self.tree = Tree(self.rules)
        self.point = directory / "resctrl"
        self.proc = directory / "proc"
        self._fill_proc(options, started)

    def _fill_proc(self, options: str, started: dict[int, int]) -> None:
        shutil.rmtree(self.proc, ignore_errors=True)
        (self.proc / "self").mkdir(parents=True)
        line = f"36 25 0:31 / {self.point} rw,relatime shared:17 - resctrl resctrl rw{options}\n"
        (self.proc / "self/mountinfo").write_text(line)
        (self.proc / "sys/kernel/random").mkdir(parents=True)
        (self.proc / "sys/kernel/random/boot_id").write_text(f"{BOOT_ID}\n")
        for pid, tids in self.processes.items():
            for tid in tids:
                (self.proc / f"{pid}/task/{tid}").mkdir(parents=True)
        for tid, ticks in started.items():
            (self.proc / str(tid)).mkdir(exist_ok=True)
            fields = " ".join(["S", "1", *["0"] * 17, str(ticks), "0"])
            (self.proc / f"{tid}/stat").write_text(f"{tid} (work) {fields}\n")

    def state(self) -> resctrl.State:
        """Write the state as files, and return what the library reads of it."""
        shutil.rmtree(self.point, ignore_errors=True)
        self.point.mkdir(parents=True)
        self._write("")
        found = resctrl.read_state(str(self.point), str(self.proc))
        if found is None:
            raise AssertionError("the stand-in is not found as mounted")
        return found

    def _write(self, below: str) -> None:
        for name in self.tree.list(below or "/"):
            if name == "mon_data":
                continue
            path = f"{below}/{name}"
            if isinstance(self.tree.find(path), File):
                Path(f"{self.point}{path}").write_bytes(self.tree.read(path))
            else:
                Path(f"{self.point}{path}").mkdir()
                self._write(path)

    def carry_out(self, step: Step) -> None:
        """Do on the state what a step does on the kernel."""
        path = step.directory.removeprefix(str(self.point))
        if step.kind == MAKE:
            self.tree.mkdir(path)
        elif step.kind == REMOVE:
            self.tree.rmdir(path)
        elif step.kind == SCHEMATA:
            self.tree.write(f"{path}/schemata", step.text.encode(), 1)
        elif step.kind == CPUS:
            self.tree.write(f"{path}/cpus_list", f"{step.text}\n".encode(), 1)
        elif step.kind == MOVE:
            for move in step.moves:
                for place in dict.fromkeys([path.partition("/mon_groups/")[0], path]):
                    self.tree.write(f"{place}/tasks", str(move.tid).encode(), 1)
